/**
 * `drover task ID`: everything about one task; with --watch until it has ended, with --logs what it wrote.
 */
import { ClientError } from "../../client/index.ts";
import type { TaskView } from "../../protocol/index.ts";
import { clientFor, RETRIES_WHILE_WATCHING } from "../shell/connection.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plainLines } from "../shell/text.ts";
import { type Call, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { taskDetails, taskLine } from "../show/task-view.ts";
import { newPart } from "./log-tail.ts";
import { watchTask } from "./watch-task.ts";

type Flags = {
  readonly watch?: boolean;
  readonly logs?: boolean;
  readonly tail?: number;
  readonly attempt?: number;
};

const TAIL_MAX = 10_000;

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
  run: async (call) => {
    if (call.flags.watch === true) return watch(call);
    if (call.flags.logs === true) return logs(call);
    const task = await clientFor(call).task(call.args[0] ?? "");
    call.output.answer(task, () => taskDetails(task, call.output));
    return EXIT.ok;
  },
};

async function logs(call: Call<Flags>): Promise<ExitCode> {
  const { args, flags, output } = call;
  const { attempt, tail } = flags;
  const found = await clientFor(call).logs(args[0] ?? "", {
    ...(attempt === undefined ? {} : { attempt }),
    ...(tail === undefined ? {} : { tail }),
  });
  output.answer(found, () => (found.text === "" ? "It has written nothing yet.\n" : plainLines(found.text)));
  return EXIT.ok;
}

async function watch(call: Call<Flags>): Promise<ExitCode> {
  const { args, flags, terminal, output } = call;
  const id = args[0] ?? "";
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

type LogReader = { readonly more: () => Promise<void>; readonly follow: (signal: AbortSignal) => Promise<void> };

/** There is no log before the first attempt has begun; and a worker that does not answer now may do so next time. */
const MAY_COME: ReadonlySet<unknown> = new Set(["not_found", "worker_silent"]);

/** Prints what is new in the log each time it looks. Its worker keeps the log; only its end is ever read. */
function createLogReader(call: Call<Flags>, id: string): LogReader {
  const client = clientFor(call);
  const shown = { attempt: 0, text: "" };

  async function more(signal?: AbortSignal): Promise<void> {
    try {
      const options = { tail: TAIL_MAX, retries: RETRIES_WHILE_WATCHING, ...(signal === undefined ? {} : { signal }) };
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
      await moment(signal);
    }
  }

  return { more: () => more(), follow };
}

const LOOK_MS = 500;

/** A short rest that ends at once when there is nothing more to wait for. */
function moment(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LOOK_MS);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
