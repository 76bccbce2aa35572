/**
 * What has happened: the format of the log.
 *
 * Each variant holds exactly what is true of it; what does not apply is null, so that an event read
 * back from its bytes is equal to the one that was written. `at` is log time. The number of an event
 * (its seq) is its position in the log and is not written in it. Events are a file format: variants are
 * added, never edited. FIELDS fixes the order in which an event's values are written; a field added
 * to a variant goes to the end and needs a default for old logs.
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
import type { GateClass } from "../gate/gate.ts";

export type Rank = {
  readonly express: boolean;
  readonly hold: boolean;
  /** The project's level before this start, or its share minus target under the deficit rule. */
  readonly level: number;
  readonly weight: number;
  readonly agentInFlight: number;
  readonly priority: number;
  readonly overdue: boolean;
  readonly score: number;
};

/** Why a task went to this worker. */
export type AffinityKind = "data-locality" | "previously-executed" | "same-zone";
export type Reason =
  | { readonly type: "only-worker-available" }
  | { readonly type: "least-loaded"; readonly queueDepth: number }
  | { readonly type: "resource-fit"; readonly availableCpu: number | null; readonly requiredCpu: number }
  | { readonly type: "round-robin" }
  | { readonly type: "random" }
  | { readonly type: "affinity"; readonly reason: AffinityKind };

export type WorkerKind = "local" | "pull" | "push";
/** What a filter lets through; null: whatever there is. */
export type Takes = {
  readonly actions: readonly string[] | null;
  readonly types: readonly string[] | null;
  readonly projects: readonly string[] | null;
};
/** How many tasks of each agent found no room since this was last said. */
export type RejectedCounts = readonly (readonly [agent: AgentId, count: number])[];

type Variant<Kind extends string, Fields> = Readonly<{ kind: Kind; at: Instant } & Fields>;

export type TaskSubmitted = Variant<
  "task-submitted",
  {
    task: TaskId;
    project: ProjectId;
    agent: AgentId;
    named: boolean;
    bodyHash: string;
    bodySize: number;
    type: string;
    capabilities: readonly string[];
    cpu: number;
    memory: number;
    provider: string | null;
    locks: readonly string[];
    zone: string | null;
    tab: string | null;
    priority: number;
    /** Whether anybody gave a priority: the caller, or its parent's. */
    prioritised: boolean;
    depth: number;
    parent: TaskId | null;
    needs: readonly TaskId[];
    artifact: string | null;
    notBefore: Instant | null;
    deadline: Instant | null;
    /** 0 if none was given, as in logs from before an estimate of 0 was distinct from that; -1 for an estimate of 0. */
    estimatedTokens: number;
    iteration: number;
    maxAttempts: number;
    timeoutMs: number | null;
    onDependencyFailure: "skip" | "run";
    /** Runnable at once; otherwise it waits for something named above. */
    runnable: boolean;
    pin: Pin | null;
    onLoss: OnLoss;
    /**
     * The name of its action; "" if that is a sentence. An exec with its command has a name of its own
     * (fleet/worker-filter.ts).
     */
    action: string;
  }
>;

/** What becomes of a task whose attempt had begun and was lost: it runs again, or it ends, its outcome unknown. */
export type OnLoss = "retry" | "fail";

export type LossCause = "worker-lost" | "worker-left" | "not-begun" | "budget" | "requeue" | "rate-limited";
export type StopCause = "cancelled" | "deadline" | "timeout" | "budget";

