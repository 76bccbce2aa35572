/**
 * What has happened: the format of the log.
 *
 * Each variant holds exactly what is true of it; what does not apply is null, so that an event read
 * back from its bytes is equal to the one that was written. `at` is log time. The number of an event
 * (its seq) is its position in the log and is not written in it. Events are a file format: variants are
 * added, never edited. event-fields.ts fixes the order in which an event's values are written.
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
import type { Config, ProjectSettings } from "../config/config.ts";
import type { ConfigPatch } from "../config/config-patch.ts";
import type { GateClass } from "../gate/settings.ts";
import type { PauseCause, PlanEntry } from "./plan.ts";

/** Where a task stood in its turn when it was assigned. */
export type Rank = {
  /** It started in the express lane. */
  readonly express: boolean;
  /** A worker was held for it. */
  readonly hold: boolean;
  /** The project's level before this start, or its share minus target under the deficit rule. */
  readonly level: number;
  /** The weight of its project. */
  readonly weight: number;
  /** How many attempts its agent had running in this project. */
  readonly agentInFlight: number;
  /** Its priority: lower goes first. */
  readonly priority: number;
  /** It had waited for `starvationAfter` or longer. */
  readonly overdue: boolean;
  /** Its score: higher goes first among equal priorities. */
  readonly score: number;
};

/** What draws a task to a worker. */
export type AffinityKind = "data-locality" | "previously-executed" | "same-zone";
/** What each rule that chooses a worker goes by. */
type ReasonFields = {
  "only-worker-available": unknown;
  "least-loaded": {
    /** How many attempts the worker had. */
    queueDepth: number;
  };
  "resource-fit": {
    /** The worker's free CPU in millicores; null if it is not limited. */
    availableCpu: number | null;
    /** The CPU the task needs, in millicores. */
    requiredCpu: number;
  };
  "round-robin": unknown;
  random: unknown;
  affinity: {
    /** What drew the task to the worker. */
    reason: AffinityKind;
  };
};

/** Why a task went to this worker. */
export type Reason = {
  [Type in keyof ReasonFields]: Readonly<
    {
      /** The rule that chose the worker. */
      type: Type;
    } & ReasonFields[Type]
  >;
}[keyof ReasonFields];

/** How a worker gets its tasks: in this process, by asking for them, or by being posted them. */
export type WorkerKind = "local" | "pull" | "push";
/** What a filter lets through; null: whatever there is. */
export type Takes = {
  readonly actions: readonly string[] | null;
  readonly types: readonly string[] | null;
  readonly projects: readonly string[] | null;
};

/** What events say, each fact described once. */
type Facts = {
  /** The project. */
  project: ProjectId;
  /** The task. */
  task: TaskId;
  /** The number of the attempt, from 1. */
  attempt: number;
  /** Tokens the attempt used; null if that is unknown. */
  tokens: number | null;
  /** When an attempt that must stop is given up; null if none runs. */
  stopBy: Instant | null;
  /** The event that led to it; null if none did. */
  cause: Seq | null;
  /** Why, in one sentence or in the words of the caller. */
  reason: string;
  /** The worker or zone it waits for; null if any will do. */
  pin: Pin | null;
  /** It is queued at once; otherwise it waits for something this event names. */
  runnable: boolean;
  /** The task rests until then. */
  restUntil: Instant;
  /** Dependencies it waits for. */
  waitFor: readonly TaskId[];
  /** The dependency that did not go well. */
  dependency: TaskId;
  /** The artifact's name. */
  artifact: string;
  /** The host that is called when the task ends. */
  host: string;
  /** The worker. */
  worker: WorkerId;
  /** In the worker's own words: why it takes nothing, or what the next round is to see; null if it gave none. */
  note: string | null;
  /** It was silent for too long; otherwise it leaves by itself. */
  lost: boolean;
  /** The gate. */
  gate: GateId;
  /** The permit. */
  permit: PermitId;
  /** The schedule. */
  schedule: ScheduleId;
  /** The name of the plan. */
  plan: string;
  /** The schedule as it was put, as JSON. */
  body: string;
  /** When it is due next; null if no run is left. */
  nextAt: Instant | null;
  /** How many of them. */
  count: number;
};
export type Of<Names extends keyof Facts> = Pick<Facts, Names>;

