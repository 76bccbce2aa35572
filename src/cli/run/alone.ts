/**
 * A plan run on this machine alone: the engine and the commands are in this process.
 *
 * A first interrupt lets commands end in good order, a second kills them; in both cases the same command later goes on
 * where this one stopped.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ExitCode } from "../shell/problem.ts";
import { likelyServer } from "../shell/server-file.ts";
import type { StopSignal, Terminal } from "../shell/terminal.ts";
import { asWord } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";
import { openApi } from "./api.ts";
import { createAttempts } from "./attempts.ts";
import type { RunFlags } from "./join.ts";
import { leavingsHere } from "./leavings.ts";
import { rethrown } from "./log.ts";
import { runDirectory } from "./named-task.ts";
import { type RunRequest, startRun } from "./session.ts";
import { createShow } from "./show.ts";
import { exitOf, showSummary } from "./summary.ts";

/** Two interrupts closer together than this are one, sent by a terminal and by the launcher that passed it on. */
const ONE_INTERRUPT_MS = 300;

type Prepared = Pick<RunRequest, "plan" | "tasks" | "data" | "slots" | "clock"> & { readonly call: Call<RunFlags> };

export async function runAlone({ call, plan, tasks, data, slots, clock }: Prepared): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  const startedAt = terminal.now();
  const { name } = plan;
  const where = { slots, data };
  const lastLine = (id: string): string => attempts.lastLine(id);
  const show = createShow({ terminal, output, name, where, lastLine, clock });
  const beside = noteBeside(data);
  const api = await openApi({ data, clock, noted: show.noted });
  const attempts = createAttempts({
    plan,
    data,
    url: api.url,
    clock,
    env: terminal.env,
    onWarning: show.noted,
    ...(flags.output === true ? { onOutput: show.wrote } : {}),
  });
  const running = startRun({
    plan,
    tasks,
    data,
    slots,
    only: flags.only,
    attempts,
    api,
    now: terminal.now,
    clock,
    observer: show,
    retriesFailed: flags.retryFailed !== false,
    failsFast: flags.failFast === true,
    approved: new Set(flags.approve),
  });
  if (beside !== null) show.noted(beside);
  const interrupts = listen(terminal, show.noted, running.interrupt, attempts.kill);
  try {
    const { runState, end } = await running.ended.catch(rethrown(data));
    show.end();
    const exit = exitOf(runState, end, interrupts.signal());
    await showSummary(
      {
        runState,
        end,
        name,
        command: commandOf(call),
        isFound: runDirectory(name, terminal.cwd) === data,
        where,
        exit,
        tookMs: terminal.now() - startedAt,
      },
      { left: leavingsHere(attempts, terminal.cwd), output, cwd: terminal.cwd },
    );
    return exit;
  } finally {
    show.end();
    interrupts.end();
    await api.close();
  }
}

/** What goes on with the same log. */
function commandOf({ args, flags: { data, alone } }: Call<RunFlags>): string {
  const where = [...(alone === true ? ["--alone"] : []), ...(data === undefined ? [] : ["--data", asWord(data)])];
  return ["drover run", asWord(args[0] ?? ""), ...where].join(" ");
}

/** That other plans run alone beside this one, as far as they say so; null if none does. */
function noteBeside(data: string): string | null {
  const directory = dirname(data);
  const others = namesIn(directory).filter(
    (name) => name !== basename(data) && likelyServer(join(directory, name)) !== null,
  );
  if (others.length === 0) return null;
  const who = `${others.join(", ")} ${others.length === 1 ? "runs" : "run"} alone here too`;
  return `${who}: runs alone share no gates and budgets, those on one server (drover serve) do`;
}

/** Of a directory that cannot be read there are none: for the sake of a note no run fails. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** The first interrupt asks, the second does not. */
function listen(
  terminal: Terminal,
  noted: (text: string) => void,
  interrupt: () => void,
  kill: () => void,
): { signal(): StopSignal | null; end(): void } {
  let first: { readonly signal: StopSignal; readonly at: number } | null = null;
  const end = terminal.onSignal(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
    const at = terminal.now();
    if (first === null) {
      first = { signal, at };
      noted("stopping: what runs may end; once more (Ctrl-C) kills it at once");
      interrupt();
    } else if (at - first.at >= ONE_INTERRUPT_MS) kill();
  });
  return { signal: () => first?.signal ?? null, end };
}
