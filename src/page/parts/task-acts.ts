/**
 * What somebody does to tasks, one or many: asked first, done, and said.
 *
 * Many are cancelled by as few calls as it takes; each is answered by itself, and what was refused is told.
 */
import type { TaskView } from "../../protocol/generated/index.ts";
import { BULK_MAX } from "../../protocol/wire/index.ts";
import { ask } from "../data/ask.ts";
import { doing, say } from "../data/say.ts";
import { plural } from "../data/words.ts";
import { asked } from "./dialog.tsx";

/** So many calls are out at once. */
const AT_ONCE = 6;

export async function cancelAll(tasks: readonly TaskView[]): Promise<void> {
  const [only] = tasks;
  if (only === undefined) return;
  const reason = await asked({
    title: tasks.length === 1 ? "Cancel this task?" : `Cancel ${plural(tasks.length, "task")}?`,
    text: `${tasks.length === 1 ? only.taskId : "What runs"} is stopped; what waits for it is skipped.`,
    yes: "Cancel it",
    note: "Reason (may stay empty)",
    isDanger: true,
  });
  if (reason === null) return;
  const body = reason === "" ? {} : { reason };
  let refused = 0;
  for (let from = 0; from < tasks.length; from += BULK_MAX) {
    const calls = tasks
      .slice(from, from + BULK_MAX)
      .map(({ taskId }) => ({ call: "cancel" as const, id: taskId, body }));
    const isDone = await quietly(async () => {
      const { answers } = await ask("bulk", { body: { calls } });
      refused += answers.filter(({ status }) => status !== 200).length;
    });
    if (!isDone) return;
  }
  report(tasks.length, refused, "cancelled");
}

export async function retryAll(tasks: readonly TaskView[]): Promise<void> {
  let refused = 0;
  const left = [...tasks];
  async function run(): Promise<void> {
    for (let task = left.shift(); task !== undefined; task = left.shift()) {
      const { taskId: id } = task;
      await ask("retry", { params: { id } }).catch(() => refused++);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  report(tasks.length, refused, "queued again");
}

/** What goes wrong is said. Answers whether it went well. */
export async function quietly(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    say((error as Error).message, true);
    return false;
  }
}

function report(all: number, refused: number, done: string): void {
  say(`${plural(all - refused, "task")} ${all - refused === 1 ? "is" : "are"} ${done}.`);
  if (refused > 0) say(`${plural(refused, "task")} stayed as they were: they had moved on meanwhile.`, true);
}

export const retry = (id: string): Promise<boolean> =>
  doing(() => ask("retry", { params: { id } }), `${id} is queued again.`);
