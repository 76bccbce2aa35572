/**
 * The transitions of a task, as events apply them.
 *
 *     waiting ─► queued ─► assigned ─► running ─► done | failed | cancelled | skipped
 *
 * No checks and no choices here: an event is a fact. Every count of tasks by phase changes in
 * `setPhase`, every way to end goes through `endTask`, and whether a task stands in a queue follows from
 * its facts (turn/queue.ts), so no transition can forget one of them.
 */

import type { Instant, Pin, TaskId } from "../base/brand.ts";
import { peek, push, retain, shift } from "../collections/fifo.ts";
import { insert, remove, sortedList } from "../collections/sorted-list.ts";
import { isStray } from "../fleet/pin.ts";
import { awaitedParent } from "../fleet/placement.ts";
import { requirementsFor } from "../fleet/requirements.ts";
import type { EventOf, TaskSubmitted } from "../model/events.ts";
import type { End } from "../model/extra.ts";
import type { ReadonlyTask } from "../model/read-only.ts";
import type { EndPhase, Links, Phase, Project, State, Task, TaskExtra, Tombstone } from "../model/state.ts";
import { endedBadly, hasEnded } from "../model/state.ts";
import { comeBack } from "../turn/fairness.ts";
import { dropHold } from "../turn/hold.ts";
import { addAgent, dropAgent } from "../turn/members.ts";
import { pausedPlanOf, settleQueue } from "../turn/queue.ts";
import { compareSeqs } from "../turn/total-orders.ts";
import { noteAsked, requireApproval } from "./approval.ts";
import { joinTab, leaveTab } from "./browser-tab.ts";
import { noteEnd, noteParked } from "./callbacks.ts";
import { dropFiles, hasLeft } from "./files.ts";
import { joinGroup, keeps, leaveGroup, moveInGroup } from "./groups.ts";
import { countOpen, grow, listChild, noteDone, stopAwaiting, unlistChild } from "./growth.ts";
import { dropLabels, extraOf, putLabels } from "./labels.ts";
import { setTimer } from "./timers.ts";

const AGENTS_KEPT_MAX = 1000;
const STALE_MAX = 64;
/** The timers an end calls off. */
const ENDED_BY_END = ["deadline", "wake", "timeout", "approval"] as const;

export function submitTask(state: State, event: TaskSubmitted): void {
  const project = state.projects.get(event.project) as Project;
  const agent = project.agents.get(event.agent) ?? addAgent(state, event.agent, project);
  agent.records++;
  agent.totals.submitted++;
  state.totals.submitted++;
  const task: Task = {
    id: event.task,
    seq: state.seq,
    project,
    agent,
    requirements: requirementsFor(state, agent, event),
    bodyHash: event.named ? event.bodyHash : "",
    createdAt: event.at,
    depth: event.depth,
    phase: "waiting",
    ready: false,
    paused: false,
    priority: event.priority,
    iteration: event.iteration,
    ownFailures: 0,
    losses: 0,
    requeues: 0,
    throttles: 0,
    attempts: 0,
    estimate: event.estimatedTokens,
    runnableAt: -1,
    restUntil: event.notBefore ?? -1,
    deadline: event.deadline ?? -1,
    lastSeq: state.seq,
    links: null,
    attempt: null,
    end: null,
    lastWorker: null,
    startedAt: -1,
    pin: null,
    group: null,
    timers: null,
    extra: null,
  };
  state.tasks.set(task.id, task);
  count(state, task, "waiting", 1);
  if (event.deadline !== null) setTimer(state, task, "deadline", event.deadline);
  if (event.labels.length > 0) putLabels(state, task, event.labels);
  if (event.group !== null) joinGroup(state, task, event.group);
  if (event.approval !== null) requireApproval(task, event.approval);
  if (event.wait !== null) extraOf(task).wait = { answer: null };
  if (event.maxRounds > 0) extraOf(task).loop = { max: event.maxRounds, rounds: [] };
  tie(state, task, event);
  if (task.extra !== null && isOfPlan(task.extra, task.id)) holdRecord(state, task, 1);
  if (event.runnable) queueTask(state, task, event.at, event.pin);
  else armWake(state, task);
}

function linksOf(task: Task): Links {
  task.links ??= newLinks(UNTIED);
  return task.links;
}

