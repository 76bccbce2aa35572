/**
 * The world as the log tells it.
 *
 * Two sorts of things live here. Facts are what events said: tasks, attempts, projects, workers, gates, sums of
 * tokens; a snapshot holds the facts. Everything else (queues in order, bit sets of shapes, counts of what runs, trees
 * over workers) is an index: it follows from the facts alone, is rebuilt when a snapshot is restored, and exists so
 * that no decision ever walks over tasks. Only `evolve` and what it calls may change any of it.
 *
 * A count of what is live is changed in one place, where an attempt is attached or detached (lifecycle/attempt.ts), and
 * a queue length where a task enters or leaves its group (turn/queue.ts); invariants/invariants.ts recounts both.
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
import type { AttemptSet } from "../collections/attempt-set.ts";
import type { BitSet } from "../collections/bit-set.ts";
import type { Fifo } from "../collections/fifo.ts";
import type { ShapeSet } from "../collections/shape-set.ts";
import type { SortedList } from "../collections/sorted-list.ts";
import type { TaskTable } from "../collections/task-table.ts";
import type { Config, ProjectSettings } from "../config/config.ts";
import type { ConfigPatch } from "../config/config-patch.ts";
import type { SettledPermits } from "../gate/settled.ts";
import type { Gate } from "../gate/state.ts";
import type { RollingSum } from "../gate/usage-window.ts";
import type { PushTarget } from "./commands.ts";
import type { Cluster, FileRef, OnLoss, StopCause, Takes, TaskSubmitted, UsageTotals, WorkerKind } from "./events.ts";
import type { Approval, AttemptUsage, End, EndedExtra, Loop, Schedule } from "./extra.ts";
import type { Growth, Wait } from "./growth.ts";
import type { Ledger } from "./ledger.ts";
import type { Levels } from "./levels.ts";
import type { EndPhase, Phase, PhaseCounts } from "./phase.ts";
import type { Plan } from "./plan.ts";
import type { Room, UsedRoom } from "./room.ts";

export type { Schedule } from "./extra.ts";
export * from "./phase.ts";

/** What a task requires, shared by all tasks that require the same. */
export type Requirements = Pick<
  TaskSubmitted,
  | ("type" | "action" | "capabilities" | "cpu" | "memory" | "provider" | "locks" | "zone" | "tab" | "maxAttempts")
  | ("timeoutMs" | "onDependencyFailure" | "onLoss" | "prioritised")
> & {
  readonly key: string;
  users: number;
  /** How many worktrees it takes: one or none, as its action says. */
  readonly worktrees: number;
  /** The shape of its tasks that are not pinned, once known; shapes may be swept. */
  shape: Shape | null;
};

export type Demand = Pick<Requirements, "capabilities" | "cpu" | "memory" | "worktrees"> & {
  readonly key: string;
  readonly pin: Pin | null;
  /** The worker that has its worktree already, and needs no room for another. */
  readonly treeAt: WorkerId | null;
  /** What workers say of the tasks they take, and by which they refuse it (worker-filter.ts). */
  readonly refusedBy: readonly string[];
  /** One bit per needed capability by hash: a worker lacking a bit lacks the capability. */
  readonly bloom: number;
  readonly mask: ShapeSet;
  shapes: number;
  /** Workers that could serve it if they were empty, and workers with room for it now. */
  capable: number;
  feasible: number;
};

export type TypeUse = { readonly type: string; readonly mask: ShapeSet; inFlight: number; shapes: number };
export type LockUse = { readonly key: string; readonly mask: ShapeSet; holder: Attempt | null; shapes: number };
export type GateUse = { readonly name: string; readonly mask: ShapeSet; held: boolean; shapes: number };

export type Shape = {
  readonly id: number;
  readonly key: string;
  readonly type: TypeUse;
  readonly demand: Demand;
  readonly gate: GateUse | null;
  readonly locks: readonly LockUse[];
  queued: number;
};

