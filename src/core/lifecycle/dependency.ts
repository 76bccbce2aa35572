/**
 * Order among the tasks of one batch, and what the end of a task means for those that wait for it.
 *
 * Items of a batch may need each other by id in any order. They are submitted in an order in which every
 * dependency comes first; items on a cycle are refused with the cycle's path, and so are those that
 * depend on a refused one. Outside a batch a cycle cannot arise, since a dependency must be known before
 * the task that names it.
 *
 * When a task ends its dependents are notified in slices, so that a parent of a hundred thousand never stops
 * the world. A dependent is judged when the last of its dependencies has ended: then it is skipped if one of them
 * ended badly, and queued if not. One of them may run again meanwhile; then the dependent waits for that end too.
 */

import type { Instant, Seq, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { front } from "../collections/sorted-list.ts";
import { neededBy, pinFor } from "../fleet/placement.ts";
import type { Event } from "../model/events.ts";
import type { End } from "../model/extra.ts";
import type { ReadonlyLinks, ReadonlyState, ReadonlyTask, ReadonlyTombstone } from "../model/read-only.ts";
import { type EndPhase, hasEnded, wentWell } from "../model/state.ts";
import { skipReason } from "./admission.ts";
import { parked, requiredOf } from "./approval.ts";
import { hasLeft } from "./files.ts";
import { dependenciesOf, UNTIED } from "./transitions.ts";

const NOTIFIED_AT_ONCE_MAX = 256;
const NONE: readonly Event[] = [];

/** The next slice of dependents, notified of a dependency's end. */
export function nextNotified(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.unnotified.size === 0) return NONE;
  for (const task of state.unnotified) {
    const links = task.links as ReadonlyLinks;
    const slice = links.dependents.slice(links.notified, links.notified + NOTIFIED_AT_ONCE_MAX);
    const events: Event[] = [
      { kind: "dependents-notified", at: now, task: task.id, count: slice.length, rejoins: true },
    ];
    for (const dependent of slice) {
      const event = consequence(state, task, dependent, now);
      if (event !== null) events.push(event);
    }
    return events;
  }
  return NONE;
}

function consequence(state: ReadonlyState, ended: ReadonlyTask, dependent: ReadonlyTask, now: Instant): Event | null {
  const links = dependent.links as ReadonlyLinks;
  if (dependent.phase !== "waiting" || links.unmet > 1) return null;
  const dependencies = dependenciesOf(links).flatMap((id) => knownTo(state, dependent, id) ?? []);
  if (dependencies.some((one) => !hasEnded(one))) return null;
  const bad = dependencies.find(({ phase }) => !wentWell(phase));
  if (bad !== undefined && dependent.requirements.onDependencyFailure === "skip") {
    const cause = ("end" in bad ? (bad.end as End).seq : bad.endSeq) as Seq;
    const reason = skipReason(bad.id, bad.phase as EndPhase);
    const skipped = { task: dependent.id, cause, dependency: bad.id, reason, attempt: null, tokens: null };
    return { kind: "task-skipped", at: now, ...skipped };
  }
  const isLeft = links.parent === ended.id && hasLeft(ended, links.artifact);
  if ((links.artifact !== null && !isLeft) || dependent.restUntil > now) return null;
  return queued(state, dependent, (ended.end as End).seq as Seq, now);
}

/** The task or tombstone that a task names by this id: a later one may have taken the id of one that was forgotten. */
function knownTo(state: ReadonlyState, { seq }: ReadonlyTask, id: TaskId): ReadonlyTask | ReadonlyTombstone | null {
  const found = state.tasks.get(id) ?? state.tombstones.get(id);
  return found === undefined || found.seq > seq ? null : found;
}

/** The event that makes a task runnable, with the worker it would rather run on; or that has it wait for approval. */
export function queued(state: ReadonlyState, task: ReadonlyTask, cause: Seq | null, now: Instant): Event {
  const required = requiredOf(task);
  if (required !== null) return parked(task.id, required, now);
  const ties = task.links ?? UNTIED;
  const pin = pinFor(state, { ...ties, lastWorker: task.lastWorker }, neededBy(state, task));
  return { kind: "task-queued", at: now, task: task.id, cause, pin };
}

type Item = { readonly id: string | null; readonly parent: string | null; readonly needs: readonly string[] };

/** The order in which a batch is submitted, by index, and the items that cannot be. */
export function batchOrder(items: readonly Item[]): { order: number[]; refused: Map<number, Refusal> } {
  const indexOf = new Map<string, number>();
  for (const [index, { id }] of items.entries()) if (id !== null && !indexOf.has(id)) indexOf.set(id, index);
  const edges = items.map((item, index) =>
    [item.parent, ...item.needs].flatMap((id) => {
      const target = id === null ? undefined : indexOf.get(id);
      return target === undefined || (target === index && id !== item.id) ? [] : [target];
    }),
  );
  const order: number[] = [];
  const refused = new Map<number, Refusal>();
  const mark = new Uint8Array(items.length);
  for (let start = 0; start < items.length; start++) visit(start);
  for (const index of order) {
    const bad = edges[index]?.find((target) => refused.has(target));
    if (bad === undefined || refused.has(index)) continue;
    const dependency = items[bad]?.id ?? "";
    refused.set(index, {
      type: "dependency-refused",
      field: dependency === items[index]?.parent ? "parent" : "needs",
      dependency,
    });
  }
  return { order: order.filter((index) => !refused.has(index)), refused };

  /** Depth first without recursion: 1 is on the path, 2 is done. */
  function visit(start: number): void {
    const path: { index: number; next: number }[] = [];
    if (mark[start] === 0) path.push({ index: start, next: 0 });
    while (path.length > 0) {
      const top = path[path.length - 1] as { index: number; next: number };
      mark[top.index] = 1;
      const target = edges[top.index]?.[top.next++];
      if (target === undefined) {
        mark[top.index] = 2;
        order.push(top.index);
        path.pop();
      } else if (mark[target] === 1)
        refuseCycle(
          path.map(({ index }) => index),
          target,
        );
      else if (mark[target] === 0) path.push({ index: target, next: 0 });
    }
  }

  function refuseCycle(path: readonly number[], target: number): void {
    const cycle = path.slice(path.indexOf(target));
    const names = [...cycle, target].map((index) => items[index]?.id ?? "");
    for (const index of cycle) if (!refused.has(index)) refused.set(index, { type: "cycle", path: names });
  }
}

/** Tasks that wait for nothing any more, a slice of them: their artifact has appeared. */
export function nextReady(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.ready.size === 0) return NONE;
  return front(state.ready, NOTIFIED_AT_ONCE_MAX).map((task) => queued(state, task, null, now));
}
