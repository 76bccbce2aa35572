/**
 * What somebody does to tasks, one or many: asked first, done, and said.
 *
 * Many are cancelled by as few calls as it takes; each is answered by itself, and what was refused is told.
 */
import type { TaskView } from "../../protocol/generated/index.ts";
import { BULK_MAX, type WireError } from "../../protocol/wire/index.ts";
import { ask } from "../data/ask.ts";
import { doing, say } from "../data/say.ts";
import { plural } from "../data/words.ts";
import { asked } from "./dialog.tsx";

/** So many calls are out at once. */
const AT_ONCE = 6;

/** Answers whether it was done, and not left as it is. */
export async function cancelAll(tasks: readonly TaskView[]): Promise<boolean> {
  const [only] = tasks;
  if (only === undefined) return false;
  const reason = await asked({
    title: tasks.length === 1 ? "Cancel this task?" : `Cancel ${plural(tasks.length, "task")}?`,
    text: `${tasks.length === 1 ? only.taskId : "What runs of them"} is stopped; what waits for ${
      tasks.length === 1 ? "it" : "them"
    } is skipped.`,
    yes: tasks.length === 1 ? "Cancel it" : "Cancel them",
    note: "Reason (may stay empty)",
    isDanger: true,
  });
  if (reason === null) return false;
  const body = reason === "" ? {} : { reason };
  const refused: string[] = [];
  for (let from = 0; from < tasks.length; from += BULK_MAX) {
    const calls = tasks
      .slice(from, from + BULK_MAX)
      .map(({ taskId }) => ({ call: "cancel" as const, id: taskId, body }));
    const isDone = await quietly(async () => {
      const { answers } = await ask("bulk", { body: { calls } });
      for (const { status, body: answer } of answers)
        if (status !== 200) refused.push((answer as Partial<WireError>).error ?? `the server answered ${status}`);
    });
    if (!isDone) return false;
  }
  report(tasks.length, refused, "cancelled");
  return true;
}

export async function retryAll(tasks: readonly TaskView[]): Promise<boolean> {
  const refused: string[] = [];
  const left = [...tasks];
  async function run(): Promise<void> {
    for (let task = left.shift(); task !== undefined; task = left.shift()) {
      const { taskId: id } = task;
      await ask("retry", { params: { id } }).catch(({ message }: Error) => refused.push(message));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  report(tasks.length, refused, "queued again");
  return true;
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

/** What was refused is told with the reason of the first. */
function report(all: number, refused: readonly string[], done: string): void {
  const [first] = refused;
  const went = all - refused.length;
  if (went > 0) say(`${plural(went, "task")} ${went === 1 ? "is" : "are"} ${done}.`);
  if (first === undefined) return;
  const [stayed, because] = refused.length === 1 ? ["it was", ""] : ["they were", "the first because "];
  say(`${plural(refused.length, "task")} stayed as ${stayed}: ${because}${first}`, true);
}

export const retry = (id: string): Promise<boolean> =>
  doing(() => ask("retry", { params: { id } }), `${id} is queued again.`);
