/**
 * The rules of a task's life: it ends once, runs in one place at a time, and moves only along the arrows of
 * ARCHITECTURE.md.
 */
import type { Event } from "../core/model/index.ts";
import { type Complain, type EventOf, OUTCOMES, openBelow, type Shadow, type ShadowTask } from "./shadow.ts";

export function auditLife(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind === "task-submitted") return auditSubmit(shadow, event, complain);
  if (!("task" in event) || event.task === null || event.kind === "permit-asked") return;
  const task = shadow.tasks.get(event.task);
  if (task === undefined) return complain("known-task", `${event.kind} tells of ${event.task}, which nobody submitted`);
  if (event.kind === "task-assigned") return auditStart(task, event, complain);
  const isLate = event.kind === "task-done" && event.resultSeq !== null;
  if ("attempt" in event && event.attempt !== null && !isLate) auditAttempt(task, event, event.attempt, complain);
  if (event.kind === "attempt-done" || event.kind === "task-done") auditWait(shadow, task, event, complain);
  if (event.kind === "attempt-lost") auditLoss(shadow, task, event, complain);
  if (event.kind in OUTCOMES) auditEnd(shadow, task, event, complain);
  if (event.kind === "task-queued" && task.needsApproval) complain("approval", `${event.task} is queued unapproved`);
  if (
    event.kind === "task-approved" &&
    (task.phase !== "parked" || task.answeredBy !== null || event.at >= (task.answerBy ?? Number.POSITIVE_INFINITY))
  )
    complain("approval", `${event.task} is approved while ${task.phase}, to be answered by ${task.answerBy}`);
  if (event.kind === "round-ended" && task.rounds >= task.spec.maxRounds)
    complain("loop", `round ${task.rounds + 1} of ${event.task} ends, and it may have ${task.spec.maxRounds}`);
  if (event.kind === "task-queued") auditQueued(shadow, task, complain);
  if (event.kind === "task-retried" && (task.phase !== "ended" || task.outcome === "done")) {
    complain("ends-once", `${event.task} is retried though it is ${task.outcome ?? task.phase}`);
  }
}

function auditSubmit(shadow: Shadow, event: EventOf<"task-submitted">, complain: Complain): void {
  const former = shadow.tasks.get(event.task);
  const { remember } = shadow.config.scheduler;
  const isForgotten = former?.phase === "ended" && former.endedAt + remember <= event.at;
  if (former !== undefined && !isForgotten) {
    complain("submitted-once", `${event.task} is submitted again while it is ${former.outcome ?? former.phase}`);
  }
  if (event.deadline !== null && event.deadline <= event.at)
    complain("deadline", `${event.task} came past its deadline`);
  if (event.ofRunning) auditGrowth(shadow, event, complain);
}

const GROWN_DEPTH_MAX = 16;
const GROWN_CHILDREN_MAX = 1000;

/** Only a task that runs has such children: of its own project and agent, not too deep and not too many. */
function auditGrowth(shadow: Shadow, event: EventOf<"task-submitted">, complain: Complain): void {
  const parent = shadow.tasks.get(event.parent ?? "");
  const say = (claim: string): void => complain("growth", `${event.task}, a child of ${event.parent}, ${claim}`);
  if (parent?.phase !== "live" || parent.attempt === null) return say("grew though its parent does not run");
  const { project, agent, depth } = parent.spec;
  if (event.project !== project || event.agent !== agent) say("is of another project or agent");
  if (event.depth !== depth + 1 || event.depth > GROWN_DEPTH_MAX) say(`is ${event.depth} levels deep`);
  const siblings = [...shadow.tasks.values()].filter(
    ({ spec, seq }) => spec.ofRunning && spec.parent === event.parent && seq > parent.seq,
  );
  if (siblings.length >= GROWN_CHILDREN_MAX) say("is one too many");
  const path = [parent, ...above(shadow, parent)];
  const waiter = path.find(({ spec }) => spec.wait !== null);
  const outside = event.needs.find((id) => waiter !== undefined && isOutside(shadow, waiter, id));
  if (outside !== undefined) say(`needs ${outside}, which may wait for ${waiter?.spec.task}`);
}

function above(shadow: Shadow, task: ShadowTask): ShadowTask[] {
  const parent = task.spec.ofRunning ? shadow.tasks.get(task.spec.parent ?? "") : undefined;
  return parent === undefined || parent.seq > task.seq ? [] : [parent, ...above(shadow, parent)];
}

