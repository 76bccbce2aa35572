/**
 * What people may ask of a task that is there: cancel it, run it again, change its priority or deadline.
 *
 * The first end counts: cancelling what has ended is a conflict, whatever the second end would have been.
 */
import type { Instant, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { neededBy, pinFor } from "../fleet/placement.ts";
import type { CommandOf, Decided, Warning } from "../model/commands.ts";
import type { ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { hasEnded, wentWell } from "../model/state.ts";
import { requiredOf } from "./approval.ts";
import { hasLeft } from "./files.ts";
import { stopByFor } from "./stop.ts";
import { dependenciesOf, UNTIED } from "./transitions.ts";

function findLive(state: ReadonlyState, id: TaskId): Result<ReadonlyTask, Refusal> {
  const task = state.tasks.get(id);
  if (task !== undefined && !hasEnded(task)) return ok(task);
  const ended = task ?? state.tombstones.get(id);
  return fail(
    ended === undefined ? { type: "task-unknown", task: id } : { type: "task-ended", task: id, state: ended.phase },
  );
}

export function decideCancel(state: ReadonlyState, command: CommandOf<"cancel-task">, now: Instant): Decided {
  const { task: id, reason } = command;
  const found = findLive(state, id);
  if (!found.ok) return found;
  const task = found.value;
  // An attempt that stops for another reason already keeps the grace it was given.
  const isStopping = task.attempt?.state === "stopping";
  const stopBy =
    task.attempt === null ? null : isStopping ? (task.attempt.stopBy as Instant) : stopByFor(state, task.attempt, now);
  return ok({ events: [{ kind: "task-cancelled", at: now, task: id, reason: reason ?? "cancelled", stopBy }] });
}

/** `revived` run again before it does, and so have not ended any more. */
export function decideRetry(
  state: ReadonlyState,
  { task: id }: CommandOf<"retry-task">,
  now: Instant,
  revived: ReadonlySet<TaskId> = NONE,
): Decided {
  const task = state.tasks.get(id);
  if (task === undefined) {
    const stone = state.tombstones.get(id);
    return stone === undefined
      ? fail({ type: "task-unknown", task: id })
      : fail({ type: "task-ended", task: id, state: stone.phase, expired: true });
  }
  if (!hasEnded(task) || wentWell(task.phase)) return fail({ type: "task-not-ended", task: id, state: task.phase });
  const waitFor: TaskId[] = [];
  const ties = task.links ?? UNTIED;
  for (const dependency of dependenciesOf(ties)) {
    const found = state.tasks.get(dependency) ?? state.tombstones.get(dependency);
    // A later task may have taken the id of one that was forgotten.
    if (found === undefined || found.seq > task.seq || wentWell(found.phase)) continue;
    if (!hasEnded(found) || revived.has(dependency)) waitFor.push(dependency);
    else if (task.requirements.onDependencyFailure === "skip") {
      return fail({ type: "dependency-failed", task: id, dependency, state: found.phase });
    }
  }
  const artifact = task.links?.artifact ?? null;
  const isThere = artifact === null || (ties.parent !== null && hasLeft(state.tasks.get(ties.parent), artifact));
  // What must be approved is parked when it is found to wait for nothing else.
  const runnable = waitFor.length === 0 && isThere && requiredOf(task) === null;
  const pin = runnable ? pinFor(state, { ...ties, lastWorker: task.lastWorker }, neededBy(state, task)) : null;
  return ok({ events: [{ kind: "task-retried", at: now, task: id, waitFor, runnable, pin }] });
}

const NONE: ReadonlySet<TaskId> = new Set();

export function decidePatch(state: ReadonlyState, command: CommandOf<"patch-task">, now: Instant): Decided {
  const found = findLive(state, command.task);
  if (!found.ok) return found;
  const task = found.value;
  const { deadline: given } = command;
  if (given !== undefined && given !== null && given <= now) {
    return fail({ type: "past-deadline", field: "deadline", deadline: given, now });
  }
  const asked = command.priority ?? task.priority;
  const priority = Math.max(task.project.settings.maxPriority, asked);
  const former = task.deadline < 0 ? null : (task.deadline as Instant);
  const deadline = given === undefined ? former : given;
  const warnings: Warning[] = priority === asked ? [] : [{ type: "priority-clamped", asked, given: priority }];
  if (priority === task.priority && deadline === former)
    return ok({ events: [], id: task.id, repeated: true, warnings });
  return ok({ events: [{ kind: "task-patched", at: now, task: task.id, priority, deadline }], id: task.id, warnings });
}