export type Shapes = {
  readonly byKey: Map<string, Shape>;
  readonly byId: (Shape | undefined)[];
  readonly demands: Map<string, Demand>;
  readonly types: Map<string, TypeUse>;
  readonly locks: Map<string, LockUse>;
  readonly gates: Map<string, GateUse>;
  readonly freeIds: number[];
  idsUsed: number;
  idle: number;
  gatesHeld: number;
  readonly shutByType: BitSet;
  readonly shutByGate: BitSet;
  readonly shutByLock: BitSet;
  /** Type, gate or lock: everything but the workers. */
  readonly shutOtherwise: BitSet;
  readonly shutByWorkers: BitSet;
};

/** What ties a task to others; absent where nothing does. */
export type Links = {
  readonly parent: TaskId | null;
  readonly needs: readonly TaskId[];
  /** Dependencies that have not ended. */
  unmet: number;
  /** The input artifact it still waits for. */
  artifact: string | null;
  /** Tasks that wait for this one, in submission order, and how many of them were notified of its end. */
  readonly dependents: Task[];
  notified: number;
  /** Tasks and tombstones that name this one as parent: while there are any, it is remembered. */
  children: number;
  /** Tasks whose own time is not up that name this one as parent or need: while there are any, its record stays. */
  namedBy: number;
  /** It has ended and its time is up; its record goes with the last task that names it. */
  due: boolean;
  /** Its parent submitted it while it ran: it does not wait for it, and sees nothing of it. */
  readonly ofRunning: boolean;
};

/** Tasks that have one label, as `key=value`, in the order of submission. */
export type Label = { readonly text: string; readonly tasks: SortedList<Task> };

/** What an agent has of a group in a project: by where they are or how they ended, and those whose records are gone. */
export type GroupPart = Readonly<Record<"counts" | "gone", PhaseCounts>> & {
  readonly group: TaskGroup;
  readonly project: ProjectId;
  readonly agent: AgentId;
  /** How many have not ended. */
  live: number;
  /** When the last of them ended; -1 while one has not. */
  endedAt: number;
  /** What its attempts used; null if none has said. */
  usage: UsageTotals | null;
  /** That of all its tasks that have nothing else that is rare. */
  readonly extra: TaskExtra;
};
/** Tasks that were submitted together. */
export type TaskGroup = {
  readonly id: string;
  readonly createdAt: Instant;
  /** Those whose records are there, in the order of submission. */
  readonly tasks: SortedList<Task>;
  /** By project and agent. */
  readonly parts: Map<string, GroupPart>;
  /** Whose tasks they are, while that is known. */
  plan: Plan | null;
};

/** What few tasks have, or it is null. Tasks may share one: it is written by `extraOf` (lifecycle/labels.ts) alone. */
export type TaskExtra = {
  /** Its labels, in the order of their texts. */
  labels: readonly Label[] | null;
  /** What it was submitted together with. */
  group: GroupPart | null;
  usage: UsageTotals | null;
  /** The same by attempt, of the last so many that said. */
  attempts: AttemptUsage[] | null;
  loop: Loop | null;
  /** Its place in a tree that grows. */
  growth: Growth | null;
  wait: Wait | null;
  files: readonly FileRef[] | null;
  approval: Approval | null;
};