export type Event =
  | Variant<"engine-started", { coreVersion: string; policyHash: string }>
  /** The config as the host gave it, and what was changed over it by hand. */
  | Variant<"config-changed", { config: Config; patch: ConfigPatch | null }>
  | Variant<"project-put", { project: ProjectId; settings: ProjectSettings; source: "default" | "named" | "put" }>
  | Variant<"pause-changed", { scope: "fleet" | "project" | "task"; id: string; paused: boolean }>
  | TaskSubmitted
  | Variant<"task-queued", { task: TaskId; cause: Seq | null; pin: Pin | null }>
  | Variant<
      "task-assigned",
      { task: TaskId; attempt: number; worker: WorkerId; reason: Reason; rank: Rank; charge: number; reserve: number }
    >
  | Variant<"attempt-started", { task: TaskId; attempt: number }>
  | Variant<"attempt-used", { task: TaskId; attempt: number; tokens: number }>
  | Variant<"attempt-stopping", { task: TaskId; attempt: number; cause: "timeout" | "budget"; stopBy: Instant }>
  | Variant<"attempt-stopped", { task: TaskId; attempt: number; tokens: number | null }>
  | Variant<
      "attempt-failed",
      { task: TaskId; attempt: number; tokens: number | null; error: string; restUntil: Instant }
    >
  | Variant<
      "attempt-lost",
      {
        task: TaskId;
        attempt: number;
        tokens: number | null;
        cause: LossCause;
        estimate: number;
        restUntil: Instant;
        /** In the words of the worker that gave it back. */
        reason: string | null;
      }
    >
  | Variant<
      "task-done",
      { task: TaskId; attempt: number; tokens: number | null; resultHash: string | null; resultSize: number }
    >
  | Variant<
      "task-failed",
      {
        task: TaskId;
        attempt: number | null;
        tokens: number | null;
        reason: string;
        expired: boolean;
        stopBy: Instant | null;
      }
    >
  | Variant<"task-cancelled", { task: TaskId; reason: string; stopBy: Instant | null }>
  | Variant<"task-skipped", { task: TaskId; cause: Seq | null; dependency: TaskId; reason: string }>
  | Variant<"task-retried", { task: TaskId; waitFor: readonly TaskId[]; runnable: boolean; pin: Pin | null }>
  | Variant<"task-patched", { task: TaskId; priority: number; deadline: Instant | null }>
  | Variant<"dependents-notified", { task: TaskId; count: number }>
  | Variant<"artifact-appeared", { artifact: string }>
  | Variant<"pin-released", { task: TaskId }>
  | Variant<"hold-placed", { task: TaskId; worker: WorkerId }>
  | Variant<"hold-released", { task: TaskId; worker: WorkerId }>
  | Variant<
      "worker-joined",
      {
        worker: WorkerId;
        workerKind: WorkerKind;
        session: string;
        slots: number;
        capabilities: readonly string[];
        cpu: number | null;
        memory: number | null;
        zone: string | null;
        status: "ready" | "overloaded" | "draining";
        endpoint: string | null;
        path: string | null;
        /** Which tasks it takes; null: all. */
        takes: Takes | null;
      }
    >
  | Variant<
      "worker-changed",
      {
        worker: WorkerId;
        slots: number;
        capabilities: readonly string[];
        cpu: number | null;
        memory: number | null;
        zone: string | null;
        status: "ready" | "overloaded" | "draining";
        note: string | null;
      }
    >
  | Variant<"worker-left", { worker: WorkerId; lost: boolean }>
  /** Another worker named tabs of this one, which it does not own any more. */
  | Variant<"tabs-moved", { worker: WorkerId; to: WorkerId; capabilities: readonly string[] }>
  | Variant<
      "permit-asked",
      {
        permit: PermitId;
        gate: GateId;
        task: TaskId | null;
        attempt: number | null;
        project: ProjectId;
        weight: number;
        class: GateClass;
        tokens: number;
        askedAt: Instant;
        remote: boolean;
        /** Its number among those of its instant, if it comes back after a 429; else that of this event. */
        order: number | null;
      }
    >
  | Variant<"permit-granted", { permit: PermitId; gate: GateId }>
  | Variant<"permit-dropped", { permit: PermitId; gate: GateId }>
  | Variant<"permit-settled", { permit: PermitId; gate: GateId; ok: boolean; tokens: number | null; expired: boolean }>
  | Variant<"gate-throttled", { gate: GateId; permit: PermitId | null; retryAfterMs: number }>
  | Variant<"gate-opened", { gate: GateId }>
  | Variant<"gate-reset", { gate: GateId }>
  | Variant<"gate-removed", { gate: GateId }>
  | Variant<"callback-asked", { task: TaskId; host: string }>
  | Variant<"callback-settled", { task: TaskId; end: Seq; ok: boolean; status: number | null; attempts: number }>
  | Variant<"schedule-put", { schedule: ScheduleId; body: string; nextAt: Instant | null }>
  | Variant<
      "schedule-moved",
      { schedule: ScheduleId; lastAt: Instant; lastTask: TaskId | null; nextAt: Instant | null }
    >
  | Variant<"schedule-removed", { schedule: ScheduleId }>
  | Variant<"tasks-rejected", { counts: RejectedCounts }>
  | Variant<"results-expired", { count: number }>
  | Variant<"tombstones-forgotten", { count: number }>;

export type EventKind = Event["kind"];
type FieldsOf<Kind extends EventKind> = readonly Exclude<keyof Extract<Event, { kind: Kind }>, "kind" | "at">[];

