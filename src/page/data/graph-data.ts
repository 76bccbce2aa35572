/**
 * Tasks and what they wait for, of a plan, a batch or a tree, as nodes and edges.
 */
import { useMemo } from "preact/hooks";
import type { PlanView, TaskView } from "../../protocol/generated/index.ts";
import { useCall } from "./use-call.ts";

export type GraphNode = {
  readonly id: string;
  /** What it is called in the plan, or its id. */
  readonly name: string;
  /** What it does, where the name does not say it. */
  readonly action?: string;
  readonly state: string;
  /** What it waits for. */
  readonly after: readonly string[];
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly note?: string;
};
export type GraphKind = "plan" | "group" | "tree";
export type Graph = { readonly nodes: readonly GraphNode[]; readonly isCut: boolean; readonly plan: PlanView | null };

const NODES_MAX = 1000;

const needsOf = ({ needs = [] }: TaskView): readonly string[] =>
  Array.isArray(needs) ? (needs as readonly string[]) : Object.values(needs as Readonly<Record<string, string>>);

function nodeOf(task: TaskView): GraphNode {
  const { taskId, action = "", state, parent, startedAt, completedAt, error } = task;
  return {
    id: taskId,
    name: taskId,
    action,
    state,
    after: [...(parent === undefined ? [] : [parent]), ...needsOf(task)],
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(completedAt === undefined ? {} : { endedAt: completedAt }),
    ...(error === undefined ? {} : { note: error }),
  };
}

function graphOfPlan(plan: PlanView): Graph {
  const ids = new Map(plan.tasks.map(({ name, taskId }) => [name, taskId]));
  const nodes = plan.tasks.slice(0, NODES_MAX).map(
    ({ name, taskId, state, needs, startedAt, endedAt, reason }): GraphNode => ({
      id: taskId,
      name,
      state,
      after: needs.flatMap((need) => ids.get(need) ?? []),
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(reason === undefined ? {} : { note: reason }),
    }),
  );
  return { nodes, isCut: plan.tasks.length > NODES_MAX, plan };
}

export const isGraphKind = (text: string): text is GraphKind => text === "plan" || text === "group" || text === "tree";

/** What is called so: a tree by its root, a batch, or a plan. The error is that of a plan that there is not either. */
export function useGraphKind(id: string): { kind: GraphKind | null; error: Error | null } {
  const tree = useCall("tasks", { query: { root: id, limit: 1 } });
  const group = useCall("tasks", { query: { group: id, limit: 1 } });
  const isNone = [tree, group].every(({ data }) => data?.tasks.length === 0);
  const plan = useCall("plan", isNone ? { params: { id }, query: {} } : null);
  if (tree.data?.tasks.length === 1) return { kind: "tree", error: null };
  if (group.data?.tasks.length === 1) return { kind: "group", error: null };
  return { kind: plan.data === null ? null : "plan", error: tree.error ?? group.error ?? plan.error };
}

export function useGraph(kind: GraphKind, id: string): { graph: Graph | null; error: Error | null } {
  const plan = useCall("plan", kind === "plan" ? { params: { id }, query: {} } : null);
  const filter = kind === "group" ? { group: id } : { root: id };
  const tasks = useCall("tasks", kind === "plan" ? null : { query: { ...filter, limit: NODES_MAX } });
  const graph = useMemo((): Graph | null => {
    if (plan.data !== null) return graphOfPlan(plan.data);
    if (tasks.data === null) return null;
    return { nodes: tasks.data.tasks.map(nodeOf), isCut: tasks.data.nextCursor !== undefined, plan: null };
  }, [plan.data, tasks.data]);
  return { graph, error: plan.error ?? tasks.error };
}

/** How long a node took, or has taken so far; one that has not begun counts as the mean of those that have. */
function durations(nodes: readonly GraphNode[], now: number): ReadonlyMap<string, number> {
  const known = new Map<string, number>();
  for (const { id, startedAt, endedAt } of nodes)
    if (startedAt !== undefined) {
      const end = endedAt === undefined ? now : Date.parse(endedAt);
      known.set(id, Math.max(1, end - Date.parse(startedAt)));
    }
  const mean = known.size === 0 ? 1000 : [...known.values()].reduce((sum, ms) => sum + ms, 0) / known.size;
  return new Map(nodes.map(({ id }) => [id, known.get(id) ?? mean]));
}

/** The chain of tasks that takes longest from the first to the last: nothing ends sooner than it does. */
export function criticalPath(nodes: readonly GraphNode[], now: number): ReadonlySet<string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ms = durations(nodes, now);
  const best = new Map<string, { readonly total: number; readonly before: string | null }>();
  function bestOf(id: string): { readonly total: number; readonly before: string | null } {
    const known = best.get(id);
    if (known !== undefined) return known;
    // Set first, so that data with a cycle, which the server refuses, could not hang the page.
    best.set(id, { total: 0, before: null });
    let found: { total: number; before: string | null } = { total: 0, before: null };
    for (const other of byId.get(id)?.after ?? []) {
      if (!byId.has(other)) continue;
      const { total } = bestOf(other);
      if (total > found.total) found = { total, before: other };
    }
    const sum = { total: found.total + (ms.get(id) ?? 0), before: found.before };
    best.set(id, sum);
    return sum;
  }
  let last: string | null = null;
  for (const { id } of nodes) if (last === null || bestOf(id).total > bestOf(last).total) last = id;
  const path = new Set<string>();
  for (let at = last; at !== null && !path.has(at); at = best.get(at)?.before ?? null) path.add(at);
  return path.size > 1 ? path : new Set();
}