export type Task = {
  readonly id: TaskId;
  /** The event that submitted it: its position among equals, and where its body lies. */
  readonly seq: number;
  readonly project: Project;
  readonly agent: Agent;
  readonly requirements: Requirements;
  /** Kept only for ids the caller chose; "" otherwise. */
  readonly bodyHash: string;
  readonly createdAt: Instant;
  readonly depth: number;
  phase: Phase;
  /** It waits for nothing any more and will be queued in its turn. */
  ready: boolean;
  paused: boolean;
  priority: number;
  iteration: number;
  ownFailures: number;
  losses: number;
  /** How often a worker gave it back, and how often its provider said 429 or 529. */
  requeues: number;
  throttles: number;
  /** The number of the last attempt; the next one's is higher by one. */
  attempts: number;
  /** Of the tokens it will use: 0 if no estimate was given, -1 for an estimate of 0. */
  estimate: number;
  /** When it became runnable; -1 before that. */
  runnableAt: number;
  /** It rests, or must not start, until then; -1 if it need not. */
  restUntil: number;
  /** -1: none */
  deadline: number;
  /** The last event about it. */
  lastSeq: number;
  links: Links | null;
  attempt: Attempt | null;
  end: End | null;
  /** The worker that last ran it, and when that attempt was assigned. */
  lastWorker: WorkerId | null;
  startedAt: number;
  pin: Pin | null;
  group: Group | null;
  timers: Timer[] | null;
  extra: TaskExtra | null;
};

export type Attempt = {
  readonly task: Task;
  readonly number: number;
  readonly worker: Worker;
  readonly assignedAt: Instant;
  readonly charge: number;
  readonly express: boolean;
  state: "assigned" | "running" | "stopping";
  startedAt: number;
  reserve: number;
  /** What the worker reported so far, what its permits settled at, and what they said in detail until that is noted. */
  reported: number;
  permitted: number;
  permitUsage: UsageTotals | null;
  /** Whether any usage is known at all. */
  known: boolean;
  /** Its last call of its own provider was turned away, and the gate was told so with the permit of that call. */
  gateTold: boolean;
  /** Its calls that wait for a permit or have one; null if it never asked for any. */
  permits: Set<PermitId> | null;
  stopCause: StopCause | null;
  stopBy: number;
  /** Where it stands among those of its worker; kept by collections/attempt-set.ts. */
  index: number;
};

/** What one agent has waiting and out over all its projects: what the limits by agent count. */
export type AgentLoad = {
  /** Tasks waiting, queued or parked. */
  backlog: number;
  inFlight: number;
  /** Labels of which the oldest task that has them is its own. */
  labels: number;
  /** It has as much in flight as it may, and stands in no project's turn. */
  isFull: boolean;
  /** The agent in each of its projects. */
  readonly agents: Agent[];
};

/** An agent in one project: the unit of taking turns. */
export type Agent = {
  readonly id: AgentId;
  readonly project: Project;
  readonly load: AgentLoad;
  inFlight: number;
  lastServed: number;
  /** Tasks waiting, queued or parked: all that takes room in the limits. */
  backlog: number;
  /** Those of them that are parked: they wait for no turn. */
  parked: number;
  /** Tasks in groups, that is, runnable now. */
  queued: number;
  readonly groups: Group[];
  readonly groupByKey: Map<string, Group>;
  /** Tasks of its that are still readable, ended or not. */
  records: number;
  readonly totals: Record<"submitted" | "completed" | "failed" | "cancelled", number>;
  /** Those of its last task: its next one most likely has the same. */
  lastRequirements: Requirements | null;
};

/** Tasks of one agent that differ only in when they became runnable: the oldest is always the best. */
export type Group = {
  key: string;
  readonly agent: Agent;
  readonly priority: number;
  shape: Shape;
  readonly fixedScore: number;
  /** What the estimates of its tasks are: of some tokens (1), not given (0), of none (-1). */
  readonly estimateSign: number;
  readonly tasks: SortedList<Task>;
  /** The head's runnable time and seq, so that comparing groups touches no task. */
  headAt: number;
  headSeq: number;
  index: number;
};

export type Hold = { readonly task: Task; readonly worker: Worker };
export type Mean = { count: number; tokens: number };

