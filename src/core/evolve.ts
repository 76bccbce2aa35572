/**
 * (state, event) → state, in place.
 *
 * The only writer. No checks, no choices, no clock: an event is a fact and has been checked by
 * `decide`. Replaying the same events gives the same state, byte for byte.
 */

import type { Instant } from "./base/brand.ts";
import { unreachable } from "./base/result.ts";
import { peek, shift } from "./collections/fifo.ts";
import { changeConfig, putProject } from "./config-change.ts";
import { zonePin } from "./fleet/pin.ts";
import { countFilter } from "./fleet/worker-filter.ts";
import { addWorker, dropWorker, newWorker, offering, offerOf, reshapeWorker } from "./fleet/worker-tree.ts";
import { forgetUnapproved, noteApproved } from "./lifecycle/approval.ts";
import { attach, detach } from "./lifecycle/attempt.ts";
import { watchTabs } from "./lifecycle/browser-tab.ts";
import { putFiles } from "./lifecycle/files.ts";
import { forgiveGate, noteAnswered, openGate, removeGate, throttle } from "./lifecycle/gates.ts";
import { noteRound } from "./lifecycle/loop.ts";
import { countsAsLoss, isUnbegun } from "./lifecycle/loss.ts";
import { evolvePermit, restartGates } from "./lifecycle/permits.ts";
import { evolvePlan } from "./lifecycle/plans.ts";
import { evolveSchedule } from "./lifecycle/schedule.ts";
import { setTimer } from "./lifecycle/timers.ts";
import {
  armWake,
  awaitChildren,
  endTask,
  forget,
  letGo,
  meetArtifact,
  notifyDependents,
  parkTask,
  queueTask,
  reviveTask,
  setPhase,
  setPin,
  submitTask,
  watchPins,
} from "./lifecycle/transitions.ts";
import { noteDetails, noteUnsaid } from "./lifecycle/usage.ts";
import { type Event, type EventOf, type TaskSubmitted, taskOf } from "./model/events.ts";
import type { End, Loop } from "./model/extra.ts";
import type { Attempt, Project, State, Task, TaskExtra, Worker } from "./model/state.ts";
import { noteUsage, settle, settleUnbegun } from "./turn/budget.ts";
import { chargeProject, comeBack, noteServed } from "./turn/fairness.ts";
import { dropHold, takeHold } from "./turn/hold.ts";
import { requeue, reshapeTasks, settleQueue } from "./turn/queue.ts";

/** Answers the number of the last event before it about the same task: what led to it, unless it says otherwise. */
export function evolve(state: State, event: Event): number | null {
  state.seq++;
  state.at = event.at;
  if (event.kind === "task-submitted") {
    submitTask(state, event);
    return null;
  }
  const id = taskOf(event);
  const task = id === null ? undefined : state.tasks.get(id);
  const before = task === undefined ? null : task.lastSeq;
  apply(state, event, task);
  // A call draws on its task, and is none of its own events.
  if (task !== undefined && event.kind !== "permit-asked") task.lastSeq = state.seq;
  return before;
}

function apply(state: State, event: Exclude<Event, TaskSubmitted>, task: Task | undefined): void {
  switch (event.kind) {
    case "engine-started":
      return beginEngine(state);
    case "node-joined":
      return meetNode(state, event);
    case "config-changed":
      return changeConfig(state, event.config, event.patch);
    case "project-put":
      return putProject(state, event.project, event.settings, event.source);
    case "pause-changed":
      return changePause(state, event);
    case "artifact-appeared":
      return meetArtifact(state, event.artifact);
    case "tabs-moved":
      return moveTabs(state, event);
    case "worker-joined":
    case "worker-changed":
    case "worker-left":
      return applyToWorker(state, event);
    case "permit-asked":
    case "permit-granted":
    case "permit-dropped":
    case "permit-settled":
      return evolvePermit(state, event);
    case "gate-throttled":
      return throttle(state, event);
    case "gate-opened":
      return openGate(state, event.gate);
    case "gate-reset":
      return forgiveGate(state, event.gate);
    case "gate-removed":
      return removeGate(state, event.gate);
    case "callback-asked":
      state.callbacks.wanted.set(event.task, event.host);
      return;
    case "callback-settled":
      state.callbacks.due.delete(event.end);
      return;
    case "schedule-put":
    case "schedule-moved":
    case "schedule-removed":
      return evolveSchedule(state, event);
    case "plan-put":
    case "plan-paused":
    case "plan-resumed":
    case "plan-removed":
    case "plan-renewed":
    case "plan-cut":
      return evolvePlan(state, event);
    case "tasks-rejected":
      return countRejected(state, event.counts);
    case "results-expired":
      return expireResults(state, event);
    case "tombstones-forgotten":
      return forgetTombstones(state, event.count);
    default:
      return applyToTask(state, task as Task, event);
  }
}