/** The order in which the values of an event are written, after its kind and instant. */
export const FIELDS: { readonly [Kind in EventKind]: FieldsOf<Kind> } = {
  "engine-started": ["coreVersion", "policyHash"],
  "config-changed": ["config", "patch"],
  "project-put": ["project", "settings", "source"],
  "pause-changed": ["scope", "id", "paused"],
  "task-submitted": [
    ...([
      "task",
      "project",
      "agent",
      "named",
      "bodyHash",
      "bodySize",
      "type",
      "capabilities",
      "cpu",
      "memory",
    ] as const),
    ...([
      "provider",
      "locks",
      "zone",
      "tab",
      "priority",
      "prioritised",
      "depth",
      "parent",
      "needs",
      "artifact",
      "notBefore",
    ] as const),
    ...(["deadline", "estimatedTokens", "iteration", "maxAttempts", "timeoutMs", "onDependencyFailure"] as const),
    ...(["runnable", "pin", "onLoss", "action"] as const),
  ],
  "task-queued": ["task", "cause", "pin"],
  "task-assigned": ["task", "attempt", "worker", "reason", "rank", "charge", "reserve"],
  "attempt-started": ["task", "attempt"],
  "attempt-used": ["task", "attempt", "tokens"],
  "attempt-stopping": ["task", "attempt", "cause", "stopBy"],
  "attempt-stopped": ["task", "attempt", "tokens"],
  "attempt-failed": ["task", "attempt", "tokens", "error", "restUntil"],
  "attempt-lost": ["task", "attempt", "tokens", "cause", "estimate", "restUntil", "reason"],
  "task-done": ["task", "attempt", "tokens", "resultHash", "resultSize"],
  "task-failed": ["task", "attempt", "tokens", "reason", "expired", "stopBy"],
  "task-cancelled": ["task", "reason", "stopBy"],
  "task-skipped": ["task", "cause", "dependency", "reason"],
  "task-retried": ["task", "waitFor", "runnable", "pin"],
  "task-patched": ["task", "priority", "deadline"],
  "dependents-notified": ["task", "count"],
  "artifact-appeared": ["artifact"],
  "pin-released": ["task"],
  "hold-placed": ["task", "worker"],
  "hold-released": ["task", "worker"],
  "worker-joined": [
    "worker",
    "workerKind",
    "session",
    "slots",
    "capabilities",
    "cpu",
    "memory",
    "zone",
    "status",
    "endpoint",
    "path",
    "takes",
  ],
  "worker-changed": ["worker", "slots", "capabilities", "cpu", "memory", "zone", "status", "note"],
  "worker-left": ["worker", "lost"],
  "tabs-moved": ["worker", "to", "capabilities"],
  "permit-asked": [
    "permit",
    "gate",
    "task",
    "attempt",
    "project",
    "weight",
    "class",
    "tokens",
    "askedAt",
    "remote",
    "order",
  ],
  "permit-granted": ["permit", "gate"],
  "permit-dropped": ["permit", "gate"],
  "permit-settled": ["permit", "gate", "ok", "tokens", "expired"],
  "gate-throttled": ["gate", "permit", "retryAfterMs"],
  "gate-opened": ["gate"],
  "gate-reset": ["gate"],
  "gate-removed": ["gate"],
  "callback-asked": ["task", "host"],
  "callback-settled": ["task", "end", "ok", "status", "attempts"],
  "schedule-put": ["schedule", "body", "nextAt"],
  "schedule-moved": ["schedule", "lastAt", "lastTask", "nextAt"],
  "schedule-removed": ["schedule"],
  "tasks-rejected": ["counts"],
  "results-expired": ["count"],
  "tombstones-forgotten": ["count"],
};

/** Fields that older logs do not have, and what they mean where they are absent: the last of their kind, in order. */
export const ADDED: { readonly [Kind in EventKind]?: Readonly<Record<string, unknown>> } = {
  "config-changed": { patch: null },
  "task-submitted": { onLoss: "retry", action: "" },
  "attempt-lost": { reason: null },
  "callback-asked": { host: "" },
  "worker-joined": { endpoint: null, path: null, takes: null },
  "worker-changed": { note: null },
  "permit-asked": { remote: false, order: null },
};

/** Kinds that older logs know by another name. */
export const RENAMED: Readonly<Record<string, EventKind>> = {
  "gate-struck": "gate-throttled",
  "dependents-told": "dependents-notified",
};

/** The task an event is about, if it is about one. */
export const taskOf = (event: Event): TaskId | null => (event as { readonly task?: TaskId | null }).task ?? null;