export type Project = {
  readonly id: ProjectId;
  readonly registration: number;
  settings: ProjectSettings;
  /** Where its settings come from: what was put stays, the rest follows the config. */
  source: "default" | "named" | "put";
  status: "active" | "paused";
  level: number;
  /** All that was ever added to its level, before weights and half lives: tokens and start costs. */
  charged: number;
  /** What its attempts used in all; null if none has said. */
  usage: UsageTotals | null;
  /** Tokens settled within the budget's window. */
  spent: RollingSum;
  /** What was settled (tokens and start costs) and how many starts there were within fairness.window. */
  recent: RollingSum;
  starts: RollingSum;
  readonly means: Map<string, Mean>;
  readonly agents: Map<AgentId, Agent>;
  /** Agents with runnable tasks that may have more in flight, in the order of their turn. */
  readonly turn: SortedList<Agent>;
  inFlight: number;
  /** What live attempts were charged: it counts for the deficit rule until they settle. */
  chargesOut: number;
  /** What live attempts have set aside, and calls of no task that wait or are out. */
  reserved: number;
  callsReserved: number;
  backlog: number;
  parked: number;
  /** Runnable or resting tasks: with nothing here and nothing in flight the project is idle. */
  ready: number;
  queued: number;
  /** How many of them have no estimate of tokens, or one of none. */
  mayExpectNone: number;
  readonly shapes: BitSet;
  /** Queued tasks by the number of their shape. */
  readonly shapeCounts: number[];
  hold: Hold | null;
  /** Tasks whose estimate alone exceeds a budget: they stand in no queue until the limit or the estimate changes. */
  readonly oversize: Set<Task>;
};

export type Worker = Room &
  UsedRoom & {
    readonly id: WorkerId;
    readonly kind: WorkerKind;
    readonly session: string;
    /** Where a push worker is posted its tasks. */
    readonly target: PushTarget | null;
    /** Which tasks it takes, and that as a key; null: all. */
    readonly takes: Takes | null;
    readonly filter: string | null;
    /** The slots it joined with; it may want fewer for a while. */
    readonly offered: number;
    slots: number;
    capabilities: readonly string[];
    capabilitySet: ReadonlySet<string>;
    /** Its capabilities as one text: workers that offer the same stand together. */
    offers: string;
    zone: string | null;
    status: "ready" | "overloaded" | "draining" | "unreachable";
    /** In its own words: why it takes nothing, or nothing with a worktree. */
    note: string | null;
    readonly joinedAt: Instant;
    readonly attempts: AttemptSet<Attempt>;
    hold: Hold | null;
    demands: Demand[];
    /** Its index among the leaves of the tree. */
    leaf: number;
  };

/** A filter, and how many workers have it. */
export type Filter = { readonly key: string; readonly takes: Takes; workers: number };

/** What the tree over workers knows of all below a node, by the number of the node. */
export type TreeArrays = {
  lightest: Float64Array;
  cpuMost: Float64Array;
  cpuLeast: Float64Array;
  memoryMost: Float64Array;
  blooms: Int32Array;
  /** What each leaf offers, by its index, as a bloom; in the tree only while it is open. */
  offers: Int32Array;
};

export type Fleet = TreeArrays & {
  readonly byId: Map<WorkerId, Worker>;
  /** In the order of their ids. */
  order: Worker[];
  /** By what they offer, then by id: the leaves of the tree. Alike stand together, so that one look rules out many. */
  leaves: Worker[];
  /** What may queue on a worker beyond its slots: placement.maxQueuePerWorker. */
  room: number;
  /** Workers that can take work: ready, whether or not they have a free slot. */
  able: number;
  /** How many leaves the tree has room for. */
  width: number;
  /** How many workers offer each capability: a tab without an owner is one that no worker offers. */
  readonly offered: Map<string, number>;
  /** What workers say of the tasks they take, by its key. */
  readonly filters: Map<string, Filter>;
};

/** What stays of an ended task; its data may be on the worker that last ran it. */
export type Tombstone = Readonly<
  Pick<Task, "id" | "seq" | "bodyHash" | "depth" | "priority" | "createdAt" | "lastWorker">