export const UNTIED: Ties & Pick<Links, "artifact"> = { parent: null, needs: [], artifact: null, ofRunning: false };
const newLinks = ({ parent, needs, artifact, ofRunning }: Ties & Pick<Links, "artifact">): Links => ({
  parent,
  needs,
  unmet: 0,
  artifact,
  dependents: [],
  notified: 0,
  children: 0,
  namedBy: 0,
  due: false,
  ofRunning,
});

/** Ties a new task to its parent, its needs and its artifact. */
function tie(state: State, task: Task, event: TaskSubmitted): void {
  if (event.parent === null && event.needs.length === 0 && event.artifact === null) return;
  task.links = newLinks(event);
  if (event.parent !== null) {
    countChild(state, event.parent, 1);
    listChild(state, task, event.parent);
  }
  if (event.ofRunning) grow(state, task);
  nameAll(state, task, 1, keptBy(task.links));
  for (const id of dependenciesOf(event)) waitForTask(state, task, id);
  if (event.artifact !== null) awaitArtifact(state, task, event.artifact);
}

type Ties = Pick<Links, "parent" | "needs" | "ofRunning">;

/** The parent and the needs that a task waits for, each once. */
export const dependenciesOf = (links: Ties): TaskId[] => eachOnce(awaitedParent(links), links.needs);
/** The same, and also a parent that it does not wait for. */
export const namedIn = (links: Ties): TaskId[] => eachOnce(links.parent, links.needs);
const eachOnce = (parent: TaskId | null, needs: readonly TaskId[]): TaskId[] => [
  ...new Set(parent === null ? needs : [parent, ...needs]),
];

/** Adds an edge to a dependency that has not ended; a task that ran before may have one already. */
function waitForTask(state: State, task: Task, id: TaskId): void {
  const dependency = state.tasks.get(id);
  if (dependency === undefined || hasEnded(dependency)) return;
  const { dependents } = linksOf(dependency);
  if (task.attempts === 0 && task.lastSeq === task.seq) dependents.push(task);
  else if (!dependents.includes(task)) dependents.push(task);
  linksOf(task).unmet++;
}

/** The next dependents of an ended task learn of its end. */
export function notifyDependents(state: State, task: Task, count: number, rejoins: boolean): void {
  const links = linksOf(task);
  for (const dependent of links.dependents.slice(links.notified, links.notified + count)) {
    const own = linksOf(dependent);
    own.unmet--;
    if (own.parent === task.id && hasLeft(task, own.artifact)) takeArtifact(state, dependent, own);
    if (rejoins && own.unmet === 0 && dependent.phase === "waiting") waitForOpen(state, dependent);
    armWake(state, dependent);
  }
  links.notified += count;
  forgetNotified(state, task, links);
}

/** What it waited for before may run again by now. */
function waitForOpen(state: State, task: Task): void {
  const links = linksOf(task);
  for (const id of dependenciesOf(links)) {
    const dependency = state.tasks.get(id);
    if (dependency === undefined || dependency.seq > task.seq || hasEnded(dependency)) continue;
    linksOf(dependency).dependents.push(task);
    links.unmet++;
  }
}

function forgetNotified(state: State, task: Task, links: Links): void {
  if (links.notified < links.dependents.length) return;
  links.dependents.length = 0;
  links.notified = 0;
  state.unnotified.delete(task);
}

/**
 * A task that runs again before all its dependents were notified of its end: the others wait on. And what it waited
 * for itself may have ended without notifying it: it is not notified any more, since its new run counts that end.
 */
function takeBackEnd(state: State, task: Task): void {
  if (state.unnotified.delete(task) && task.links !== null) {
    task.links.dependents.splice(0, task.links.notified);
    task.links.notified = 0;
  }
  if (state.unnotified.size === 0 || task.links === null) return;
  for (const id of dependenciesOf(task.links)) {
    const dependency = state.tasks.get(id);
    if (dependency === undefined || dependency.links === null || !state.unnotified.has(dependency)) continue;
    const { links } = dependency;
    const index = links.dependents.indexOf(task, links.notified);
    if (index < 0) continue;
    links.dependents.splice(index, 1);
    forgetNotified(state, dependency, links);
  }
}