/** Whether a need of what grew below one that waits has not ended, and did not grow there. */
function isOutside(shadow: Shadow, waiter: ShadowTask, id: string): boolean {
  const need = shadow.tasks.get(id);
  return need !== undefined && need.phase !== "ended" && !above(shadow, need).includes(waiter);
}

/** A task that waits for its children is done when all below it has ended, with what its attempt answered. */
function auditWait(
  shadow: Shadow,
  task: ShadowTask,
  event: EventOf<"attempt-done" | "task-done">,
  complain: Complain,
): void {
  const say = (claim: string): void => complain("wait", `${event.task} ${claim}`);
  const open = task.spec.wait === null ? [] : openBelow(shadow, task);
  if (event.kind === "attempt-done") {
    if (open.length === 0) say("waits for its children, and none is open");
    return;
  }
  if (open.length > 0) say(`is done before ${open.join(", ")}`);
  if (event.resultSeq !== task.answeredBy)
    say(`is done by event ${event.resultSeq}, and answered by ${task.answeredBy}`);
}

/** What a task waits for: its needs, and its parent unless that ran when it submitted it. */
export const awaited = ({ parent, needs, ofRunning }: EventOf<"task-submitted">): EventOf<"task-submitted">["needs"] =>
  parent === null || ofRunning ? needs : [parent, ...needs];

function auditStart(task: ShadowTask, event: EventOf<"task-assigned">, complain: Complain): void {
  const id = event.task;
  if (task.attempt !== null) {
    complain("one-attempt", `${id} starts as ${event.attempt} while attempt ${task.attempt.number} is still live`);
  }
  if (task.phase !== "queued") complain("queued-first", `${id} starts though it is ${task.outcome ?? task.phase}`);
  if (task.spec.maxRounds > 0 && task.rounds >= task.spec.maxRounds)
    complain("loop", `${id} starts after ${task.rounds} rounds, and it may have ${task.spec.maxRounds}`);
  if (task.resting) complain("rest", `${id} starts while it rests`);
  if (task.paused) complain("pause", `${id} starts while it is paused`);
  if (event.attempt !== task.attempts + 1) {
    complain("attempt-number", `attempt ${event.attempt} of ${id} follows attempt ${task.attempts}`);
  }
  if (task.deadline !== null && event.at >= task.deadline) complain("deadline", `${id} starts past its deadline`);
}

function auditAttempt(task: ShadowTask, event: Event, number: number, complain: Complain): void {
  const { attempt } = task;
  if (attempt === null || attempt.number !== number) {
    const live = attempt === null ? "no attempt" : `attempt ${attempt.number}`;
    return complain("fencing", `${event.kind} of attempt ${number} of ${task.spec.task} counts; live: ${live}`);
  }
  if (event.kind === "attempt-started" && attempt.startedAt >= 0)
    complain("started-once", `attempt ${number} of ${task.spec.task} starts to run a second time`);
  if (event.kind === "attempt-stopping" && event.cause === "timeout") {
    const { timeoutMs } = task.spec;
    const isDue = timeoutMs !== null && attempt.startedAt >= 0 && event.at >= attempt.startedAt + timeoutMs;
    if (!isDue) complain("timeout", `${task.spec.task} is timed out before its time`);
  }
}

const THROTTLED_MS_MIN = 1000;

/** By the word of who had it, and knows what was done. */
const GIVEN_BACK: ReadonlySet<string> = new Set(["requeue", "rate-limited", "not-begun"]);

/** What must not run twice is not queued again once it may have begun. */
function auditLoss(shadow: Shadow, task: ShadowTask, event: EventOf<"attempt-lost">, complain: Complain): void {
  const hasBegun = (task.attempt?.startedAt ?? -1) >= 0;
  if (task.spec.onLoss === "fail" && hasBegun && !GIVEN_BACK.has(event.cause))
    complain(
      "on-loss",
      `${event.task} is queued again after ${event.cause}, though it had begun and must not be repeated`,
    );
  auditGivenBack(shadow, task, event, complain);
}

/** A requeue rests, each time longer; a provider's stop shuts its gate, or has the task rest where it names none. */
function auditGivenBack(shadow: Shadow, task: ShadowTask, event: EventOf<"attempt-lost">, complain: Complain): void {
  const { base, max } = shadow.config.scheduler.retry;
  const restMs = event.restUntil - event.at;
  if (event.cause === "requeue" && restMs < Math.min(max, base * 2 ** task.requeues))
    complain("requeues", `${event.task} rests only ${restMs} ms after requeue ${task.requeues + 1}`);
  if (event.cause !== "rate-limited") return;
  const { provider } = task.spec;
  const blockedUntil = provider === null ? -1 : (shadow.gates.get(provider)?.blockedUntil ?? -1);
  const isShut = event.at < blockedUntil || (task.attempt?.start.at ?? 0) < blockedUntil;
  if (provider === null ? restMs < THROTTLED_MS_MIN : !isShut)
    complain("throttle", `${event.task} was told to wait and does not, nor is ${provider ?? "any gate"} shut`);
}

