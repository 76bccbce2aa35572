/**
 * A plan that runs on a server, and somebody who watches it: `drover run` where a server is, and `drover plan NAME`.
 *
 * Ctrl-C ends the watching and not the plan, unless that is said: on a terminal it asks which of the two, elsewhere it
 * detaches. The second Ctrl-C detaches without a question.
 */

import { setTimeout as elapse } from "node:timers/promises";
import type { PlanTask } from "../../plan/index.ts";
import type { PlanView } from "../../protocol/index.ts";
import type { Clock } from "../../std/index.ts";
import type { ExitCode } from "../shell/problem.ts";
import type { StopSignal } from "../shell/terminal.ts";
import { asWord } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";
import type { ServerChoice } from "./find-server.ts";
import { type JoinRequest, watchPlan } from "./joined.ts";
import { leavingsOnServer } from "./leavings.ts";
import { createLink, type Link } from "./link.ts";
import type { RunEnd } from "./session.ts";
import { createShow, type Show } from "./show.ts";
import { exitOf, showSummary } from "./summary.ts";
import { createTails } from "./tails.ts";

export type JoinFlags = {
  readonly output?: boolean;
  readonly onInterrupt?: "detach" | "cancel";
};
/** Of a run, alone or on a server. */
export type RunFlags = {
  readonly data?: string;
  readonly slots?: number;
  readonly only?: readonly string[];
  readonly dryRun?: boolean;
  readonly fresh?: boolean;
  readonly failFast?: boolean;
  readonly approve?: readonly string[];
  readonly keepGoing?: boolean;
  readonly retryFailed?: boolean;
  readonly printSchema?: boolean;
  readonly alone?: boolean;
} & JoinFlags;
type Joining = {
  readonly call: Call<JoinFlags>;
  readonly server: ServerChoice;
  readonly name: string;
  /** The file of the plan; null where only the server knows it. */
  readonly file: string | null;
  readonly tasks: readonly PlanTask[] | null;
  readonly watched: JoinRequest["watched"];
  readonly approved: ReadonlySet<string>;
  readonly clock: Clock;
  /** How the plan stands when the watching begins: as it is put, or as it is. */
  readonly begin: (link: Link) => Promise<PlanView & { readonly warnings?: readonly string[] }>;
};

export async function joinPlan(joining: Joining): Promise<ExitCode> {
  const { call, server, name, tasks, watched, approved, clock, file } = joining;
  const { flags, terminal, output } = call;
  const startedAt = terminal.now();
  const over = new AbortController();
  const { signal } = over;
  const rest = (ms: number): Promise<void> => elapse(ms, undefined, { signal }).catch(() => {});
  const noted = (text: string): void => show.noted(text);
  const link = createLink({ call, server, noted, rest, signal });
  const wrote = flags.output === true ? (id: string, line: string): void => show.wrote(id, line) : null;
  const tails = createTails({ link, wrote, rest, signal });
  const where = { server: server.url, by: server.by };
  const show = createShow({ terminal, output, name, where, lastLine: tails.lastLine, clock });
  const view = await joining.begin(link);
  for (const warning of view.warnings ?? []) show.noted(warning);
  const leaving = interruptions({ call, name, link, show, detach: () => over.abort() });
  try {
    const shown = { observer: show, tails };
    const request: JoinRequest = { link, view, tasks, watched, approved, ...shown, clock, rest, signal };
    const { runState, end: ended } = await watchPlan(request);
    show.end();
    const end: RunEnd = leaving.isCancelled() && ended.kind === "over" ? { kind: "interrupted" } : ended;
    const exit = exitOf(runState, end, leaving.signal());
    await showSummary(
      {
        runState,
        end,
        name,
        command: file === null ? null : `drover run ${asWord(file)}`,
        isFound: true,
        where,
        exit,
        tookMs: tookMs(view, terminal.now() - startedAt),
      },
      { left: leavingsOnServer(link, name), output, cwd: terminal.cwd },
    );
    return exit;
  } finally {
    show.end();
    leaving.end();
    over.abort();
  }
}

/** Of a plan that had ended before anybody looked, what it took. */
const tookMs = ({ putAt, endedAt }: PlanView, watchedMs: number): number =>
  endedAt === undefined ? watchedMs : Math.max(0, Date.parse(endedAt) - Date.parse(putAt));

type Interruptions = { signal(): StopSignal | null; isCancelled(): boolean; end(): void };

const QUESTION = "Detach (the plan goes on) or cancel it? [d/c]";
const CTRL_C = "\u0003";

function interruptions(given: {
  readonly call: Call<JoinFlags>;
  readonly name: string;
  readonly link: Link;
  readonly show: Show;
  readonly detach: () => void;
}): Interruptions {
  const { call, name, link, show, detach } = given;
  const { terminal, flags } = call;
  const asking = new AbortController();
  let first: StopSignal | null = null;
  let isCancelled = false;

  async function cancel(): Promise<void> {
    isCancelled = true;
    show.noted("cancelling: what runs is stopped; once more (Ctrl-C) detaches");
    await link.call((client) => client.plans.cancel(name, { reason: "cancelled by Ctrl-C of drover run" }));
  }

  async function ask(): Promise<void> {
    if (flags.onInterrupt === "cancel") return await cancel();
    if (flags.onInterrupt === "detach" || terminal.readKey === null || call.output.isJson) return detach();
    show.ask(QUESTION);
    let key: string | null = null;
    while (key === null || !["d", "c", CTRL_C].includes(key)) {
      key = (await terminal.readKey(asking.signal))?.toLowerCase() ?? null;
      if (asking.signal.aborted) return;
    }
    show.ask(null);
    if (key === "c") await cancel();
    else detach();
  }

  const silence = terminal.onSignal(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
    const isFirst = first === null;
    first ??= signal;
    if (isFirst && signal === "SIGINT") return void ask().catch(detach);
    asking.abort();
    detach();
  });
  return {
    signal: () => first,
    isCancelled: () => isCancelled,
    end() {
      asking.abort();
      silence();
    },
  };
}