export function awaitArtifact(state: State, task: Task, artifact: string): void {
  const waiters = state.artifacts.get(artifact) ?? new Set();
  waiters.add(task);
  state.artifacts.set(artifact, waiters);
}

function forgetArtifact(state: State, task: Task): void {
  const artifact = task.links?.artifact ?? null;
  if (artifact === null) return;
  const waiters = state.artifacts.get(artifact);
  waiters?.delete(task);
  if (waiters?.size === 0) state.artifacts.delete(artifact);
}

/** Its parent has left what it waits for. */
function takeArtifact(state: State, task: Task, links: Links): void {
  forgetArtifact(state, task);
  links.artifact = null;
}

/** The artifact is there: no task waits for it any longer. */
export function meetArtifact(state: State, artifact: string): void {
  for (const task of state.artifacts.get(artifact) ?? []) {
    linksOf(task).artifact = null;
    armWake(state, task);
  }
  state.artifacts.delete(artifact);
}

/** Whether everything but time is there for a waiting task. */
export const isMet = (task: ReadonlyTask): boolean =>
  task.links === null || (task.links.unmet === 0 && task.links.artifact === null);

/** A task that waits for nothing but the clock gets a timer; one that waits for nothing at all is ready. */
export function armWake(state: State, task: Task): void {
  const waits = (task.phase === "waiting" && isMet(task)) || task.phase === "queued";
  setTimer(state, task, "wake", waits ? task.restUntil : -1);
  setReady(state, task, task.phase === "waiting" && isMet(task) && task.restUntil < 0);
}

function setReady(state: State, task: Task, ready: boolean): void {
  if (task.ready === ready) return;
  task.ready = ready;
  if (ready) insert(state.ready, task);
  else remove(state.ready, task);
}

/** The task is runnable from now on, or its rest is over. */
export function queueTask(state: State, task: Task, at: Instant, pin: Pin | null): void {
  task.restUntil = -1;
  setReady(state, task, false);
  setTimer(state, task, "wake", -1);
  if (task.runnableAt < 0) task.runnableAt = at;
  setPin(state, task, pin, at);
  setPhase(state, task, "queued");
  settleQueue(state, task);
}

/** It waits for somebody's word, and holds nothing meanwhile. */
export function parkTask(state: State, task: Task, event: EventOf<"task-parked">): void {
  setPhase(state, task, "parked");
  task.restUntil = -1;
  setReady(state, task, false);
  setTimer(state, task, "wake", -1);
  noteAsked(task, event);
  setTimer(state, task, "approval", event.until ?? -1);
  noteParked(state, task);
}

/** An attempt of it is done; it waits for what grew below it, and holds nothing meanwhile. */
export function awaitChildren(state: State, task: Task, event: EventOf<"attempt-done">): void {
  const { startedAt } = task;
  setPhase(state, task, "parked");
  // It waits for no other attempt: this one was its last.
  task.startedAt = startedAt;
  noteDone(state, task, event);
}

export function setPin(state: State, task: Task, pin: Pin | null, at: number): void {
  if (task.pin !== null) {
    const pinned = state.pins.get(task.pin);
    if (pinned !== undefined) remove(pinned, task);
    if (pinned?.size === 0) {
      state.pins.delete(task.pin);
      state.strayPins.delete(task.pin);
    }
  }
  task.pin = pin;
  if (pin === null) {
    setTimer(state, task, "pin", -1);
    return;
  }
  let pinned = state.pins.get(pin);
  if (pinned === undefined) {
    pinned = sortedList<Task>(compareSeqs);
    state.pins.set(pin, pinned);
    watchPins(state, pin);
  }
  insert(pinned, task);
  setTimer(state, task, "pin", at + state.config.scheduler.placement.affinityWait);
}

/** To be called whenever a worker that is meant by a pin has changed: tasks may wait for it in vain. */
export function watchPins(state: State, pin: Pin): void {
  if (state.pins.has(pin) && isStray(state, pin)) state.strayPins.add(pin);
  else state.strayPins.delete(pin);
}

