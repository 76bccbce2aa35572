/**
 * `drover task ID`: everything about one task; with --watch until it has ended, with --logs what it wrote.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { type Client, ClientError } from "../../client/index.ts";
import type { TaskView } from "../../protocol/index.ts";
import { idOf, RETRIES_WHILE_WATCHING } from "../shell/connection.ts";
import { newPart } from "../shell/log-text.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plainLines } from "../shell/text.ts";
import { type Call, type FlagSpec, given, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { taskDetails, taskLine } from "../show/task-view.ts";
import { named, namedLive, TASK_ARGUMENT } from "./named.ts";
import { watchTask } from "./watch-task.ts";

export type LogFlags = { readonly tail?: number; readonly attempt?: number };
type Flags = LogFlags & { readonly watch?: boolean; readonly logs?: boolean };

const TAIL_MAX = 10_000;
/** How often a log is looked at while it is followed. */
const LOOK_MS = 500;

export const LOG_FLAGS: readonly FlagSpec[] = [
  { flags: "--tail <lines>", about: "how many lines of the log (default: 200)", read: wholeNumber(1, TAIL_MAX) },
  { flags: "--attempt <n>", about: "the log of this attempt (default: the last)", read: wholeNumber(1, 1e9) },
];

export const taskVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: TASK_ARGUMENT }],
  flags: [
    { flags: "-w, --watch", about: "tell each change until it has ended; exit code 1 unless it is done" },
    { flags: "-l, --logs", about: "the end of what its exec worker caught; with --watch also what comes" },
    ...LOG_FLAGS,
  ],
  examples: [
    ["drover task tsk_12", "everything about it"],
    ["drover task tsk_12 --watch", "stay until it has ended"],
    ["drover task tsk_12 --logs --watch", "its output as it comes"],
    ["drover task release/ship", "a task of a plan, by its name there"],
  ],
  run: (call) => (call.flags.watch === true ? watch(call) : call.flags.logs === true ? logs(call) : details(call)),
};

async function details(call: Call<Flags>): Promise<ExitCode> {
  const { calls, id } = await named(call, idOf(call));
  const task = await calls.task(id);
  const waitsFor = call.output.isJson || task.state !== "running" ? [] : await permitsAwaited(calls, id);
  call.output.answer(task, () => taskDetails(task, call.output, waitsFor));
  return EXIT.ok;
}

/** A task that runs may wait all the same: for a permit of a gate. */
async function permitsAwaited(calls: Pick<Client, "why">, id: string): Promise<string[]> {
  const { conditions } = await calls.why(id);
  return conditions.filter(({ code }) => code === "permit").map(({ detail }) => detail);
}

export async function logs(call: Call<LogFlags>): Promise<ExitCode> {
  const { calls, id } = await named(call, idOf(call));
  const log = await calls.logs(id, given({ attempt: call.flags.attempt, tail: call.flags.tail }));
  call.output.answer(log, () => (log.text === "" ? "It has written nothing yet.\n" : plainLines(log.text)));
  return EXIT.ok;
}

async function watch(call: Call<Flags>): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  const { calls: client, id } = await namedLive(call, idOf(call));
  const wantsLogs = flags.logs === true && !output.isJson;
  const lines = createLogReader(client, call, id);
  const tell = (task: TaskView): void => {
    if (wantsLogs) terminal.err(`${taskLine(task, output)}\n`);
    else output.line(task, () => taskLine(task, output));
  };
  return interruptible(terminal, async (signal) => {
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    const ended = watchTask(client, id, { signal: until, onChange: tell }).finally(() => over.abort());
    try {
      const [task] = await Promise.all([ended, wantsLogs ? lines.follow(until) : null]);
      if (wantsLogs) await lines.rest(signal);
      return task.state === "done" ? EXIT.ok : EXIT.failed;
    } finally {
      over.abort();
    }
  });
}

// ------------------------------------------------------------------ its output

type LogReader = {
  /** The last look: what has not come by now does not come. */
  readonly rest: (signal: AbortSignal) => Promise<void>;
  readonly follow: (signal: AbortSignal) => Promise<void>;
};

/** There is no log before the first attempt has begun; and a worker that does not answer now may do so next time. */
const MAY_COME: ReadonlySet<unknown> = new Set(["not_found", "worker_silent"]);

/** Prints what is new in the log each time it looks. Its worker keeps the log; only its end is ever read. */
function createLogReader(client: Client, call: Call<Flags>, id: string): LogReader {
  const shown = { attempt: 0, text: "" };

  async function more(signal: AbortSignal, isLast = false): Promise<void> {
    try {
      const { attempt, text } = await client.logs(id, { tail: TAIL_MAX, retries: RETRIES_WHILE_WATCHING, signal });
      const before = attempt === shown.attempt ? shown.text : "";
      call.terminal.out(plainLines(newPart(before, text)));
      Object.assign(shown, { attempt, text });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ClientError) || !MAY_COME.has(error.code)) throw error;
      if (isLast) call.terminal.err(`no log: ${plainLines(error.message)}\n`);
    }
  }

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await more(signal);
      await elapse(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  return { rest: (signal) => more(signal, true), follow };
}