export type Offer = Of<"worker"> & {
  /** How many tasks it runs at once. */
  slots: number;
  /** What it offers. */
  capabilities: readonly string[];
  /** Its CPU in millicores; null if it is not limited. */
  cpu: number | null;
  /** Its memory in bytes; null if it is not limited. */
  memory: number | null;
  /** The zone it is in; null if it named none. */
  zone: string | null;
  /** Only a ready worker gets tasks. */
  status: "ready" | "overloaded" | "draining";
  /** How many of its tasks may have a worktree at the same time; null if that is not limited. */
  worktrees: number | null;
};

type Submitted = Of<"task" | "project" | "pin" | "runnable"> & {
  /** The agent that submitted it. */
  agent: AgentId;
  /** The caller chose the id. */
  named: boolean;
  /** The SHA-256 of the body. */
  bodyHash: string;
  /** The size of the body in bytes. */
  bodySize: number;
  /** Its type, such as `code`. */
  type: string;
  /** What its worker must offer. */
  capabilities: readonly string[];
  /** CPU it needs, in millicores. */
  cpu: number;
  /** Memory it needs, in bytes. */
  memory: number;
  /** The gate whose block also holds it; null if none. */
  provider: string | null;
  /** Keys that no two running tasks hold at once. */
  locks: readonly string[];
  /** The zone it prefers; null if it named none. */
  zone: string | null;
  /** The browser tab it needs; null if none. */
  tab: string | null;
  /** Its priority: lower goes first. */
  priority: number;
  /** Whether a priority was given: by the caller, or by its parent. */
  prioritised: boolean;
  /** How many ancestors it has. */
  depth: number;
  /** The task it belongs to and waits for; null if none. */
  parent: TaskId | null;
  /** Tasks that must end before it starts. */
  needs: readonly TaskId[];
  /** The input artifact it still waits for; null if none. */
  artifact: string | null;
  /** It does not start before this instant; null if that has passed or was not given. */
  notBefore: Instant | null;
  /** It fails if it has not ended by then; null if it has no deadline. */
  deadline: Instant | null;
  /** Tokens it will use: 0 if no estimate was given, -1 for an estimate of 0. Older logs say 0 for both. */
  estimatedTokens: number;
  /** Which try at the same work it is. */
  iteration: number;
  /** Own failures it may have. */
  maxAttempts: number;
  /** How long an attempt may run, in milliseconds; null if that is not limited. */
  timeoutMs: number | null;
  /** What becomes of it when a dependency did not go well. */
  onDependencyFailure: "skip" | "run";
  /** What becomes of it when a begun attempt is lost. */
  onLoss: OnLoss;
  /**
   * The name of its action; "" if that is a sentence. An exec with its command has a name of its own
   * (fleet/worker-filter.ts).
   */
  action: string;
  /** Its labels, each as `key=value`, in the order of their texts. */
  labels: readonly string[];
  /** The group it was submitted with; null if none. */
  group: string | null;
  /** How many rounds its loop may have; 0: it is no loop. */
  maxRounds: number;
  /** Its parent submitted it while it ran: it does not wait for the parent to end. */
  ofRunning: boolean;
  /** What somebody must approve before it is queued; null if nothing. */
  approval: {
    /** What is asked; null if nothing in particular. */
    readonly question: string | null;
    /** How long there is to answer, in milliseconds from when it is asked; null: for ever. */
    readonly timeoutMs: number | null;
  } | null;
  /** What must have ended, once its attempt is done, before it is: what grew below it; null if nothing. */
  wait: "children" | null;
};

