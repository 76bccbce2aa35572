/**
 * A state from the lines of a format.
 *
 * Facts are put back line by line; whatever follows from them is then made by the functions evolve uses, so
 * that there is one way to book an attempt, to queue a task or to set a timer, and a restored state goes on exactly
 * as the one it was taken from. Tasks enter their queues last, when workers, gates and attempts are in place.
 *
 * A line that cannot be read or names something that is not there, a file that was cut and a format of a later
 * version are refused with a typed error that says which; half a state is never handed out.
 */

import type {
  AgentId,
  GateId,
  Instant,
  PermitId,
  Pin,
  ProjectId,
  ScheduleId,
  Seq,
  TaskId,
  WorkerId,
} from "../base/brand.ts";
import { BrokenInvariant } from "../base/result.ts";
import { push } from "../collections/fifo.ts";
import { lowerBound } from "../collections/sorted-list.ts";
import { completed, completedProject, gateSettings } from "../config/config.ts";
import { withPatch } from "../config/config-patch.ts";
import { emptyState } from "../empty-state.ts";
import { internRequirements } from "../fleet/requirements.ts";
import { gateUse, setGateHeld } from "../fleet/shape.ts";
import { countFilter } from "../fleet/worker-filter.ts";
import { addWorker, newWorker, offerOf, setRoom } from "../fleet/worker-tree.ts";
import { noteSettled } from "../gate/settled.ts";
import { type Gate, gateFromFacts } from "../gate/state.ts";
import { RollingSum } from "../gate/usage-window.ts";
import { attach } from "../lifecycle/attempt.ts";
import { newTab, watchTabs } from "../lifecycle/browser-tab.ts";
import { endedOf } from "../lifecycle/callbacks.ts";
import { putFiles } from "../lifecycle/files.ts";
import { count as countInGroup, groupFor, joinGroup, partFor } from "../lifecycle/groups.ts";
import { countOpen, growthOf, listChild, watchOpen } from "../lifecycle/growth.ts";
import { extraOf, putLabels } from "../lifecycle/labels.ts";
import { bookCall, notePermit } from "../lifecycle/permits.ts";
import { adoptGroup } from "../lifecycle/plans.ts";
import { setTimer } from "../lifecycle/timers.ts";
import { armWake, awaitArtifact, count, countEnd, endsOf, keptBy, nameAll, setPin } from "../lifecycle/transitions.ts";
import { putRow } from "../lifecycle/usage.ts";
import type { End } from "../model/extra.ts";
import type { Answer, Tree } from "../model/growth.ts";
import type {
  Agent,
  Attempt,
  EndedTask,
  EndPhase,
  Links,
  Project,
  Requirements,
  State,
  Task,
  Tombstone,
  Worker,
} from "../model/state.ts";
import { takeHold } from "../turn/hold.ts";
import { addAgent, newProject } from "../turn/members.ts";
import { EXPRESS_PRIORITY } from "../turn/priority.ts";
import { settleQueue } from "../turn/queue.ts";
import * as format from "./format.ts";
import { SnapshotUnreadable } from "./format.ts";
import { loadPlan } from "./plan-rows.ts";
import { approvalFrom, attemptFrom, endedExtraFrom, fileFrom, loopFrom, usageFrom } from "./restore-extra.ts";

/** What is known while the lines are read. */
const newLoading = () => ({
  state: emptyState(),
  format: 0,
  line: 0,
  project: null as Project | null,
  agents: [] as Agent[],
  requirements: [] as Requirements[],
  /** In the order of their seq. */
  tasks: [] as Task[],
  dependents: [] as { readonly links: Links; readonly seqs: format.Numbers; readonly owner: Task }[],
  /** Names that many tasks share, each kept once. */
  names: new Map<string, string>(),
  /** By the events that submitted their roots. */
  trees: new Map<number, Tree>(),
  highest: 0,
  isHeaded: false,
  isWhole: false,
});
type Loading = ReturnType<typeof newLoading>;