export function setPhase(state: State, task: Task, next: Phase): void {
  if (task.phase === next) return;
  const before = task.phase;
  task.phase = next;
  // What waits does not run: an attempt that ended without ending its task is over.
  if (next === "queued" || next === "waiting" || next === "parked") task.startedAt = -1;
  count(state, task, before, -1);
  count(state, task, next, 1);
  if (task.extra !== null && task.extra.group !== null) moveInGroup(state, task.extra.group, task, before);
}

export function count(state: State, task: Task, phase: Phase, by: 1 | -1): void {
  const { project, agent } = task;
  if (phase === "waiting") state.waiting += by;
  else if (phase === "parked") {
    state.parked += by;
    project.parked += by;
    agent.parked += by;
  } else if (phase === "queued") {
    state.queued += by;
    if (task.extra === null || pausedPlanOf(task.extra) === null) countReady(state, project, by);
    if (task.requirements.tab !== null) {
      if (by === 1) joinTab(state, task);
      else leaveTab(state, task);
    }
  } else return;
  project.backlog += by;
  agent.backlog += by;
  agent.load.backlog += by;
}

/** Tasks of a paused plan do not count: a project that has nothing else to do banks no credit meanwhile. */
export function countReady(state: State, project: Project, by: 1 | -1): void {
  if (by === 1 && project.ready === 0 && project.inFlight === 0) comeBack(state, project);
  project.ready += by;
}

/** The one way a task ends. Its attempt, if it has one, is dealt with by the caller. */
export function endTask(state: State, task: Task, phase: EndPhase, end: End): void {
  setReady(state, task, false);
  setPhase(state, task, phase);
  settleQueue(state, task);
  if (task.timers !== null) for (const kind of ENDED_BY_END) setTimer(state, task, kind, -1);
  setPin(state, task, null, end.at);
  forgetArtifact(state, task);
  dropHold(state, task);
  task.restUntil = -1;
  task.end = end;
  if (task.extra !== null) stopAwaiting(state, task);
  if (task.links?.ofRunning === true) countOpen(state, task, -1);
  push(endsOf(state, phase), { task, end });
  countEnd(state, phase, 1);
  if (task.links !== null && task.links.notified < task.links.dependents.length) state.unnotified.add(task);
  noteEnd(state, task, phase, state.seq);
  tally(state, task, phase);
}

export const endsOf = (state: State, phase: Phase): State["ended"] =>
  endedBadly(phase) ? state.endedBadly : state.ended;

/** One more, or one less, that has ended and whose time is not up. */
export function countEnd(state: State, phase: Phase, by: 1 | -1): void {
  if (endedBadly(phase)) state.failures += by;
  else state.results += by;
}

function tally(state: State, task: Task, phase: EndPhase): void {
  const key = phase === "done" ? "completed" : phase;
  state.totals[key]++;
  if (key !== "skipped") task.agent.totals[key]++;
}

/**
 * What a task keeps the records of: its parent and its needs while its own time is not up. After that, as long as a
 * task that has time keeps its own record: the task that it grew on, so that no tree has a gap above what lives.
 */
export const keptBy = ({ parent, needs, ofRunning, due }: Ties & Pick<Links, "due">): TaskId[] =>
  due ? (ofRunning && parent !== null ? [parent] : []) : namedIn({ parent, needs, ofRunning });

/** Counts a task among those that keep the records of these, or no longer. */
export function nameAll(state: State, task: Task, by: 1 | -1, ids: readonly TaskId[]): void {
  for (const id of ids) {
    const named = state.tasks.get(id);
    // A later task may have taken the id of one that was forgotten.
    if (named === undefined || named.seq > task.seq) continue;
    holdRecord(state, named, by);
  }
}

/** The record of a task stays for one more that names it, or for one less. */
export function holdRecord(state: State, task: Task, by: 1 | -1): void {
  const links = linksOf(task);
  links.namedBy += by;
  if (links.due && links.namedBy === 0) bury(state, task);
}

/** Whether a plan holds its record. */
const isOfPlan = ({ group }: TaskExtra, id: TaskId): boolean =>
  group !== null && group.group.plan !== null && keeps(group.group.plan, id);

