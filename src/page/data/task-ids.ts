/**
 * The ids of all tasks of a project or a plan, so that what the log tells can be narrowed to them.
 */
import { useEffect, useState } from "preact/hooks";
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { ask } from "./ask.ts";
import { lookAtPulses } from "./use-call.ts";

const PAGES_MAX = 5;
const EVERY_MS = 2000;

export type TaskIds = {
  /** Null if all are wanted. */
  readonly wanted: ReadonlySet<string> | null;
  /** There are more, older ones. */
  readonly isCut: boolean;
  readonly error: Error | null;
  readonly isRead: boolean;
};
const ALL: TaskIds = { wanted: null, isCut: false, error: null, isRead: true };
type Found = Pick<TaskIds, "wanted" | "isCut">;

async function idsOfProject(project: string, signal: AbortSignal): Promise<Found> {
  const wanted = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { project, order: "newest" as const, limit: PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const { tasks, nextCursor } = await ask("tasks", { query }, signal);
    for (const { taskId } of tasks) wanted.add(taskId);
    cursor = nextCursor;
    if (cursor === undefined) break;
  }
  return { wanted, isCut: cursor !== undefined };
}

async function idsOfPlan(id: string, signal: AbortSignal): Promise<Found> {
  const { tasks } = await ask("plan", { params: { id }, query: {} }, signal);
  return { wanted: new Set(tasks.map(({ taskId }) => taskId)), isCut: false };
}

export function useTaskIds({ project, plan }: { readonly project: string; readonly plan: string }): TaskIds {
  const [found, setFound] = useState(ALL);
  useEffect(() => {
    if (project === "" && plan === "") return setFound(ALL);
    setFound({ ...ALL, wanted: new Set(), isRead: false });
    return lookAtPulses({
      everyMs: EVERY_MS,
      look: async (signal) => {
        const next = await (plan === "" ? idsOfProject(project, signal) : idsOfPlan(plan, signal));
        setFound({ ...next, error: null, isRead: true });
      },
      failed: (error) => setFound((last) => ({ ...last, error })),
    });
  }, [project, plan]);
  return found;
}
