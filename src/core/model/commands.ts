/**
 * What may be asked of Drover.
 *
 * Commands are imperative and already parsed: past this point no value is unknown. `decide` answers
 * each with the events that make it true, or with a refusal. `pump` is the one command that no caller
 * gives: the host gives it whenever capacity or the clock may have changed, until it yields nothing.
 */
import type {
  AgentId,
  GateId,
  Instant,
  PermitId,
  ProjectId,
  ScheduleId,
  Seq,
  TaskId,
  WorkerId,
} from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import type { Result } from "../base/result.ts";
import type { Config, ProjectSettings } from "../config/config.ts";
import type { ConfigPatch } from "../config/config-patch.ts";
import type { GateClass } from "../gate/gate.ts";
import type { Event, OnLoss, RejectedCounts, Takes, WorkerKind } from "./events.ts";

/** A task as submitted, parsed; the body itself lies beside the log and is known here by hash and size. */
export type Submission = {
  readonly id: TaskId | null;
  readonly project: ProjectId;
  readonly agent: AgentId;
  readonly bodyHash: string;
  readonly bodySize: number;
  readonly type: string;
  readonly capabilities: readonly string[];
  readonly cpu: number;
  readonly memory: number;
  readonly provider: string | null;
  readonly locks: readonly string[];
  readonly zone: string | null;
  readonly tab: string | null;
  readonly priority: number | null;
  readonly parent: TaskId | null;
  readonly needs: readonly TaskId[];
  readonly artifact: string | null;
  readonly artifactReady: boolean;
  readonly notBefore: Instant | null;
  readonly deadline: Instant | null;
  /** Null: none was given. 0: it expects no tokens. */
  readonly estimatedTokens: number | null;
  readonly iteration: number;
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  readonly onDependencyFailure: "skip" | "run";
  /** Null: as the task's kind has it; `fail` with a tab, else `retry`. */
  readonly onLoss?: OnLoss | null;
  /** The name of its action; "" if that is a sentence. */
  readonly action: string;
  /** The host that is called when it ends; null or absent: none. */
  readonly callback?: string | null;
};

/** Where a push worker is posted its tasks. */
export type PushTarget = { readonly endpoint: string; readonly path: string | null };
export type WorkerSettings = {
  readonly slots: number;
  readonly capabilities: readonly string[];
  /** null: unlimited */
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly zone: string | null;
  readonly status: "ready" | "overloaded" | "draining";
  /** In its own words: why it takes nothing. */
  readonly note?: string | null;
};

export type AttemptReport = {
  readonly task: TaskId;
  readonly attempt: number;
  readonly outcome: "done" | "failed" | "cancelled" | "requeue";
  readonly error: string | null;
  /** Tokens used in all, or null where that is unknown. */
  readonly tokens: number | null;
  readonly retryAfterMs: number | null;
  /** With `requeue`: the provider said 429 or 529. */
  readonly rateLimited?: boolean;
  readonly resultHash: string | null;
  readonly resultSize: number;
  /** A failure that another attempt cannot mend. */
  readonly permanent: boolean;
};

export type Command =
  | { readonly type: "start-engine"; readonly coreVersion: string; readonly policyHash: string }
  | { readonly type: "set-config"; readonly config: Config; readonly patch?: ConfigPatch | null }
  | { readonly type: "put-project"; readonly project: ProjectId; readonly settings: ProjectSettings }
  | {
      readonly type: "set-paused";
      readonly scope: "fleet" | "project" | "task";
      readonly id: string;
      readonly paused: boolean;
    }
  | { readonly type: "submit-task"; readonly submission: Submission }
  | { readonly type: "cancel-task"; readonly task: TaskId; readonly reason: string | null }
  | { readonly type: "retry-task"; readonly task: TaskId }
  | {
      readonly type: "patch-task";
      readonly task: TaskId;
      readonly priority: number | null;
      readonly deadline: Instant | null | undefined;
    }
  | { readonly type: "artifact-ready"; readonly artifact: string }
  | {
      readonly type: "join-worker";
      readonly worker: WorkerId | null;
      readonly kind: WorkerKind;
      readonly session: string;
      readonly settings: WorkerSettings;
      readonly target?: PushTarget | null;
      /** Which tasks it takes; absent: all. */
      readonly takes?: Takes | null;
    }
  | { readonly type: "change-worker"; readonly worker: WorkerId; readonly settings: WorkerSettings }
  | { readonly type: "leave-worker"; readonly worker: WorkerId; readonly lost: boolean }
  | { readonly type: "start-attempt"; readonly task: TaskId; readonly attempt: number }
  | { readonly type: "report-usage"; readonly task: TaskId; readonly attempt: number; readonly tokens: number }
  | { readonly type: "finish-attempt"; readonly report: AttemptReport }
  /** Its worker no longer has it. */
  | { readonly type: "lose-attempt"; readonly task: TaskId; readonly attempt: number }
  /** It never reached who was to run it, whatever was said of it before. */
  | { readonly type: "return-attempt"; readonly task: TaskId; readonly attempt: number }
  | AskPermit
  | { readonly type: "drop-permit"; readonly permit: PermitId }
  | { readonly type: "settle-permit"; readonly permit: PermitId; readonly ok: boolean; readonly tokens: number | null }
  | {
      readonly type: "throttle-gate";
      readonly gate: GateId;
      readonly permit: PermitId | null;
      readonly retryAfterMs: number;
    }
  /** Somebody knows better than what a caller said of its provider. */
  | { readonly type: "reset-gate"; readonly gate: GateId }
  | { readonly type: "remove-gate"; readonly gate: GateId }
  | { readonly type: "settle-callback"; readonly end: Seq; readonly outcome: CallbackOutcome }
  | {
      readonly type: "put-schedule";
      readonly schedule: ScheduleId;
      readonly body: string;
      readonly nextAt: Instant | null;
    }
  | {
      readonly type: "move-schedule";
      readonly schedule: ScheduleId;
      readonly lastAt: Instant;
      readonly lastTask: TaskId | null;
      readonly nextAt: Instant | null;
    }
  | { readonly type: "remove-schedule"; readonly schedule: ScheduleId }
  | { readonly type: "count-rejected"; readonly counts: RejectedCounts }
  | { readonly type: "pump" };

/** What came of telling a caller that its task has ended. */
export type CallbackOutcome = { readonly ok: boolean; readonly status: number | null; readonly attempts: number };

export type AskPermit = {
  readonly type: "ask-permit";
  readonly permit: PermitId | null;
  readonly gate: GateId;
  readonly task: TaskId | null;
  readonly attempt: number | null;
  readonly project: ProjectId;
  readonly class: GateClass | null;
  readonly tokens: number;
  /** When the call was first asked for: a call that comes back after a 429 keeps its age. */
  readonly askedAt: Instant | null;
  /** The sequence number it had among those of its instant, if it comes back after a 429. */
  readonly order?: number | null;
  /** Asked for by another process, which may outlive this engine. */
  readonly remote?: boolean;
};

/** Something the caller should know though nothing was refused. */
export type Warning =
  | { readonly type: "never-fits"; readonly detail: string }
  | { readonly type: "no-workers"; readonly detail: string }
  | { readonly type: "over-budget"; readonly detail: string }
  | { readonly type: "priority-clamped"; readonly asked: number; readonly given: number };

export type Decision = {
  readonly events: readonly Event[];
  /** The thing the command was about, where the core named it: a task, worker or permit id. */
  readonly id?: string;
  /** The command had been carried out before: nothing new happened. */
  readonly repeated?: boolean;
  readonly warnings?: readonly Warning[];
};

export type Decided = Result<Decision, Refusal>;
