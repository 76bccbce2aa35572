/**
 * A worker in a process of its own, for tests that kill, stop and block it.
 *
 * What it does with a task is said by the task's action; what happens is printed, one line of JSON each. A line on
 * standard input ends the handlers that wait for one. It offers one capability, its own name.
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type AttemptStopped, startWorker, type TaskContext } from "../../../src/worker/index.ts";

const [url = "", id = "", slots = "1"] = process.argv.slice(2);
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const lines = createInterface({ input: process.stdin });

const actions: Record<string, (context: TaskContext, ms: number) => unknown> = {
  /** Stops the event loop, as a long computation does. */
  block: (_, ms) => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return `blocked by ${id}`;
  },
  /** Until it is told to stop. */
  linger: async ({ signal }) => {
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason;
  },
  /** Until a line comes. */
  line: async () => {
    await once(lines, "line");
    return `line for ${id}`;
  },
  /** Until the process goes on after it was stopped; it does not care whether it should still. */
  continued: async () => {
    await once(process, "SIGCONT");
    return `late word of ${id}`;
  },
  quick: () => `by ${id}`,
};

const worker = await startWorker(
  { url, id, slots: Number(slots), capabilities: [id], onWarning: (text) => say({ warning: text }) },
  async ({ taskId, attempt, action, params }, context) => {
    context.signal.addEventListener("abort", () =>
      say({ stopped: taskId, attempt, why: (context.signal.reason as AttemptStopped).why }),
    );
    say({ began: taskId, attempt });
    return actions[action]?.(context, Number(params?.ms ?? 0));
  },
);
say({ joined: worker.id });
process.once("SIGTERM", () => void worker.drain());
await worker.closed;
say({ left: worker.id });
lines.close();