> & {
  readonly phase: EndPhase;
  readonly parent: TaskId | null;
  readonly endedAt: Instant;
  /** The event that ended it, to read more. */
  readonly endSeq: number;
  children: number;
  /** Its time is up; it goes when its last child goes. */
  due: boolean;
};
/** An end of which a callback is still to be sent. */
type PendingCallback = {
  readonly task: TaskId;
  readonly end: Seq;
  /** Parked: somebody is asked. */
  readonly phase: EndPhase | "parked";
  /** Null: a snapshot of an older format did not say; or it has not ended. */
  readonly ended: EndedTask | null;
  /** Whom it is sent to; empty where an older log does not say. */
  readonly host: string;
};
/** A task as it had ended: what is shown of it, and where its body lies. */
export type EndedTask = Readonly<
  Pick<Task, "id" | "seq" | "createdAt" | "depth" | "priority" | "iteration" | "ownFailures" | "attempts"> &
    Pick<Task, "runnableAt" | "startedAt" | "deadline" | "lastWorker">
> & {
  readonly phase: EndPhase;
  readonly end: End;
  readonly project: { readonly id: ProjectId };
  readonly agent: { readonly id: AgentId };
  readonly requirements: { readonly onLoss: OnLoss };
  /** Null also in an older log. */
  readonly extra: EndedExtra | null;
};
/** A browser tab that queued tasks need. */
export type Tab = {
  readonly id: string;
  /** The event that made it known. */
  readonly seq: number;
  readonly tasks: SortedList<Task>;
  /** Since when no worker owns it; -1 while one does. */
  ownerlessSince: number;
  timer: Timer | null;
};

export type TimerKind = "deadline" | "wake" | "timeout" | "stop" | "pin" | "tab" | "approval";
export type Timer = {
  readonly at: number;
  readonly kind: TimerKind;
  readonly order: number;
  readonly task: Task | null;
  readonly attempt: Attempt | null;
  readonly tab: Tab | null;
};
export type Totals = Record<
  | ("submitted" | "completed" | "failed" | "cancelled" | "expired" | "skipped" | "rejected")
  | ("starts" | "waitMs" | "runMs" | "ends"),
  number
>;

/** An end, and whose it is: of a task that ran again since it is not the last one. */
type EndedEntry = { readonly task: Task; readonly end: End };