/** An ended task's time is up: it names no other any longer. Its record goes, unless a task that has time names it. */
export function letGo(state: State, task: Task, mayStay: boolean): void {
  countEnd(state, task.phase, -1);
  const { links } = task;
  if (mayStay && links !== null && links.namedBy > 0) {
    const before = keptBy(links);
    links.due = true;
    nameAll(state, task, -1, without(before, keptBy(links)));
  } else bury(state, task);
}

const without = (ids: readonly TaskId[], others: readonly TaskId[]): TaskId[] =>
  ids.filter((id) => !others.includes(id));

/** A task that ended runs again: a new iteration with a clean slate. */
export function reviveTask(state: State, task: Task, waitFor: readonly TaskId[], at: Instant): void {
  task.iteration += task.ownFailures + 1;
  task.ownFailures = 0;
  task.losses = 0;
  task.requeues = 0;
  task.throttles = 0;
  task.runnableAt = -1;
  if (task.extra !== null && task.extra.loop !== null) task.extra.loop.rounds = [];
  task.end = null;
  if (task.links?.ofRunning === true) countOpen(state, task, 1);
  if (task.links?.due === true) {
    const before = keptBy(task.links);
    task.links.due = false;
    nameAll(state, task, 1, without(keptBy(task.links), before));
  } else countEnd(state, task.phase, -1);
  dropStale(endsOf(state, task.phase), endedBadly(task.phase) ? state.failures : state.results);
  takeBackEnd(state, task);
  setPhase(state, task, "waiting");
  if (task.links !== null) {
    task.links.unmet = 0;
    const { parent, artifact } = task.links;
    if (parent !== null && hasLeft(state.tasks.get(parent), artifact)) task.links.artifact = null;
    if (task.links.artifact !== null) awaitArtifact(state, task, task.links.artifact);
  }
  for (const id of waitFor) waitForTask(state, task, id);
  if (task.deadline >= 0 && task.deadline <= at) task.deadline = -1;
  setTimer(state, task, "deadline", task.deadline);
}

/** Entries of tasks that ran again are dropped at the front, and all of them once they are the most. */
function dropStale(ended: State["ended"], count: number): void {
  while (peek(ended) !== undefined && peek(ended)?.task.end !== peek(ended)?.end) shift(ended);
  if (ended.length <= 2 * count + STALE_MAX) return;
  retain(ended, ({ task, end }) => task.end === end);
}

/** What stays of an ended task when its result is no longer kept. */
function bury(state: State, task: Task): void {
  const stone: Tombstone = {
    id: task.id,
    bodyHash: task.bodyHash,
    phase: task.phase as EndPhase,
    depth: task.depth,
    priority: task.priority,
    parent: task.links?.parent ?? null,
    createdAt: task.createdAt,
    endedAt: (task.end as End).at,
    seq: task.seq,
    endSeq: (task.end as End).seq,
    lastWorker: task.lastWorker,
    children: task.links?.children ?? 0,
    due: false,
  };
  state.tasks.handOver(task.id, state.tombstones, stone);
  if (task.links !== null) {
    unlistChild(state, task);
    nameAll(state, task, -1, keptBy(task.links));
  }
  if (task.extra !== null) {
    dropLabels(state, task);
    leaveGroup(state, task);
    dropFiles(state, task);
  }
  if (state.callbacks.wanted.size > 0) state.callbacks.wanted.delete(task.id);
  push(state.remembered, stone);
  if (--task.requirements.users === 0) state.requirements.delete(task.requirements.key);
  const { agent, project } = task;
  if (--agent.records === 0 && project.agents.size > AGENTS_KEPT_MAX) dropAgent(state, agent);
}

/** A tombstone's time is up: it goes, unless a child still names it. */
export function forget(state: State, stone: Tombstone): void {
  stone.due = true;
  let next: Tombstone | undefined = stone;
  while (next?.due === true && next.children === 0) {
    state.tombstones.drop(next.id, next);
    next = next.parent === null ? undefined : countChild(state, next.parent, -1);
  }
}

/** A child of this task came or went. Answers the tombstone, if the parent is one by now. */
function countChild(state: State, parent: TaskId, by: 1 | -1): Tombstone | undefined {
  const task = state.tasks.get(parent);
  if (task !== undefined) {
    linksOf(task).children += by;
    return undefined;
  }
  const stone = state.tombstones.get(parent);
  if (stone !== undefined) stone.children += by;
  return stone;
}