/** The state that `snapshotLines` was given. Lines that cannot be read throw SnapshotUnreadable. */
export function restore(lines: Iterable<string>): State {
  const steps = restoring(lines);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same step by step, a line each: between two of them the caller may do other things. */
export function* restoring(lines: Iterable<string>): Generator<undefined, State> {
  const loading = newLoading();
  try {
    for (const line of lines) {
      if (loading.isWhole) throw corrupt(loading, "something follows the last line");
      loading.line++;
      const row = parse(loading, line);
      if (!loading.isHeaded && row[0] !== "drover") throw corrupt(loading, "it is not the header of a snapshot");
      load(loading, row);
      yield undefined;
    }
    if (!loading.isWhole) throw new SnapshotUnreadable("cut", loading.line + 1, "the file ends before its last line");
    return finish(loading);
  } catch (thrown) {
    // Values of the wrong kind show when they are used; facts that contradict each other break an invariant.
    if (thrown instanceof TypeError || thrown instanceof RangeError || thrown instanceof BrokenInvariant)
      throw corrupt(loading, thrown.message);
    throw thrown;
  }
}

const corrupt = ({ line }: Loading, detail: string): SnapshotUnreadable =>
  new SnapshotUnreadable("corrupt", line, detail);

function parse(loading: Loading, line: string): format.Row {
  try {
    const row: unknown = JSON.parse(line);
    if (Array.isArray(row)) return row as format.Row;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
  }
  throw corrupt(loading, "it is not a JSON array");
}

const LOADERS: { readonly [Tag in format.Row[0]]: (loading: Loading, row: format.RowOf<Tag>) => void } = {
  drover: loadHeader,
  config: loadConfig,
  spent: ({ state }, [, spent]) => {
    state.spent = RollingSum.fromFacts(spent);
  },
  project: loadProject,
  agent: loadAgent,
  worker: loadWorker,
  gate: loadGate,
  tab: ({ state }, [, id, seq, ownerlessSince]) => state.tabs.set(id, newTab(id, seq, ownerlessSince)),
  group: loadGroup,
  plan: ({ state }, row) => loadPlan(state, row),
  ask: loadRequirements,
  task: loadTask,
  attempt: loadAttempt,
  hold: (loading, [, task, worker]) => takeHold(loading.state, taskAt(loading, task), workerAt(loading, worker)),
  artifact: (loading, [, name, seqs]) => {
    for (const seq of seqs) awaitArtifact(loading.state, taskAt(loading, seq), name);
  },
  tombstone: loadStone,
  callback: loadCallback,
  schedule: loadSchedule,
  node: ({ state }, [, id, url, key, leads]) => {
    state.cluster.nodes.set(id, { url, key });
    if (leads) state.cluster.leader = id;
  },
  settled: ({ state }, [, id, until, mayReturn]) =>
    // None goes for want of time: what a snapshot lists was there.
    noteSettled(state.settled, { id: id as PermitId, until, mayReturn }, Number.NEGATIVE_INFINITY),
  rejected: ({ state }, [, agent, times]) => state.rejected.set(agent as AgentId, times),
  used: ({ state }, [, kind, day, project, agent, of, attempts, usage]) => {
    const where = { day, project: project as ProjectId, agent: agent as AgentId, of };
    putRow(state.ledger[kind], { ...where, attempts, usage: usageFrom(usage) });
  },
  "used-gone": ({ state: { ledger } }, [, types, labels]) => {
    ledger.types.goneDay = types;
    ledger.labels.goneDay = labels;
  },
  end: (loading, [, lines]) => {
    if (lines !== loading.line - 1) throw new SnapshotUnreadable("cut", loading.line, "lines before it are missing");
    loading.isWhole = true;
  },
};

function load(loading: Loading, row: format.Row): void {
  if (!Object.hasOwn(LOADERS, row[0])) throw corrupt(loading, "no such kind of line");
  // A header of a later format may well be longer: it says so by itself.
  if (row[0] !== "drover") checkLength(loading, row);
  LOADERS[row[0]](loading, row as never);
}

function checkLength(loading: Loading, row: format.Row): void {
  const [least, most] = format.LENGTHS[row[0]];
  if (row.length < least || row.length > most) throw corrupt(loading, `a line ${row[0]} with ${row.length} values`);
}

function loadConfig({ state }: Loading, [, base, patch = null]: format.ConfigRow): void {
  state.base = completed(base);
  state.patch = patch;
  state.config = withPatch(state.base, patch);
  setRoom(state.fleet, state.shapes, state.config.scheduler.placement.maxQueuePerWorker);
}

function loadHeader(loading: Loading, row: format.HeaderRow): void {
  const { state } = loading;
  const [, version, seq, at, paused, cursor, origin, highest, totals] = row;
  if (loading.isHeaded) throw corrupt(loading, "a second header");
  loading.isHeaded = true;
  if (version > format.SNAPSHOT_FORMAT) {
    const detail = `its format is ${version}; this version reads up to ${format.SNAPSHOT_FORMAT}`;
    throw new SnapshotUnreadable("newer-format", loading.line, detail);
  }
  if (!(version >= 1)) throw corrupt(loading, `no such format: ${version}`);
  checkLength(loading, row);
  loading.format = version;
  state.seq = seq;
  state.at = at as Instant;
  state.paused = paused;
  state.cursor = cursor as WorkerId | null;
  state.levels.origin = origin;
  // While tasks are put back no project comes back from idleness; `finish` sets the level of the last one served.
  state.levels.highest = Number.NEGATIVE_INFINITY;
  loading.highest = highest;
  const [submitted = 0, completed = 0, failed = 0, cancelled = 0, expired = 0, skipped = 0, ...rest] = totals;
  const [starts = 0, waitMs = 0, runMs = 0, ends = 0, rejected = 0] = rest;
  Object.assign(state.totals, { submitted, completed, failed, cancelled, expired, skipped });
  Object.assign(state.totals, { starts, waitMs, runMs, ends, rejected });
}

function loadProject(loading: Loading, row: format.ProjectRow): void {
  const { state } = loading;
  const [, id, given, source, status, level, charged, spent, recent, starts, means, usage = null] = row;
  const settings = completedProject(given);
  const fairWindow = state.config.scheduler.fairness.window;
  const project = newProject(id as ProjectId, state.registrations++, settings, fairWindow);
  Object.assign(project, { source, status, level, charged, usage: usage === null ? null : usageFrom(usage) });
  project.spent = RollingSum.fromFacts(spent);
  project.recent = RollingSum.fromFacts(recent);
  project.starts = RollingSum.fromFacts(starts);
  for (const [type, samples, tokens] of means) project.means.set(type, { count: samples, tokens });
  if (settings.maxPriority <= EXPRESS_PRIORITY) state.expressProjects.add(project);
  state.projects.set(project.id, project);
  loading.project = project;
}

function loadAgent(loading: Loading, [, id, lastServed, totals]: format.AgentRow): void {
  const { state, project } = loading;
  if (project === null) throw corrupt(loading, "an agent before any project");
  const agent = addAgent(state, id as AgentId, project);
  const [submitted = 0, completed = 0, failed = 0, cancelled = 0] = totals;
  agent.lastServed = lastServed;
  Object.assign(agent.totals, { submitted, completed, failed, cancelled });
  loading.agents.push(agent);
}

function loadWorker({ state }: Loading, row: format.WorkerRow): void {
  const [, id, kind, session, slots, capabilities, cpu, memory, zone, status, joinedAt] = row;
  const [offered = slots, endpoint = null, path = null, takes = null, note = null, worktrees = null] = row.slice(
    11,
  ) as format.WorkerRowEnd;
  countFilter(state.fleet, takes, 1);
  const target = endpoint === null ? null : { endpoint, path };
  const joined = { id: id as WorkerId, kind, session, target, takes, offered, joinedAt: joinedAt as Instant };
  const offer = offerOf({ slots, capabilities, cpu, memory, worktrees, zone, status, note });
  addWorker(state.fleet, state.shapes, newWorker(joined, offer));
}

function loadGate({ state }: Loading, [, id, held, facts]: format.GateRow): void {
  const gate: Gate = gateFromFacts(gateSettings(state.config, id as GateId), facts);
  state.gates.set(id as GateId, gate);
  for (const ticket of [...facts.held, ...facts.tickets]) {
    state.permits.set(ticket.id as PermitId, id as GateId);
    if (ticket.task === undefined) bookCall(state, ticket, 1);
  }
  if (held) setGateHeld(state.shapes, gateUse(state.shapes, id), true);
}

function loadRequirements(loading: Loading, row: format.RequirementsRow): void {
  const [, type, capabilities, cpu, memory, provider, locks, zone, tab] = row;
  const [, , , , , , , , , maxAttempts, timeoutMs, onDependencyFailure, prioritised, onLoss = "retry", action = ""] =
    row;
  const wants = { type, action, capabilities, cpu, memory, provider, locks, zone, tab };
  const requirements = internRequirements(loading.state, {
    ...wants,
    maxAttempts,
    timeoutMs,
    onDependencyFailure,
    onLoss,
    prioritised,
  });
  requirements.users = 0;
  loading.requirements.push(requirements);
}

const NOTHING_MORE: format.TaskMore = [false, 0, 0, 0, -1, -1, null, -1, null, -1, null, null];

/** The values stand in the order in which submitTask gives them, so that both make the same kind of object. */
function loadTask(loading: Loading, row: format.TaskRow): void {
  const { state } = loading;
  const agent = loading.agents[row[3]];
  const requirements = loading.requirements[row[4]];
  const phase = format.PHASES[row[8]];
  const last = loading.tasks[loading.tasks.length - 1];
  if (agent === undefined || requirements === undefined || phase === undefined)
    throw corrupt(loading, "it names what is not there");
  if (last !== undefined && last.seq >= row[2]) throw corrupt(loading, "a task out of order");
  const more = row[14] ?? NOTHING_MORE;
  const task: Task = {
    id: row[1] as TaskId,
    seq: row[2],
    project: agent.project,
    agent,
    requirements,
    bodyHash: row[5],
    createdAt: row[6] as Instant,
    depth: row[7],
    phase,
    ready: false,
    paused: more[0],
    priority: row[9],
    iteration: row[10],
    ownFailures: more[1],
    losses: more[2],
    requeues: more[12] ?? 0,
    throttles: more[13] ?? 0,
    attempts: more[3],
    estimate: row[11],
    runnableAt: row[12],
    restUntil: more[4],
    deadline: more[5],
    lastSeq: row[13],
    links: null,
    attempt: null,
    end: null,
    lastWorker: nameOf(loading, more[6]),
    // Up to format 3 a task that waits again kept when it had last begun.
    startedAt: loading.format < 4 && (phase === "queued" || phase === "waiting") ? -1 : more[7],
    pin: null,
    group: null,
    timers: null,
    extra: null,
  };
  requirements.users++;
  agent.records++;
  state.tasks.set(task.id, task);
  loading.tasks.push(task);
  count(state, task, phase, 1);
  if (more !== NOTHING_MORE) loadMore(loading, task, more);
  armWake(state, task);
}

function loadMore(loading: Loading, task: Task, more: format.TaskMore): void {
  const { state } = loading;
  const [, , , , , deadline, , , pin, pinUntil, links, end, , , extra = null] = more;
  if (links !== null) loadLinks(loading, task, links);
  if (end !== null) {
    task.end = endOf(end);
    if (task.links?.due !== true) countEnd(state, task.phase, 1);
  } else if (deadline >= 0) setTimer(state, task, "deadline", deadline);
  if (pin !== null) {
    const { affinityWait } = state.config.scheduler.placement;
    setPin(state, task, nameOf(loading, pin) as Pin, pinUntil - affinityWait);
  }
  if (extra !== null) loadExtra(loading, task, extra);
  // Its parent was submitted before, and so loaded before.
  if (task.links?.ofRunning === true && end === null) countOpen(state, task, 1);
}

function loadExtra(
  loading: Loading,
  task: Task,
  { labels, group, usage, attempts, loop, growth, files = [], approval, wait }: format.ExtraRow,
): void {
  const { state } = loading;
  if (labels !== undefined) putLabels(state, task, labels);
  if (group !== undefined) joinGroup(state, task, group);
  if (usage !== undefined) extraOf(task).usage = usageFrom(usage);
  if (attempts !== undefined) extraOf(task).attempts = attempts.map(attemptFrom);
  if (growth !== undefined) loadGrowth(loading, task, growth);
  if (files.length > 0) putFiles(state, task, files.map(fileFrom));
  if (approval !== undefined) loadApproval(state, task, approval);
  if (wait !== undefined) loadWait(state, task, wait);
  if (loop !== undefined) extraOf(task).loop = loopFrom(loop);
}

function loadGrowth({ trees }: Loading, task: Task, [root, grown, children]: format.GrowthRow): void {
  const tree = trees.get(root) ?? { root, grown };
  trees.set(root, tree);
  growthOf(task, tree).children = children;
}

function loadApproval(state: State, task: Task, row: format.ApprovalRow): void {
  const approval = approvalFrom(row);
  extraOf(task).approval = approval;
  if (task.phase === "parked") setTimer(state, task, "approval", approval.until);
}

/** What grew below it comes later, and counts itself. */
function loadWait(state: State, task: Task, row: format.WaitRow): void {
  extraOf(task).wait = { answer: row.length === 0 ? null : answerFrom(row) };
  if (row.length > 0) state.awaiting++;
  watchOpen(state, task);
}

const answerFrom = ([attempt, seq, resultHash, resultSize]: format.WaitRow & { length: 4 }): Answer => ({
  attempt,
  seq,
  resultHash,
  resultSize,
});

/** Its tasks come later, and count themselves. */
function loadGroup({ state }: Loading, [, id, createdAt, parts]: format.GroupRow): void {
  const group = groupFor(state, id, createdAt as Instant);
  for (const [project, agent, endedAt, gone, usage = null] of parts) {
    const part = partFor(group, { project: project as ProjectId, agent: agent as AgentId });
    part.endedAt = endedAt;
    part.usage = usage === null ? null : usageFrom(usage);
    for (const [index, end] of format.END_PHASES.entries()) {
      part.gone[end] = gone[index] ?? 0;
      countInGroup(part, end, part.gone[end]);
    }
  }
}

function loadLinks({ state, dependents: later }: Loading, task: Task, row: format.LinksRow): void {
  const [parent, needs, unmet, artifact, seqs, notified, children, due = false, ofRunning = false] = row;
  const ties = { parent: parent as TaskId | null, needs: needs as readonly TaskId[], ofRunning };
  const links: Links = { ...ties, unmet, artifact, dependents: [], notified, children, namedBy: 0, due };
  task.links = links;
  if (ties.parent !== null) listChild(state, task, ties.parent);
  if (seqs.length > 0) later.push({ links, seqs, owner: task });
}

function nameOf({ names }: Loading, name: string | null): WorkerId | null {
  if (name === null) return null;
  const known = names.get(name);
  if (known === undefined) names.set(name, name);
  return (known ?? name) as WorkerId;
}

/** Tasks stand in the order of their seq. */
function taskAt(loading: Loading, seq: number): Task {
  const { tasks } = loading;
  const task = tasks[lowerBound(tasks, seq, (other, number) => other.seq < number)];
  if (task?.seq !== seq) throw corrupt(loading, `no task was submitted by event ${seq}`);
  return task;
}

function workerAt(loading: Loading, id: string): Worker {
  const worker = loading.state.fleet.byId.get(id as WorkerId);
  if (worker === undefined) throw corrupt(loading, `no worker is called ${id}`);
  return worker;
}

function loadAttempt(loading: Loading, row: format.AttemptRow): void {
  const { state } = loading;
  const [, seq, worker, number, assignedAt, charge, express, standing, startedAt] = row;
  const [, , , , , , , , , reserve, reported, permitted, known, stopCause, stopBy, gateTold = false, usage] = row;
  const task = taskAt(loading, seq);
  const attempt: Attempt = {
    task,
    number,
    worker: workerAt(loading, worker),
    assignedAt: assignedAt as Instant,
    charge,
    express,
    state: standing,
    startedAt,
    reserve,
    reported,
    permitted,
    permitUsage: usage === undefined ? null : usageFrom(usage),
    known,
    gateTold,
    permits: null,
    stopCause,
    stopBy,
    index: -1,
  };
  attach(state, attempt, null);
  if (loading.format < 4) recharge(task.project, attempt);
  const { timeoutMs } = task.requirements;
  if (standing === "running" && timeoutMs !== null) setTimer(state, task, "timeout", startedAt + timeoutMs, attempt);
  if (standing === "stopping") setTimer(state, task, "stop", stopBy, attempt);
}

/** Up to format 3 the charge of a live attempt was among what was settled and not in `charged`; now it is otherwise. */
function recharge(project: Project, { assignedAt, charge }: Attempt): void {
  const facts = project.recent.facts();
  const at = facts.ends.findIndex((end) => end >= assignedAt);
  const amounts = facts.amounts.map((amount, index) => (index === at ? Math.max(0, amount - charge) : amount));
  project.recent = RollingSum.fromFacts({ ...facts, amounts });
  project.charged += charge;
}

function loadStone(loading: Loading, row: format.StoneRow): void {
  const { state } = loading;
  const [, id, bodyHash, phase, depth, priority, parent, endedAt, seq, endSeq, children, due] = row;
  const createdAt = (row[12] ?? endedAt) as Instant;
  const lastWorker = nameOf(loading, row[13] ?? null);
  const stone: Tombstone = {
    id: id as TaskId,
    bodyHash,
    phase: format.PHASES[phase] as EndPhase,
    depth,
    priority,
    parent: parent as TaskId | null,
    createdAt,
    endedAt: endedAt as Instant,
    seq,
    endSeq,
    lastWorker,
    children,
    due,
  };
  state.tombstones.set(stone.id, stone);
  if (!due) push(state.remembered, stone);
}

/** Tasks are there already. */
function loadCallback({ state }: Loading, row: format.CallbackRow): void {
  const { callbacks, tasks } = state;
  const [, task, end = null, phase, ended = null, host = ""] = row;
  if (end === null) {
    callbacks.wanted.set(task as TaskId, host);
    return;
  }
  const due = { task: task as TaskId, end: end as Seq, phase: format.PHASES[phase as number] as EndPhase };
  const known = tasks.get(due.task);
  const seen = known !== undefined && known.end?.seq === end ? endedOf(known) : null;
  callbacks.due.set(due.end, { ...due, ended: ended === null ? seen : endedFrom(due, ended), host });
}

function endedFrom({ task: id, phase }: { task: TaskId; phase: EndPhase }, row: format.EndedRow): EndedTask {
  const [seq, project, agent, created, depth, priority, iteration, ownFailures, attempts] = row;
  const [, , , , , , , , , runnableAt, startedAt, deadline, worker, onLoss, end, more = null] = row;
  const counts = { depth, priority, iteration, ownFailures, attempts };
  const times = { createdAt: created as Instant, runnableAt, startedAt, deadline };
  const owner = { project: { id: project as ProjectId }, agent: { id: agent as AgentId } };
  const how = { lastWorker: worker as WorkerId | null, phase, end: endOf(end), requirements: { onLoss } };
  return { id, seq, ...counts, ...times, ...how, ...owner, extra: more === null ? null : endedExtraFrom(more) };
}

const endOf = ([at, seq, error, resultHash, resultSize, resultSeq]: format.EndRow): End => ({
  at: at as Instant,
  seq,
  error,
  resultHash,
  resultSize,
  resultSeq,
});

function loadSchedule({ state }: Loading, [, name, body, nextAt, lastAt, lastTask]: format.ScheduleRow): void {
  const id = name as ScheduleId;
  const times = { nextAt: nextAt as Instant | null, lastAt: lastAt as Instant | null };
  state.schedules.set(id, { id, body, ...times, lastTask: lastTask as TaskId | null });
}

/** What needs all lines: ties between tasks, the order of ends, queues, calls of attempts, the clocks of tabs. */
function finish(loading: Loading): State {
  const { state } = loading;
  for (const { links, seqs, owner } of loading.dependents) {
    for (const seq of seqs) links.dependents.push(seq === 0 ? gone(owner) : taskAt(loading, seq));
  }
  for (const task of loading.tasks) if (task.links !== null) nameAll(state, task, 1, keptBy(task.links));
  for (const plan of state.plans.values()) adoptGroup(state, plan);
  const ended = loading.tasks.filter((task) => task.end !== null && task.links?.due !== true);
  ended.sort((left, right) => (left.end as End).seq - (right.end as End).seq);
  for (const task of ended) {
    push(endsOf(state, task.phase), { task, end: task.end as End });
    if (task.links !== null && task.links.notified < task.links.dependents.length) state.unnotified.add(task);
  }
  for (const task of loading.tasks) settleQueue(state, task);
  for (const { held, queue } of state.gates.values()) {
    for (const permit of held.values()) notePermit(state, permit);
    for (const { ticket } of queue.entries.values()) notePermit(state, ticket);
  }
  state.levels.highest = loading.highest;
  watchTabs(state);
  return state;
}

/** Stands for a dependent that has ended and is kept no longer: it is counted when notified, and does nothing. */
const gone = (owner: Task): Task => ({ ...owner, phase: "skipped", links: null, timers: null, group: null });