/** Everything the log says, and the indices that follow from it. Only `evolve` may change it. */
export type State = {
  /** The number of the last event. */
  seq: number;
  /** The instant of the last event, in log time. */
  at: Instant;
  /** What is in force: the base with the patch over it. */
  config: Config;
  /** The config as the host gave it. */
  base: Config;
  /** What was changed over the base by hand; null if nothing was. */
  patch: ConfigPatch | null;
  /** Whether the whole fleet is paused. */
  paused: boolean;
  /** All projects by name. */
  readonly projects: Map<ProjectId, Project>;
  /** How many projects were ever registered. */
  registrations: number;
  /** What each agent has waiting and in flight, over all its projects. */
  readonly loads: Map<AgentId, AgentLoad>;
  /** All tasks, live or ended, that are still readable. */
  readonly tasks: TaskTable<Task>;
  /** Ended tasks whose record has expired: their ids stay taken. */
  readonly tombstones: TaskTable<Tombstone>;
  /** The workers. */
  readonly fleet: Fleet;
  /** All gates by name. */
  readonly gates: Map<GateId, Gate>;
  /** The gate of each permit that is queued or held. */
  readonly permits: Map<PermitId, GateId>;
  /** Those of them whose attempt is over: they are to be taken back. */
  readonly strayPermits: SortedList<PermitId>;
  /** Permits of callers in other processes that were settled, the first of them first. */
  readonly settled: SettledPermits;
  /** The labels of all tasks that are still readable, by their text. */
  readonly labels: Map<string, Label>;
  /** Groups of tasks that are still readable, by their ids. */
  readonly groups: Map<string, TaskGroup>;
  /** All plans by name. */
  readonly plans: Map<string, Plan>;
  /** Those that have ended, in the order of their ends: the next to be forgotten comes first. */
  readonly endedPlans: SortedList<Plan>;
  /** Those that fail fast, and of which a task has failed: they are to be paused. */
  readonly failedPlans: Set<Plan>;
  /** How many tasks all plans have: their records stay as long as the plans are known. */
  heldByPlans: number;
  /** The tasks that list each file, by the hash of its content, as long as they are readable. */
  readonly files: Map<string, Set<Task>>;
  /** The tasks that name each task as parent, in the order of submission, as long as they are readable. */
  readonly children: Map<TaskId, SortedList<Task>>;
  /** What tasks require, by its key. */
  readonly requirements: Map<string, Requirements>;
  /** The shapes of queued tasks, and which of them cannot start. */
  readonly shapes: Shapes;
  /** The tasks that wait for each artifact. */
  readonly artifacts: Map<string, Set<Task>>;
  /** The callbacks that are wanted or due. */
  readonly callbacks: {
    /** The host that each task wants to be called. */
    readonly wanted: Map<TaskId, string>;
    /** The ends of which a callback is still to be sent, by the event that ended the task, oldest first. */
    readonly due: Map<Seq, PendingCallback>;
  };
  /** All schedules by id. */
  readonly schedules: Map<ScheduleId, Schedule>;
  /** The nodes of a cluster. */
  readonly cluster: Cluster;
  /** Browser tabs that queued tasks need. */
  readonly tabs: Map<string, Tab>;
  /** What becomes due by time alone, the earliest first. */
  readonly timers: SortedList<Timer>;
  /** Tasks that wait for a worker or a zone, by that. */
  readonly pins: Map<Pin, SortedList<Task>>;
  /** Those of `pins` that have no worker left. */
  readonly strayPins: Set<Pin>;
  /** Waiting tasks that wait for nothing any more, in the order of submission. */
  readonly ready: SortedList<Task>;
  /** Parked tasks that waited for what grew below them, all of which has ended: they are done. */
  readonly closing: Set<Task>;
  /** Ended tasks whose dependents were not all notified, in the order of their ends. */
  readonly unnotified: Set<Task>;
  /** Tasks that are done or were cancelled, in the order of their ends: the next to become a tombstone comes first. */
  readonly ended: Fifo<EndedEntry>;
  /** The same of those that failed or were skipped. */
  readonly endedBadly: Fifo<EndedEntry>;
  /** How many of `ended` there are whose time is not up. */
  results: number;
  /** How many of `endedBadly`. */
  failures: number;
  /** Tombstones whose time is not up, oldest first. */
  readonly remembered: Fifo<Tombstone>;
  /** Projects with runnable tasks, in the order of their turn. */
  readonly turn: SortedList<Project>;
  /** What the levels of projects are measured from. */
  readonly levels: Levels;
  /** Workers that are kept free for a task. */
  readonly holds: Set<Hold>;
  /** Groups of tasks that ask for CPU or memory, the longest waiting first: who may need a hold. */
  readonly holdCandidates: SortedList<Group>;
  /** Projects whose tasks may reach the express lane. */
  readonly expressProjects: Set<Project>;
  /** Tokens settled within the window of the whole budget. */
  spent: RollingSum;
  /** Tokens that live attempts have set aside. */
  reserved: number;
  /** Tokens set aside for calls of no task. */
  callsReserved: number;
  /** How many attempts are live. */
  inFlight: number;
  /** How many of them are in the express lane. */
  express: number;
  /** How many tasks wait for something. */
  waiting: number;
  /** Queued tasks, resting ones included. */
  queued: number;
  /** How many tasks wait for somebody's word, or for what grew below them. */
  parked: number;
  /** How many of them wait for what grew below them. */
  awaiting: number;
  /** The last worker round-robin chose. */
  cursor: WorkerId | null;
  /** Counts since the log began. */
  readonly totals: Totals;
  /** How many tasks of an agent found no room, of the agents it happened to last. */
  readonly rejected: Map<AgentId, number>;
  /** What attempts used, day by day. */
  readonly ledger: Ledger;
};