function auditEnd(shadow: Shadow, task: ShadowTask, event: Event, complain: Complain): void {
  const id = task.spec.task;
  if (task.phase === "ended") complain("ends-once", `${id} is ${task.outcome} and ends again by ${event.kind}`);
  if (event.kind === "task-done" && task.phase !== "live" && task.answeredBy === null)
    complain("ends-once", `${id} is done without having run`);
  if (event.kind === "task-failed") auditFailure(shadow, task, event, complain);
  if (event.kind === "task-skipped" && event.dependency === null) {
    if (event.attempt === null) complain("skip", `${id} is skipped for no dependency and by no attempt`);
  } else if (event.kind === "task-skipped" && event.dependency !== null) {
    const dependency = shadow.tasks.get(event.dependency);
    const isTie = awaited(task.spec).includes(event.dependency);
    const isBad = dependency === undefined || (dependency.phase === "ended" && dependency.outcome !== "done");
    if (!isTie || !isBad) complain("skip", `${id} is skipped for ${event.dependency}, which gives no cause`);
    const open = openTies(shadow, task);
    if (open !== null) complain("needs", `${id} is skipped, but ${open} has not ended`);
  }
}

function auditFailure(shadow: Shadow, task: ShadowTask, event: EventOf<"task-failed">, complain: Complain): void {
  const id = task.spec.task;
  if (event.reason.startsWith("deadline exceeded")) {
    if (task.deadline === null || event.at < task.deadline) complain("deadline", `${id} fails before its deadline`);
  }
  const { maxLosses, maxRequeues } = shadow.config.scheduler.retry;
  const hasBegun = (task.attempt?.startedAt ?? -1) >= 0;
  if (event.reason.startsWith("its outcome is unknown: attempt") && (task.spec.onLoss !== "fail" || !hasBegun)) {
    complain("on-loss", `${id} fails as lost, though it may run again`);
  }
  if (/^(lost-too-often|stopped-by-its-budget)/.test(event.reason) && task.losses + 1 < maxLosses) {
    complain("losses", `${id} fails as lost too often after ${task.losses + 1} losses`);
  }
  if (/^(denied|nobody approved)/.test(event.reason) && task.phase !== "parked")
    complain("approval", `${id} is ${event.reason}, and it is ${task.phase}`);
  if (event.reason.startsWith("the loop ended after") && task.rounds < task.spec.maxRounds)
    complain("loop", `${id} fails after ${task.rounds} rounds, and it may have ${task.spec.maxRounds}`);
  if (event.reason.startsWith("requeued-too-often") && task.requeues + 1 < maxRequeues) {
    complain("requeues", `${id} fails as requeued too often after ${task.requeues + 1} requeues`);
  }
}

/** A dependency that has not ended. */
function openTies(shadow: Shadow, { seq, spec: { needs, parent } }: ShadowTask): string | null {
  const isOpen = (id: string): boolean => {
    const other = shadow.tasks.get(id);
    return other !== undefined && other.seq < seq && other.phase !== "ended";
  };
  return (parent === null ? needs : [parent, ...needs]).find(isOpen) ?? null;
}

/** A task becomes runnable when nothing it waits for is missing. */
function auditQueued(shadow: Shadow, task: ShadowTask, complain: Complain): void {
  if (task.phase === "queued") return;
  const { task: id, notBefore, onDependencyFailure } = task.spec;
  if (task.phase !== "waiting") complain("queued-first", `${id} is queued though it is ${task.outcome ?? task.phase}`);
  if (task.awaitsArtifact) complain("artifact", `${id} is queued though its artifact never appeared`);
  if (notBefore !== null && shadow.at < notBefore) complain("not-before", `${id} is queued before its time`);
  for (const dependency of awaited(task.spec)) {
    const other = shadow.tasks.get(dependency);
    if (other === undefined || other.seq > task.seq || other.outcome === "done") continue;
    if (onDependencyFailure === "skip")
      complain("needs", `${id} is queued, but ${dependency} is ${other.outcome ?? other.phase}`);
  }
}
