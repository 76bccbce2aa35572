/**
 * Trees that grow: children that a task submits while it runs.
 *
 * Such a child does not wait for its parent. What grows has bounds: how deep, how many of one task, and how many of
 * one root, all counted as they are submitted, so that no sequence of ends and expiries makes room again.
 */

import type { Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { Submission } from "../model/commands.ts";
import type { Growth, Tree } from "../model/growth.ts";
import type { ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { State, Task } from "../model/state.ts";
import { extraOf } from "./labels.ts";

/** How deep below its outermost ancestor a child of a running task may be. */
const GROWN_DEPTH_MAX = 16;
/** Children of one task, and tasks that grow from one root. */
const GROWN_CHILDREN_MAX = 1000;
const GROWN_TREE_MAX = 100_000;

/** The parent whose attempt submits a task; a refusal where that attempt is over, or the tree may not grow further. */
export function growingParent(
  state: ReadonlyState,
  { parent: id }: Submission,
  attempt: number,
): Result<ReadonlyTask, Refusal> {
  const parent = id === null ? undefined : state.tasks.get(id);
  if (parent === undefined) return fail({ type: "task-unknown", task: id ?? "" });
  const { attempt: live } = parent;
  if (live === null || live.number !== attempt || live.state === "stopping")
    return fail({ type: "attempt-stale", task: parent.id, attempt, current: live?.number ?? null });
  const { children, tree } = parent.extra?.growth ?? NOTHING_GROWN;
  const bounds = [
    [parent.depth, GROWN_DEPTH_MAX, `levels of tasks above a child of ${parent.id}`],
    [children, GROWN_CHILDREN_MAX, `children of ${parent.id}, which it submitted while it ran`],
    [tree.grown, GROWN_TREE_MAX, `tasks in the tree of ${parent.id} that running tasks submitted`],
  ] as const;
  for (const [count, max, what] of bounds) if (count >= max) return fail({ type: "too-many", what, max });
  return ok(parent);
}
const NOTHING_GROWN = { children: 0, tree: { grown: 0 } };

/** Its parent, which runs, has one child more. */
export function grow(state: State, task: Task): void {
  const parent = parentOf(state, task) as Task;
  const growth = growthOf(parent, parent.extra?.growth?.tree ?? { root: parent.seq, grown: 0 });
  growth.children++;
  growth.open++;
  growth.tree.grown++;
  growthOf(task, growth.tree);
}

export function growthOf(task: Task, tree: Tree): Growth {
  const extra = extraOf(task);
  extra.growth ??= { tree, children: 0, open: 0 };
  return extra.growth;
}

/** A child of a running task has ended, or runs again. */
export function countOpen(state: State, task: Task, by: 1 | -1): void {
  const growth = parentOf(state, task)?.extra?.growth ?? null;
  if (growth !== null) growth.open += by;
}

function parentOf(state: State, { links, seq }: Task): Task | undefined {
  const parent = links === null || links.parent === null ? undefined : state.tasks.get(links.parent);
  // A later task may have taken the id of one that was forgotten.
  return parent === undefined || parent.seq > seq ? undefined : parent;
}
