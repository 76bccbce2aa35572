/** What other layers may use of this room. */

export type {
  AttemptReport,
  CallbackOutcome,
  Command,
  Decided,
  Decision,
  PushTarget,
  Submission,
  Warning,
  WorkerSettings,
} from "./commands.ts";
export {
  ADDED,
  type AffinityKind,
  type Event,
  type EventKind,
  FIELDS,
  type Rank,
  RENAMED,
  type Reason,
  type Takes,
  type TaskSubmitted,
  taskOf,
} from "./events.ts";
export {
  type Agent,
  type Attempt,
  type End,
  type Ended,
  type EndPhase,
  hasEnded,
  type Project,
  type Schedule,
  type State,
  type Task,
  type Tombstone,
  type Worker,
} from "./state.ts";