/** What was used, in detail. */
export type UsageTotals = {
  /** Tokens that were read, with those that were written into a cache. */
  readonly inputTokens: number;
  /** Tokens that were written. */
  readonly outputTokens: number;
  /** Tokens that were read from a cache, which are not charged. */
  readonly cachedTokens: number;
  /** What that cost, in the currency of the worker; null if that is unknown. */
  readonly cost: number | null;
};

/** A file that an attempt left: its path in the workspace, the SHA-256 of its content, its size in bytes. */
export type FileRef = { readonly path: string; readonly hash: string; readonly size: number };

/** What becomes of a task whose attempt had begun and was lost: it runs again, or it ends, its outcome unknown. */
export type OnLoss = "retry" | "fail";

/** Why an attempt ended without a say of its task: the task goes back to the queue. */
export type LossCause = "worker-lost" | "worker-left" | "not-begun" | "budget" | "requeue" | "rate-limited";
/** Why an attempt must stop. */
export type StopCause = "cancelled" | "deadline" | "timeout" | "budget";

/** The nodes of a cluster by id, as their events tell of them, and which of them leads: null where there is none. */
export type Cluster = {
  readonly nodes: Map<string, Pick<EventFields["node-joined"], "url" | "key">>;
  leader: string | null;
};

/** What is true of each kind of event, beside its kind and its instant. */
export type EventFields = {
  "engine-started": {
    /** The version of the rules that decide from here on. */
    coreVersion: string;
    /** The SHA-256 of the config in force. */
    policyHash: string;
  };
  /** A node of a cluster makes itself known, or is known otherwise than before. */
  "node-joined": {
    /** Its id. */
    node: string;
    /** Where other nodes and clients reach it. */
    url: string;
    /** The public key of what it signs: ed25519, SPKI in base64. */
    key: string;
    /** Whether it leads from here on. */
    leads: boolean;
  };
  "config-changed": {
    /** The config as the host gave it. */
    config: Config;
    /** What was changed over it by hand; null if nothing was. */
    patch: ConfigPatch | null;
  };
  "project-put": Of<"project"> & {
    /** Its settings from here on. */
    settings: ProjectSettings;
    /** Where its settings come from: the defaults, the config, or a call. */
    source: "default" | "named" | "put";
  };
  "pause-changed": {
    /** What was paused or resumed. */
    scope: "fleet" | "project" | "task";
    /** The project or task; empty for the fleet. */
    id: string;
    /** Paused from here on, or resumed. */
    paused: boolean;
  };
  "task-submitted": Submitted;
  "task-queued": Of<"task" | "cause" | "pin">;
  "task-assigned": Of<"task" | "attempt" | "worker"> & {
    /** Why it went to this worker. */
    reason: Reason;
    /** Why it was this task's turn. */
    rank: Rank;
    /** Tokens its project is charged until the attempt settles. */
    charge: number;
    /** Tokens set aside of the budgets until the attempt settles. */
    reserve: number;
  };
  "attempt-started": Of<"task" | "attempt">;
  "attempt-usage": Of<"task" | "attempt"> & UsageTotals;
  "attempt-used": Of<"task" | "attempt"> & {
    /** Tokens used so far. */
    tokens: number;
  };
  "attempt-stopping": Of<"task" | "attempt"> & {
    /** Why it must stop. */
    cause: "timeout" | "budget";
    /** When it is given up. */
    stopBy: Instant;
  };
  "attempt-stopped": Of<"task" | "attempt" | "tokens"> & {
    /** It never began: its project gets its charge back, and nothing is learned from it. */
    unbegun: boolean;
  };
  "attempt-failed": Of<"task" | "attempt" | "tokens" | "restUntil"> & {
    /** The error, in the words of the worker. */
    error: string;
  };
  "attempt-lost": Of<"task" | "attempt" | "tokens" | "restUntil"> & {
    /** Why it was lost. */
    cause: LossCause;
    /** The task's estimate of tokens from here on. */
    estimate: number;
    /** In the words of the worker that gave it back, or why one that is there no longer has it; null: none. */
    reason: string | null;
  };
  "task-done": Of<"task" | "attempt" | "tokens"> & {
    /** The SHA-256 of the result; null if there is none. */
    resultHash: string | null;
    /** The size of the result in bytes; 0 if there is none. */
    resultSize: number;
    /** The `attempt-done` that has the result, of a task that waited for its children; null: this event has it. */
    resultSeq: Seq | null;
  };
  "task-failed": Of<"task" | "tokens" | "stopBy" | "reason"> & {
    /** The attempt that ended with it; null if none did. */
    attempt: number | null;
    /** Its deadline passed while it waited. */
    expired: boolean;
  };
  "task-cancelled": Of<"task" | "reason" | "stopBy">;
  "task-skipped": Of<"task" | "cause" | "reason"> & {
    /** The dependency that did not go well; null if its own attempt said that there was nothing to do. */
    dependency: TaskId | null;
    /** The attempt that said so; null if a dependency is why. */
    attempt: number | null;
    /** Tokens that attempt used; null if that is unknown. */
    tokens: number | null;
  };
  "task-retried": Of<"task" | "waitFor" | "runnable" | "pin">;
  "task-patched": Of<"task"> & {
    /** Its priority from here on: lower goes first. */
    priority: number;
    /** Its deadline from here on; null if it has none. */
    deadline: Instant | null;
  };
  "dependents-notified": Of<"task" | "count"> & {
    /** Those that wait for nothing else wait on for what of theirs runs again. An older log did not. */
    rejoins: boolean;
  };
  "artifact-appeared": Of<"artifact">;
  "pin-released": Of<"task">;
  "hold-placed": Of<"task" | "worker">;
  "hold-released": Of<"task" | "worker">;
  "worker-joined": Offer & {
    /** How it gets its tasks. */
    workerKind: WorkerKind;
    /** The session it joined with. */
    session: string;
    /** The URL a push worker is posted to; null for others. */
    endpoint: string | null;
    /** The path under it that the worker gave; null if it gave none. */
    path: string | null;
    /** Which tasks it takes; null: all. */
    takes: Takes | null;
  };
  "worker-changed": Offer & Of<"note">;
  "worker-left": Of<"worker" | "lost">;
  /** Another worker named tabs of this one, which it does not own any more. */
  "tabs-moved": Of<"worker"> & {
    /** The worker that owns them now. */
    to: WorkerId;
    /** The capabilities of those tabs. */
    capabilities: readonly string[];
  };
  "permit-asked": Of<"permit" | "gate" | "project"> & {
    /** The task it is for; null if it is for none. */
    task: TaskId | null;
    /** The attempt it is for; null if it is for none. */
    attempt: number | null;
    /** The weight of its project. */
    weight: number;
    /** How urgent it is. */
    class: GateClass;
    /** Its estimate of tokens. */
    tokens: number;
    /** When the call was first asked for. */
    askedAt: Instant;
    /** Another process asked for it, which may outlive this engine. */
    remote: boolean;
    /** Its number among those of its instant, if it comes back after a 429; else that of this event. */
    order: number | null;
  };
  "permit-granted": Of<"permit" | "gate">;
  "permit-dropped": Of<"permit" | "gate">;
  "permit-settled": Of<"permit" | "gate"> & {
    /** The call succeeded. */
    ok: boolean;
    /** Tokens it used; null if that is unknown. */
    tokens: number | null;
    /** It was not given back: its time was over, or that of its attempt. */
    expired: boolean;
    /** What it used in detail; null if its caller did not say. */
    usage: UsageTotals | null;
  };
  "gate-throttled": Of<"gate"> & {
    /** The permit of the call; null if it had none. */
    permit: PermitId | null;
    /** How long the provider asked to wait, in milliseconds. */
    retryAfterMs: number;
  };
  "gate-opened": Of<"gate">;
  "gate-reset": Of<"gate">;
  "gate-removed": Of<"gate">;
  "callback-asked": Of<"task" | "host">;
  "callback-settled": Of<"task"> & {
    /** The event that ended the task. */
    end: Seq;
    /** The call succeeded; otherwise it was given up. */
    ok: boolean;
    /** The last HTTP status; null if there was no answer. */
    status: number | null;
    /** How many calls were made. */
    attempts: number;
  };
  "schedule-put": Of<"schedule" | "body" | "nextAt">;
  "schedule-moved": Of<"schedule" | "nextAt"> & {
    /** When it was due. */
    lastAt: Instant;
    /** The task it submitted; null if that run was passed over. */
    lastTask: TaskId | null;
  };
  "schedule-removed": Of<"schedule">;
  "tasks-rejected": {
    /** How many tasks of each agent found no room since this was last said. */
    counts: readonly (readonly [agent: AgentId, count: number])[];
  };
  "results-expired": Of<"count"> & {
    /** How many of them other tasks name: those stay as long as these have time. */
    kept: number;
    /** Which: those that are done or were cancelled, or those that failed or were skipped. An older log says all. */
    of: "results" | "failures" | "all";
  };
  "tombstones-forgotten": Of<"count">;
  "round-ended": Of<"task" | "attempt" | "tokens" | "note" | "pin">;
  "attempt-files": Of<"task" | "attempt"> & {
    /** The files it left; the task has these from here on, and no others. */
    files: readonly FileRef[];
  };
  "task-parked": Of<"task" | "tokens"> & {
    /** The attempt that asks; null if none does. */
    attempt: number | null;
    /** What is asked; null if nothing in particular. */
    question: string | null;
    /** When it has failed if there is no answer; null: never. */
    until: Instant | null;
  };
  "task-approved": Of<"task" | "pin"> & {
    /** What the next attempt is to see; null if nothing. */
    note: string | null;
  };
  /** It has answered, and its task waits for what grew below it. */
  "attempt-done": Of<"task" | "attempt" | "tokens"> & {
    /** The SHA-256 of the result; null if there is none. */
    resultHash: string | null;
    /** The size of the result in bytes; 0 if there is none. */
    resultSize: number;
  };
  "plan-put": Of<"plan" | "project"> & {
    /** What paths in it start from; null: where its worker is. */
    directory: string | null;
    /** How often it was begun anew. */
    run: number;
    /** The first of its tasks that fails pauses it. */
    failsFast: boolean;
    /** Its tasks, each behind what it needs. */
    tasks: readonly PlanEntry[];
    /** How many of them were done before plans had groups. */
    adopted: number;
    /** The SHA-256 of its document. */
    documentHash: string;
    /** The size of its document in bytes. */
    documentSize: number;
    /** Who put it; null in logs of an older version. */
    agent: AgentId | null;
    /** Tasks of its document that are left out this time: what is there of them is kept. */
    others: readonly TaskId[];
  };
  "plan-paused": Of<"plan"> & {
    /** Somebody asked for it, or a task failed and it fails fast. */
    cause: PauseCause;
  };
  "plan-resumed": Of<"plan">;
  /** It has ended and was put again as it was: it is known for as long again. */
  "plan-renewed": Of<"plan">;
  /** What never came of its tasks will not: they count as cancelled. */
  "plan-cut": Of<"plan">;
  "plan-removed": Of<"plan"> & {
    /** Its time was up, or another plan needed room; otherwise somebody asked for it. */
    expired: boolean;
  };
};

/** Something that has happened: one entry of the log. Its `kind` says which fields it has. */
export type Event = EventOf<EventKind>;
/** The events of some kinds. */
export type EventOf<Kind extends EventKind> = {
  [Each in Kind]: Readonly<
    {
      /** What happened. */
      kind: Each;
      /** When, in log time. */
      at: Instant;
    } & EventFields[Each]
  >;
}[Kind];
/** A task was let in. */
export type TaskSubmitted = EventOf<"task-submitted">;

/** The name of a kind of event, such as `task-done`. */
export type EventKind = keyof EventFields;

/** The task an event is about, if it is about one. */
export const taskOf = (event: Event): TaskId | null => (event as { readonly task?: TaskId | null }).task ?? null;
