/** What other layers may use of this room. They read the state; only who calls `evolve` needs the mutable one. */

export type {
  AttemptReport,
  CallbackOutcome,
  Command,
  CommandOf,
  Decided,
  Decision,
  PushTarget,
  Submission,
  Warning,
  WorkerSettings,
} from "./commands.ts";
export { ADDED, EVENT_KINDS, FIELDS, RENAMED } from "./event-fields.ts";
export type { Event, EventKind, FileRef, Reason, Takes, TaskSubmitted, UsageTotals } from "./events.ts";
export { taskOf } from "./events.ts";
export type { Approval, AttemptUsage, End, Round } from "./extra.ts";
export type { LedgerRow } from "./ledger.ts";
export type {
  ReadonlyAgent as Agent,
  ReadonlyAttempt as Attempt,
  ReadonlyPlan as Plan,
  ReadonlyProject as Project,
  ReadonlyState as State,
  ReadonlyTask as Task,
  ReadonlyTaskGroup as TaskGroup,
  ReadonlyTombstone as Tombstone,
  ReadonlyWorker as Worker,
} from "./read-only.ts";
export type { EndedTask, EndPhase, Schedule, State as MutableState } from "./state.ts";
export { hasEnded } from "./state.ts";