/** Agents of which it is known how many of their tasks found no room: names are free, so there is an end to it. */
const REJECTED_AGENTS_MAX = 1000;

function countRejected({ totals, rejected }: State, counts: EventOf<"tasks-rejected">["counts"]): void {
  for (const [agent, count] of counts) {
    totals.rejected += count;
    const before = rejected.get(agent) ?? 0;
    rejected.delete(agent);
    rejected.set(agent, before + count);
  }
  for (const [agent] of rejected) {
    if (rejected.size <= REJECTED_AGENTS_MAX) return;
    rejected.delete(agent);
  }
}

type TaskEvent = Exclude<
  Extract<Event, { task: unknown }>,
  { kind: "task-submitted" | `permit-${string}` | `callback-${string}` }
>;

function applyToTask(state: State, task: Task, event: TaskEvent): void {
  switch (event.kind) {
    case "task-queued":
      return queueTask(state, task, event.at, event.pin);
    case "task-assigned":
      return assign(state, task, event);
    case "task-done":
    case "task-failed":
    case "task-cancelled":
    case "task-skipped":
      return applyEnd(state, task, event);
    case "task-retried":
      reviveTask(state, task, event.waitFor, event.at);
      forgetUnapproved(task);
      return event.runnable ? queueTask(state, task, event.at, event.pin) : armWake(state, task);
    case "task-patched":
      requeue(state, task, () => {
        task.priority = event.priority;
        task.deadline = event.deadline ?? -1;
      });
      return setTimer(state, task, "deadline", task.deadline);
    case "dependents-notified":
      return notifyDependents(state, task, event.count, event.rejoins);
    case "attempt-usage":
      return noteDetails(state, task, event);
    case "task-parked":
      return park(state, task, event);
    case "task-approved":
      noteApproved(task, event);
      setTimer(state, task, "approval", -1);
      return queueTask(state, task, event.at, event.pin);
    case "pin-released":
      return requeue(state, task, () => setPin(state, task, null, event.at));
    case "hold-released":
      return dropHold(state, task);
    case "hold-placed":
      return takeHold(state, task, state.fleet.byId.get(event.worker) as Worker);
    default:
      return applyToAttempt(state, task.attempt as Attempt, event);
  }
}

function assign(state: State, task: Task, event: EventOf<"task-assigned">): void {
  const { project } = task;
  const worker = state.fleet.byId.get(event.worker) as Worker;
  dropHold(state, task);
  setPhase(state, task, "assigned");
  settleQueue(state, task);
  setPin(state, task, null, event.at);
  task.attempts = event.attempt;
  task.lastWorker = worker.id;
  task.startedAt = event.at;
  state.cursor = worker.id;
  noteServed(state, project);
  const attempt: Attempt = {
    task,
    number: event.attempt,
    worker,
    assignedAt: event.at,
    charge: event.charge,
    express: event.rank.express,
    state: "assigned",
    startedAt: -1,
    reserve: event.reserve,
    reported: 0,
    permitted: 0,
    permitUsage: null,
    known: false,
    gateTold: false,
    permits: null,
    stopCause: null,
    stopBy: -1,
    index: -1,
  };
  attach(state, attempt, state.seq);
  chargeProject(state, project, event.charge, event.at);
  project.starts.add(1, event.at);
  state.totals.starts++;
  state.totals.waitMs += event.at - task.runnableAt;
}

type AttemptEvent = EventOf<
  | ("attempt-started" | "attempt-used" | "attempt-stopping" | "attempt-stopped" | "attempt-failed" | "attempt-lost")
  | ("round-ended" | "attempt-files" | "attempt-done")
>;

function applyToAttempt(state: State, attempt: Attempt, event: AttemptEvent): void {
  const { task } = attempt;
  switch (event.kind) {
    case "attempt-started":
      attempt.state = "running";
      attempt.startedAt = event.at;
      setPhase(state, task, "running");
      if (task.requirements.timeoutMs !== null)
        setTimer(state, task, "timeout", event.at + task.requirements.timeoutMs, attempt);
      return;
    case "attempt-used":
      attempt.reported = event.tokens;
      attempt.known = true;
      return noteUsage(state, attempt);
    case "attempt-stopping":
      return stopAttempt(state, attempt, event.cause, event.stopBy);
    case "attempt-stopped":
      if (event.unbegun) takeBack(state, attempt, event.at);
      else release(state, attempt, event.tokens, event.at);
      return settleQueue(state, task);
    case "attempt-files":
      return putFiles(state, task, event.files);
    case "attempt-failed":
      task.ownFailures++;
      return rest(state, attempt, event);
    case "attempt-lost":
      if (event.cause === "requeue") task.requeues++;
      else if (event.cause === "rate-limited") task.throttles++;
      else if (countsAsLoss(event.cause)) task.losses++;
      task.estimate = event.estimate;
      return rest(state, attempt, event);
    case "round-ended":
      return goRound(state, attempt, event);
    case "attempt-done":
      awaitChildren(state, task, event);
      return answer(state, attempt, event);
    default:
      return unreachable(event);
  }
}

