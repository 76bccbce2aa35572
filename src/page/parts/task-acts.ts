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

/** Why tasks stayed as they were, by their ids. */
export type Stayed = ReadonlyMap<string, string>;

/** Answers what stayed as it was; null if nothing was to be done after all. */
export async function cancelAll(tasks: readonly TaskView[]): Promise<Stayed | null> {
  const [only] = tasks;
  if (only === undefined) return null;
  const reason = await asked({
    title: tasks.length === 1 ? "Cancel this task?" : `Cancel ${plural(tasks.length, "task")}?`,
    text: `${tasks.length === 1 ? only.taskId : "What runs of them"} is stopped; what waits for ${
      tasks.length === 1 ? "it" : "them"
    } is skipped.`,
    yes: tasks.length === 1 ? "Cancel it" : "Cancel them",
    note: "Reason (may stay empty)",
    isDanger: true,
  });
  if (reason === null) return null;
  const body = reason === "" ? {} : { reason };
  const stayed = new Map<string, string>();
  for (let from = 0; from < tasks.length; from += BULK_MAX) {
    const part = tasks.slice(from, from + BULK_MAX).map(({ taskId }) => taskId);
    try {
      const calls = part.map((id) => ({ call: "cancel" as const, id, body }));
      const { answers } = await ask("bulk", { body: { calls } });
      for (const [at, { status, body: answer }] of answers.entries())
        if (status !== 200)
          stayed.set(part[at] ?? "", (answer as Partial<WireError>).error ?? `the server answered ${status}`);
    } catch (error) {
      // What is behind this part is not tried.
      for (const { taskId } of tasks.slice(from)) stayed.set(taskId, (error as Error).message);
      break;
    }
  }
  report(tasks.length, stayed, "cancelled");
  return stayed;
}

/** Answers what stayed as it was. */
export async function retryAll(tasks: readonly TaskView[]): Promise<Stayed> {
  const stayed = new Map<string, string>();
  const left = [...tasks];
  async function run(): Promise<void> {
    for (let task = left.shift(); task !== undefined; task = left.shift()) {
      const { taskId: id } = task;
      await ask("retry", { params: { id } }).catch(({ message }: Error) => stayed.set(id, message));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  report(tasks.length, stayed, "queued again");
  return stayed;
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
function report(all: number, stayed: Stayed, done: string): void {
  const [first] = stayed.values();
  const went = all - stayed.size;
  if (went > 0) say(`${plural(went, "task")} ${went === 1 ? "is" : "are"} ${done}.`);
  if (first === undefined) return;
  const [same, because] = stayed.size === 1 ? ["it was", ""] : ["they were", "the first because "];
  say(`${plural(stayed.size, "task")} stayed as ${same}: ${because}${first}`, true);
}

export const retry = (id: string): Promise<boolean> =>
  doing(() => ask("retry", { params: { id } }), `${id} is queued again.`);
