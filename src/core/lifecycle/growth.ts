/**
 * Trees that grow: children that a task submits while it runs.
 *
 * Such a child does not wait for its parent. What grows has bounds: how deep, how many of one task, and how many of
 * one root, all counted as they are submitted, so that no sequence of ends and expiries makes room again.
 *
 * A parent may wait for its children instead (`wait: "children"`): once an attempt of it is done it is parked, holding
 * nothing, until all that grew below it has ended, at any depth and however; then it is done with what that attempt
 * answered. No circle can come of it: a task that grew below one that waits may need only what grew there too, what is
 * done, and what is forgotten but for its end, none of which can wait for the one that waits.
 */

import type { Instant, Seq, TaskId } from "../base/brand.ts";
import { badField, type Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { insert, remove, sortedList } from "../collections/sorted-list.ts";
import type { AttemptReport, Submission } from "../model/commands.ts";
import type { Event, EventOf } from "../model/events.ts";
import type { Growth, Tree } from "../model/growth.ts";
import type { ReadonlyAttempt, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { type State, type Task, wentWell } from "../model/state.ts";
import { compareSeqs } from "../turn/total-orders.ts";
import { extraOf } from "./labels.ts";

/** How deep below its outermost ancestor a child of a running task may be. */
const GROWN_DEPTH_MAX = 16;
/** Children of one task, and tasks that grow from one root. */
const GROWN_CHILDREN_MAX = 1000;
const GROWN_TREE_MAX = 100_000;
/** Tasks whose last child has ended that are done in one step. */
const CLOSED_AT_ONCE_MAX = 256;

/** The parent whose attempt submits a task; a refusal where that attempt is over, or the tree may not grow further. */
export function growingParent(
  state: ReadonlyState,
  { parent: id, needs }: Submission,
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
  const circular = needs.length === 0 ? null : refusalForNeeds(state, parent, needs);
  return circular === null ? ok(parent) : fail(circular);
}
const NOTHING_GROWN = { children: 0, tree: { grown: 0 } };

/** What a child of this task may not need, since the task or one above it waits for all that grows below. */
function refusalForNeeds(state: ReadonlyState, parent: ReadonlyTask, needs: readonly TaskId[]): Refusal | null {
  const waiter = [parent, ...above(state, parent)].find(({ extra }) => extra !== null && extra.wait !== null);
  if (waiter === undefined) return null;
  for (const id of needs) {
    const need = state.tasks.get(id);
    if (need === undefined || wentWell(need.phase) || above(state, need).includes(waiter)) continue;
    const right = `that is done, or that grew below ${waiter.id} too, which waits for all that grows below it`;
    return badField("needs", id, `the id of a task ${right}`);
  }
  return null;
}

/** The tasks above one that grew, the nearest first: at most as many as it is deep. */
function above<Some extends ReadonlyTask>(state: { readonly tasks: Tasks<Some> }, task: Some): Some[] {
  const found: Some[] = [];
  for (let next = grownOn(state, task); next !== undefined; next = grownOn(state, next)) found.push(next);
  return found;
}
type Tasks<Some> = { get(id: TaskId): Some | undefined };

/** The task that submitted this one while it ran; undefined where a caller did. */
function grownOn<Some extends ReadonlyTask>({ tasks }: { readonly tasks: Tasks<Some> }, task: Some): Some | undefined {
  const { links, seq } = task;
  const parent = links === null || !links.ofRunning ? undefined : tasks.get(links.parent as TaskId);
  // A later task may have taken the id of one that was forgotten.
  return parent === undefined || parent.seq > seq ? undefined : parent;
}

/** Its parent, which runs, has one child more. */
export function grow(state: State, task: Task): void {
  const parent = grownOn(state, task) as Task;
  const growth = growthOf(parent, parent.extra?.growth?.tree ?? { root: parent.seq, grown: 0 });
  growth.children++;
  growth.tree.grown++;
  growthOf(task, growth.tree);
  countOpen(state, task, 1);
}

export function growthOf(task: Task, tree: Tree): Growth {
  const extra = extraOf(task);
  extra.growth ??= { tree, children: 0, open: 0 };
  return extra.growth;
}

/** A task that grew has ended, or runs again: all above it count it. */
export function countOpen(state: State, task: Task, by: 1 | -1): void {
  for (const one of above(state, task)) {
    const growth = one.extra?.growth ?? null;
    if (growth !== null) growth.open += by;
    watchOpen(state, one);
  }
}

/** Whether an attempt of it is done, and it waits for what grew below it. */
export const isAwaiting = ({ extra }: ReadonlyTask): boolean =>
  extra !== null && extra.wait !== null && extra.wait.answer !== null;

/** How many tasks that grew below it have not ended. */
export const openBelow = ({ extra }: ReadonlyTask): number => extra?.growth?.open ?? 0;

/** To be called whenever a task begins to wait for others, or one of those ends or runs again. */
export function watchOpen(state: State, task: Task): void {
  if (isAwaiting(task) && openBelow(task) === 0) state.closing.add(task);
  else state.closing.delete(task);
}

/** An attempt is done: so is its task, unless it waits for what grew below it. Every task costs one such literal. */
export function endDone({ task, number: attempt }: ReadonlyAttempt, report: AttemptReport, at: Instant): Event {
  const { tokens, resultHash, resultSize } = report;
  if (task.extra !== null && task.extra.wait !== null && openBelow(task) > 0)
    return { kind: "attempt-done", at, task: task.id, attempt, tokens, resultHash, resultSize };
  return { kind: "task-done", at, task: task.id, attempt, tokens, resultHash, resultSize, resultSeq: null };
}

export function noteDone(state: State, task: Task, event: EventOf<"attempt-done">): void {
  const extra = extraOf(task);
  const { attempt, resultHash, resultSize } = event;
  extra.wait = { answer: { attempt, seq: state.seq, resultHash, resultSize } };
  state.awaiting++;
  if (extra.approval !== null) extra.approval.until = -1;
  watchOpen(state, task);
}

/** It has ended, so it waits for nothing more. */
export function stopAwaiting(state: State, task: Task): void {
  if (!isAwaiting(task)) return;
  extraOf(task).wait = { answer: null };
  state.awaiting--;
  watchOpen(state, task);
}

/** Tasks that waited for what grew below them, all of which has ended. */
export function nextClosed(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.closing.size === 0) return NONE;
  const tasks = [...state.closing].sort(compareSeqs).slice(0, CLOSED_AT_ONCE_MAX);
  return tasks.flatMap(({ id, extra }): Event[] => {
    const answer = extra?.wait?.answer ?? null;
    if (answer === null) return [];
    const { attempt, seq, resultHash, resultSize } = answer;
    const result = { resultHash, resultSize, resultSeq: seq as Seq };
    return [{ kind: "task-done", at: now, task: id, attempt, tokens: null, ...result }];
  });
}
const NONE: readonly Event[] = [];

/** Lists a task among the children of its parent. */
export function listChild({ children }: State, task: Task, parent: TaskId): void {
  const list = children.get(parent) ?? sortedList<Task>(compareSeqs);
  children.set(parent, list);
  insert(list, task);
}

/** Its record goes. */
export function unlistChild({ children }: State, task: Task): void {
  const parent = task.links?.parent ?? null;
  const list = parent === null ? undefined : children.get(parent);
  if (list === undefined || parent === null) return;
  remove(list, task);
  if (list.size === 0) children.delete(parent);
}
