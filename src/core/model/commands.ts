/**
 * What may be asked of Drover.
 *
 * Commands are imperative and already parsed: past this point no value is unknown. `decide` answers
 * each with the events that make it true, or with a refusal. `pump` is the one command that no caller
 * gives: the host gives it whenever capacity or the clock may have changed, until it yields nothing.
 */
import type { GateId, Instant, PermitId, ProjectId, Seq, TaskId, WorkerId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { ok, type Result } from "../base/result.ts";
import type { Config, ProjectSettings } from "../config/config.ts";
import type { ConfigPatch } from "../config/config-patch.ts";
import type { GateClass } from "../gate/settings.ts";
import type {
  Event,
  EventFields,
  FileRef,
  Of,
  Offer,
  OnLoss,
  Takes,
  TaskSubmitted,
  UsageTotals,
  WorkerKind,
} from "./events.ts";

/** A task as submitted, parsed; the body itself lies beside the log and is known here by hash and size. */
export type Submission = Pick<
  TaskSubmitted,
  | ("project" | "agent" | "bodySize" | "type" | "capabilities" | "cpu" | "memory" | "provider" | "locks" | "zone")
  | ("tab" | "parent" | "needs" | "deadline" | "iteration" | "timeoutMs" | "onDependencyFailure" | "action")
> & {
  /** The id the caller chose; null if Drover makes one. */
  readonly id: TaskId | null;
  /** The SHA-256 of the body; empty where the log fills it in. */
  readonly bodyHash: string;
  /** Lower goes first; null if none was given: then it is the parent's, else 0. */
  readonly priority: number | null;
  /** The input artifact it needs; null if none. */
  readonly artifact: string | null;
  /** Whether that artifact is there already. */
  readonly artifactReady: boolean;
  /** When it may start at the earliest; null if at once. */
  readonly notBefore: Instant | null;
  /** Null: none was given. 0: it expects no tokens. */
  readonly estimatedTokens: number | null;
  /** Own failures it may have; null if none was given. */
  readonly maxAttempts: number | null;
  /** Each as `key=value`, in the order of their texts; absent: none. */
  readonly labels?: readonly string[];
  /** How many rounds its loop may have; 0 or absent: it is no loop. */
  readonly maxRounds?: number;
  /** What somebody must approve before it is queued; null or absent: nothing. */
  readonly approval?: TaskSubmitted["approval"];
  /** What must have ended before it is done; null or absent: nothing. */
  readonly wait?: TaskSubmitted["wait"];
  /** Null: as the task's kind has it; `fail` with a tab, else `retry`. */
  readonly onLoss?: OnLoss | null;
  /** The host that is called when it ends; null or absent: none. */
  readonly callback?: string | null;
};

/** Where a push worker is posted its tasks. */
export type PushTarget = { readonly endpoint: string; readonly path: string | null };
/** What a worker offers, and whether it takes tasks. */
export type WorkerSettings = Readonly<
  Omit<Offer, "worker" | "worktrees"> & Partial<Of<"note"> & Pick<Offer, "worktrees">>
>;

/** How an attempt ended, in the words of its worker. */
export type AttemptReport = Readonly<Of<"task" | "attempt">> & {
  /**
   * How it ended; `requeue` gives the task back, `skipped` says that there was nothing to do, `again` ends a round of
   * its loop, `ask` parks it until somebody answers.
   */
  readonly outcome: "done" | "failed" | "cancelled" | "requeue" | "skipped" | "again" | "ask";
  /** What went wrong; null if nothing did. */
  readonly error: string | null;
  /** The same in detail; null or absent if the worker did not say. */
  readonly usage?: UsageTotals | null;
  /** Tokens used in all, or null where that is unknown. */
  readonly tokens: number | null;
  /** How long the task rests first, in milliseconds; null if the worker did not say. */
  readonly retryAfterMs: number | null;
  /** With `requeue`: the provider said 429 or 529. */
  readonly rateLimited?: boolean;
  /** The SHA-256 of the result; null if there is none. */
  readonly resultHash: string | null;
  /** The size of the result in bytes; 0 if there is none. */
  readonly resultSize: number;
  /** A failure that another attempt cannot mend. */
  readonly permanent: boolean;
  /** With `again`: what the next round is to see; null or absent: nothing. */
  readonly note?: string | null;
  /** The files it left; absent: none. */
  readonly files?: readonly FileRef[];
  /** With `ask`: what is asked; null or absent: nothing in particular. */
  readonly question?: string | null;
  /** With `ask`: how long there is to answer, in milliseconds; null or absent: for ever. */
  readonly timeoutMs?: number | null;
};

type Settings<Value> = {
  /** Its settings from here on. */
  settings: Value;
};

/** What each command says. One that becomes an event as it is has the fields of that. */
type CommandFields = {
  "start-engine": EventFields["engine-started"];
  "join-node": EventFields["node-joined"];
  "set-config": {
    /** The config as the host gives it. */
    config: Config;
    /** What is changed over it by hand; null or absent: nothing. */
    patch?: ConfigPatch | null;
  };
  "put-project": Of<"project"> & Settings<ProjectSettings>;
  "set-paused": EventFields["pause-changed"];
  "submit-task": {
    /** The task as submitted. */
    submission: Submission;
    /** The group it is submitted with; null or absent: none. */
    group?: string | null;
    /** The attempt of its parent that submits it; null or absent: a caller does, and it waits for its parent. */
    ofRunning?: number | null;
    /** Room for it was made sure of together with the others it comes with. */
    counted?: boolean;
  };
  "cancel-task": Of<"task"> & {
    /** Why, in the words of the caller; null if it gave no reason. */
    reason: string | null;
  };
  "retry-task": Of<"task">;
  "approve-task": Of<"task" | "note"> & {
    /** It is denied, and fails. */
    deny: boolean;
  };
  "patch-task": Of<"task"> & {
    /** Its new priority; null: as before. */
    priority: number | null;
    /** Its new deadline; null takes it away, undefined: as before. */
    deadline: Instant | null | undefined;
  };
  "artifact-ready": EventFields["artifact-appeared"];
  "join-worker": Settings<WorkerSettings> & {
    /** The id it chose; null if Drover makes one. */
    worker: WorkerId | null;
    /** How it gets its tasks. */
    kind: WorkerKind;
    /** Tells it from an earlier worker of the same id. */
    session: string;
    /** Where a push worker is posted its tasks; null or absent for others. */
    target?: PushTarget | null;
    /** Which tasks it takes; null or absent: all. */
    takes?: Takes | null;
  };
  "change-worker": Of<"worker"> & Settings<WorkerSettings>;
  "leave-worker": EventFields["worker-left"];
  "start-attempt": EventFields["attempt-started"];
  "report-usage": EventFields["attempt-used"];
  "finish-attempt": {
    /** How the attempt ended. */
    report: AttemptReport;
  };
  /** Its worker no longer has it. */
  "lose-attempt": Of<"task" | "attempt"> & {
    /** How that came, for people. */
    reason: string;
  };
  /** It never reached who was to run it, whatever was said of it before. */
  "return-attempt": Of<"task" | "attempt"> & {
    /** It rests for the so manieth time since this happened too often; absent: it may start again at once. */
    rests?: number;
  };
  "ask-permit": {
    /** The id the caller chose; null if Drover makes one. */
    permit: PermitId | null;
    /** The gate. */
    gate: GateId;
    /** The task it is for; null if it is for none. */
    task: TaskId | null;
    /** The attempt it is for; null if it is for none. */
    attempt: number | null;
    /** The number of the event that submitted the task, if that is said: it tells it from a later one of its id. */
    taskSeq?: number | null;
    /** The project it is charged to. */
    project: ProjectId;
    /** How urgent it is; null: as its task is. */
    class: GateClass | null;
    /** Its estimate of tokens. */
    tokens: number;
    /** When the call was first asked for: a call that comes back after a 429 keeps its age. */
    askedAt: Instant | null;
    /** The sequence number it had among those of its instant, if it comes back after a 429. */
    order?: number | null;
    /** Asked for by another process, which may outlive this engine. */
    remote?: boolean;
  };
  "drop-permit": Of<"permit"> & {
    /** It was granted, and nobody has asked since. */
    isUnheard?: boolean;
  };
  "settle-permit": Of<"permit"> & {
    /** The call succeeded. */
    ok: boolean;
    /** Tokens the call used; null if that is unknown. */
    tokens: number | null;
    /** The same in detail; absent if that is unknown. */
    usage?: UsageTotals | null;
  };
  "throttle-gate": EventFields["gate-throttled"];
  /** Somebody knows better than what a caller said of its provider. */
  "reset-gate": Of<"gate">;
  "remove-gate": Of<"gate">;
  "settle-callback": {
    /** The event that ended the task. */
    end: Seq;
    /** What came of the calls. */
    outcome: CallbackOutcome;
  };
  "put-schedule": EventFields["schedule-put"];
  "move-schedule": EventFields["schedule-moved"];
  "remove-schedule": EventFields["schedule-removed"];
  "put-plan": EventFields["plan-put"] & {
    /** What is done with it at once, in this order, all of it or nothing: these tasks are cancelled. */
    cancels: readonly TaskId[];
    /** These run again. */
    retries: readonly TaskId[];
    /** These are submitted, each after those that it needs. */
    submissions: readonly Submission[];
  };
  "pause-plan": Of<"plan"> & {
    /** Otherwise it goes on. */
    paused: boolean;
  };
  "remove-plan": Of<"plan">;
  /** It is put as it was. */
  "renew-plan": Of<"plan">;
  /** All of it is cancelled. */
  "cut-plan": Of<"plan">;
  "count-rejected": EventFields["tasks-rejected"];
  pump: unknown;
};

/** What may be asked of `decide`. Its `type` says which fields it has. */
export type Command = CommandOf<keyof CommandFields>;
/** The commands of some types. */
export type CommandOf<Types extends keyof CommandFields> = {
  [Type in Types]: Readonly<
    {
      /** What is asked for. */
      type: Type;
    } & CommandFields[Type]
  >;
}[Types];
/** A call asks for a permit of a gate. */
export type AskPermit = CommandOf<"ask-permit">;

/** What came of calling a host because its task has ended. */
export type CallbackOutcome = { readonly ok: boolean; readonly status: number | null; readonly attempts: number };

/** Something the caller should know though nothing was refused. */
export type Warning =
  | {
      /** What it is about. */
      readonly type: "never-fits" | "no-workers" | "over-budget";
      /** One sentence, for people. */
      readonly detail: string;
    }
  | {
      /** What it is about. */
      readonly type: "priority-clamped";
      /** The priority that was asked for. */
      readonly asked: number;
      /** The priority it has: the most urgent its project may have. */
      readonly given: number;
    };

/** What a command leads to. */
export type Decision = {
  /** What happens, in order; `evolve` applies each. */
  readonly events: readonly Event[];
  /** The thing the command was about, where the core named it: a task, worker or permit id. */
  readonly id?: string;
  /** The command had been carried out before: nothing new happened. */
  readonly repeated?: boolean;
  /** What the caller should know; absent if there is nothing. */
  readonly warnings?: readonly Warning[];
};

/** The events that make a command true, or why it is refused. */
export type Decided = Result<Decision, Refusal>;
export const REPEATED: Decided = ok({ events: [], repeated: true });