function stopAttempt(state: State, attempt: Attempt, cause: NonNullable<Attempt["stopCause"]>, stopBy: Instant): void {
  attempt.state = "stopping";
  attempt.stopCause = cause;
  attempt.stopBy = stopBy;
  setTimer(state, attempt.task, "timeout", -1);
  setTimer(state, attempt.task, "stop", stopBy, attempt);
}

/** Back to the queue, with the age it had, after a rest. */
function rest(state: State, attempt: Attempt, event: EventOf<"attempt-failed" | "attempt-lost">): void {
  const { task } = attempt;
  // The phase first: a project that still has something to do has not been idle.
  setPhase(state, task, "queued");
  task.restUntil = event.restUntil > event.at ? event.restUntil : -1;
  if (event.kind === "attempt-lost" && isUnbegun(event)) takeBack(state, attempt, event.at);
  else release(state, attempt, event.tokens, event.at);
  armWake(state, task);
  settleQueue(state, task);
}

/** Back to the queue as the next iteration, with the age it had. */
function goRound(state: State, attempt: Attempt, event: EventOf<"round-ended">): void {
  const { task } = attempt;
  setPhase(state, task, "queued");
  release(state, attempt, event.tokens, event.at);
  noteRound(attempt, "again", event.note);
  const { max, rounds } = (task.extra as TaskExtra).loop as Loop;
  // The last round is followed by the end of the task, and no other iteration.
  if (rounds.length < max) task.iteration++;
  setPin(state, task, event.pin, event.at);
  settleQueue(state, task);
}

function park(state: State, task: Task, event: EventOf<"task-parked">): void {
  parkTask(state, task, event);
  if (event.attempt !== null) release(state, task.attempt as Attempt, event.tokens, event.at);
}

function release(state: State, attempt: Attempt, tokens: number | null, at: Instant): void {
  settle(state, attempt, tokens, at);
  letGoOf(state, attempt, at);
  if (attempt.startedAt < 0) return;
  state.totals.runMs += at - attempt.startedAt;
  state.totals.ends++;
}

/** Of an attempt that never began. */
function takeBack(state: State, attempt: Attempt, at: Instant): void {
  settleUnbegun(state, attempt, at);
  letGoOf(state, attempt, at);
}

function letGoOf(state: State, attempt: Attempt, at: Instant): void {
  noteUnsaid(state, attempt, at);
  detach(state, attempt);
  setTimer(state, attempt.task, "timeout", -1);
  setTimer(state, attempt.task, "stop", -1);
}

/** Its work is done. */
function answer(state: State, attempt: Attempt, { tokens, at }: EventOf<"task-done" | "attempt-done">): void {
  if (attempt.task.requirements.provider !== null) noteAnswered(state, attempt);
  release(state, attempt, tokens, at);
  noteRound(attempt, "done", null);
}

function applyEnd(
  state: State,
  task: Task,
  event: EventOf<"task-done" | "task-failed" | "task-cancelled" | "task-skipped">,
): void {
  const { attempt } = task;
  switch (event.kind) {
    case "task-done": {
      const { at, resultHash, resultSize } = event;
      if (event.resultSeq === null) answer(state, attempt as Attempt, event);
      const resultSeq = resultHash === null ? null : (event.resultSeq ?? state.seq);
      return endTask(state, task, "done", { at, seq: state.seq, error: null, resultHash, resultSize, resultSeq });
    }
    case "task-failed":
      if (event.expired) state.totals.expired++;
      if (event.attempt !== null) release(state, attempt as Attempt, event.tokens, event.at);
      else if (attempt !== null && event.stopBy !== null) stopAttempt(state, attempt, "deadline", event.stopBy);
      return endTask(state, task, "failed", withoutResult(state, event));
    case "task-cancelled":
      if (attempt !== null && event.stopBy !== null) stopAttempt(state, attempt, "cancelled", event.stopBy);
      return endTask(state, task, "cancelled", withoutResult(state, event));
    case "task-skipped":
      if (event.attempt !== null) release(state, attempt as Attempt, event.tokens, event.at);
      return endTask(state, task, "skipped", withoutResult(state, event));
    default:
      return unreachable(event);
  }
}

const withoutResult = (state: State, event: { readonly at: Instant; readonly reason: string }): End => ({
  at: event.at,
  seq: state.seq,
  error: event.reason,
  resultHash: null,
  resultSize: 0,
  resultSeq: null,
});

