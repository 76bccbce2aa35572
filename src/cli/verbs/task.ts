/**
 * `drover task ID`: everything about one task; with --watch until it has ended, with --logs what it wrote.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { type Client, ClientError } from "../../client/index.ts";
import type { TaskView } from "../../protocol/index.ts";
import { isEnded } from "../../protocol/wire/index.ts";
import { answering, clientFor, idOf, RETRIES_WHILE_WATCHING } from "../shell/connection.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plainLines } from "../shell/text.ts";
import { type Call, given, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { taskDetails, taskLine } from "../show/task-view.ts";

type Flags = { readonly watch?: boolean; readonly logs?: boolean; readonly tail?: number; readonly attempt?: number };

const TAIL_MAX = 10_000;
/** How often a log is looked at while it is followed. */
const LOOK_MS = 500;

export const taskVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: "the task" }],
  flags: [
    { flags: "-w, --watch", about: "tell each change until it has ended; exit code 1 unless it is done" },
    { flags: "-l, --logs", about: "the end of what its exec worker caught; with --watch also what comes" },
    { flags: "--tail <lines>", about: "how many lines of the log (default: 200)", read: wholeNumber(1, TAIL_MAX) },
    { flags: "--attempt <n>", about: "the log of this attempt (default: the last)", read: wholeNumber(1, 1e9) },
  ],
  examples: [
    ["drover task tsk_12", "everything about it"],
    ["drover task tsk_12 --watch", "stay until it has ended"],
    ["drover task tsk_12 --logs --watch", "its output as it comes"],
  ],
  run: (call) => (call.flags.watch === true ? watch(call) : call.flags.logs === true ? logs(call) : details(call)),
};

const details = answering((client, call: Call<Flags>) => client.task(idOf(call)), taskDetails);

const logs = answering(
  (client, call: Call<Flags>) => client.logs(idOf(call), given({ attempt: call.flags.attempt, tail: call.flags.tail })),
  ({ text }) => (text === "" ? "It has written nothing yet.\n" : plainLines(text)),
);

async function watch(call: Call<Flags>): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  const id = idOf(call);
  const client = clientFor(call);
  const wantsLogs = flags.logs === true && !output.isJson;
  const lines = createLogReader(call, id);
  const tell = (task: TaskView): void => {
    if (wantsLogs) terminal.err(`${taskLine(task, output)}\n`);
    else output.line(task, () => taskLine(task, output));
  };
  return interruptible(terminal, async (signal) => {
    const over = new AbortController();
    const reading = wantsLogs ? lines.follow(AbortSignal.any([signal, over.signal])) : Promise.resolve();
    try {
      const task = await watchTask(client, id, { signal, onChange: tell });
      return task.state === "done" ? EXIT.ok : EXIT.failed;
    } finally {
      over.abort();
      await reading;
      if (wantsLogs && !signal.aborted) await lines.more();
    }
  });
}

/** How old what is shown may be. */
const MOMENT_MS = 1000;

type WatchOptions = {
  readonly signal: AbortSignal;
  readonly onChange: (task: TaskView) => void;
  readonly momentMs?: number;
};

/**
 * Stays with a task until it has ended, and tells each change on the way. Each round is one call that answers at once
 * when the task ends, and after a moment otherwise; then the task is read for what has changed. So the end is heard
 * without delay, and a queue position or a worker's word of progress within a moment. A server that is restarted
 * meanwhile is waited for.
 */
export async function watchTask(client: Client, id: string, options: WatchOptions): Promise<TaskView> {
  const { signal, onChange, momentMs = MOMENT_MS } = options;
  const patient = { signal, retries: RETRIES_WHILE_WATCHING };
  let last = "";
  const tell = (task: TaskView): void => {
    const { state, attempt, worker, position, progress, error } = task;
    const now = JSON.stringify([state, attempt, worker, position, progress, error]);
    if (now !== last) onChange(task);
    last = now;
  };
  tell(await client.task(id, { signal }));
  for (;;) {
    try {
      const ended = await client.wait(id, { ...patient, withinMs: momentMs });
      tell(ended);
      return ended;
    } catch (error) {
      // With a state it is the task that has not ended; without, the server has not answered.
      if (!(error instanceof ClientError) || error.code !== "timeout" || error.details.state === undefined) throw error;
    }
    const task = await client.task(id, patient);
    tell(task);
    if (isEnded(task.state)) return task;
  }
}

// ------------------------------------------------------------------ its output

type LogReader = { readonly more: () => Promise<void>; readonly follow: (signal: AbortSignal) => Promise<void> };

/** There is no log before the first attempt has begun; and a worker that does not answer now may do so next time. */
const MAY_COME: ReadonlySet<unknown> = new Set(["not_found", "worker_silent"]);

/** Prints what is new in the log each time it looks. Its worker keeps the log; only its end is ever read. */
function createLogReader(call: Call<Flags>, id: string): LogReader {
  const client = clientFor(call);
  const shown = { attempt: 0, text: "" };

  async function more(signal?: AbortSignal): Promise<void> {
    try {
      const options = { tail: TAIL_MAX, retries: RETRIES_WHILE_WATCHING, ...given({ signal }) };
      const { attempt, text } = await client.logs(id, options);
      const before = attempt === shown.attempt ? shown.text : "";
      call.terminal.out(plainLines(newPart(before, text)));
      Object.assign(shown, { attempt, text });
    } catch (error) {
      if (signal?.aborted === true) return;
      if (!(error instanceof ClientError) || !MAY_COME.has(error.code)) throw error;
      // The last look: what has not come by now does not come.
      if (signal === undefined) call.terminal.err(`no log: ${plainLines(error.message)}\n`);
    }
  }

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await more(signal);
      await elapse(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  return { more: () => more(), follow };
}

/**
 * What is new in a log of which only the end is seen. Its end moves on as it grows: what is seen now begins somewhere
 * inside what was seen before. The longest end of the old that the new begins with is what they have in common.
 */
export function newPart(before: string, now: string): string {
  return now.startsWith(before) ? now.slice(before.length) : now.slice(overlap(before, now));
}

/** The length of the longest end of `before` that `now` begins with: the table of Knuth, Morris and Pratt. */
function overlap(before: string, now: string): number {
  const fallback = new Uint32Array(now.length + 1);
  for (let at = 1, matched = 0; at < now.length; at++) {
    while (matched > 0 && now[at] !== now[matched]) matched = fallback[matched] ?? 0;
    if (now[at] === now[matched]) matched += 1;
    fallback[at + 1] = matched;
  }
  let matched = 0;
  for (const char of before.slice(-now.length).split("")) {
    while (matched > 0 && char !== now[matched]) matched = fallback[matched] ?? 0;
    if (char === now[matched]) matched += 1;
  }
  return matched;
}