function changePause(state: State, event: EventOf<"pause-changed">): void {
  if (event.scope === "fleet") {
    state.paused = event.paused;
  } else if (event.scope === "project") {
    const project = state.projects.get(event.id as Project["id"]) as Project;
    project.status = event.paused ? "paused" : "active";
    // A pause banks no credit either: it comes back at the level last served.
    if (!event.paused) comeBack(state, project);
    if (event.paused && project.hold !== null) dropHold(state, project.hold.task);
  } else {
    const task = state.tasks.get(event.id as Task["id"]) as Task;
    task.paused = event.paused;
    if (event.paused) dropHold(state, task);
    settleQueue(state, task);
  }
}

function applyToWorker(state: State, event: EventOf<"worker-joined" | "worker-changed" | "worker-left">): void {
  const { fleet, shapes } = state;
  const known = fleet.byId.get(event.worker);
  const zoneBefore = known?.zone ?? null;
  if (event.kind === "worker-left") {
    const worker = known as Worker;
    if (worker.hold !== null) dropHold(state, worker.hold.task);
    if (event.lost && worker.kind !== "local") {
      reshapeWorker(fleet, shapes, worker, () => {
        worker.status = "unreachable";
      });
    } else drop(state, worker);
  } else {
    const { slots, capabilities, cpu, memory, worktrees, zone, status } = event;
    const note = event.kind === "worker-changed" ? event.note : null;
    const offer = offerOf({ slots, capabilities, cpu, memory, worktrees, zone, status, note });
    if (event.kind === "worker-joined") {
      if (known !== undefined) drop(state, known);
      const { worker: id, workerKind: kind, session, at: joinedAt, endpoint, path, takes } = event;
      const target = endpoint === null ? null : { endpoint, path };
      if (countFilter(fleet, takes, 1)) reshapeTasks(state);
      addWorker(fleet, shapes, newWorker({ id, kind, session, target, takes, offered: slots, joinedAt }, offer));
    } else {
      const worker = known as Worker;
      if (worker.hold !== null) dropHold(state, worker.hold.task);
      reshapeWorker(fleet, shapes, worker, () => Object.assign(worker, offer));
    }
  }
  watchTabs(state);
  watchPins(state, event.worker);
  for (const zone of new Set([zoneBefore, fleet.byId.get(event.worker)?.zone ?? null]))
    if (zone !== null) watchPins(state, zonePin(zone));
}

function drop(state: State, worker: Worker): void {
  dropWorker(state.fleet, state.shapes, worker);
  if (countFilter(state.fleet, worker.takes, -1)) reshapeTasks(state);
}

/** The new owner's own event comes next. */
/** Of nodes that came and went the oldest are forgotten. */
const NODES_MAX = 64;

function meetNode({ cluster }: State, { node, url, key, leads }: EventOf<"node-joined">): void {
  const { nodes } = cluster;
  nodes.delete(node);
  nodes.set(node, { url, key });
  for (const oldest of nodes.keys()) if (nodes.size > NODES_MAX) nodes.delete(oldest);
  if (leads) cluster.leader = node;
}

/** A node that leads says so right behind it. */
function beginEngine(state: State): void {
  state.cluster.leader = null;
  restartGates(state);
}

function moveTabs(state: State, { worker: id, capabilities: moved }: EventOf<"tabs-moved">): void {
  const worker = state.fleet.byId.get(id) as Worker;
  const offer = offering(worker.capabilities.filter((capability) => !moved.includes(capability)));
  if (worker.hold !== null) dropHold(state, worker.hold.task);
  reshapeWorker(state.fleet, state.shapes, worker, () => Object.assign(worker, offer));
  watchTabs(state);
  watchPins(state, id);
}

/** Where the event says that none stays, none does: an older log let go of tasks that others named. */
function expireResults(state: State, { count, kept, of }: EventOf<"results-expired">): void {
  for (let left = count; left > 0; ) {
    const entry = shift(of === "all" ? firstOfAll(state) : of === "failures" ? state.endedBadly : state.ended);
    if (entry === undefined) return;
    // A task that ran again since has a newer entry.
    if (entry.task.end !== entry.end) continue;
    letGo(state, entry.task, kept > 0);
    left--;
  }
}

/** The list that begins with the oldest end of all. */
function firstOfAll({ ended, endedBadly }: State): State["ended"] {
  const [result, failure] = [peek(ended), peek(endedBadly)];
  if (result === undefined || failure === undefined) return failure === undefined ? ended : endedBadly;
  return result.end.seq < failure.end.seq ? ended : endedBadly;
}

function forgetTombstones(state: State, count: number): void {
  for (let left = count; left > 0 && peek(state.remembered) !== undefined; left--) {
    const stone = shift(state.remembered);
    if (stone !== undefined) forget(state, stone);
  }
}
