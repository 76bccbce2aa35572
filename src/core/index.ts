/**
 * drover/core: the pure state machine, and the small pieces of it on their own.
 *
 *     decide(state, command, now) → events | refusal        evolve(state, event)        why(state, task, now)
 *
 * Nothing here reads a clock, draws lots or waits: instants and spans are whole milliseconds and are handed in.
 * These names and shapes are public and stable.
 */
export type { Load } from "./admission.ts";
export {
  type AgentId,
  agentId,
  type Duration,
  type GateId,
  gateId,
  type Instant,
  instant,
  milliseconds,
  type PermitId,
  type ProjectId,
  permitId,
  projectId,
  type Seq,
  seconds,
  seq,
  type TaskId,
  taskId,
  type WorkerId,
  workerId,
} from "./brand.ts";
export type {
  AskPermit,
  AttemptReport,
  Command,
  Decided,
  Decision,
  Submission,
  Warning,
  WorkerKind,
  WorkerSettings,
} from "./commands.ts";
export {
  type BackpressureRules,
  type BudgetRules,
  type Config,
  DEFAULT_CONFIG,
  type FairnessRules,
  type PlacementRules,
  type PriorityRules,
  type ProjectSettings,
  readConfig,
  type SchedulerRules,
  STRATEGIES,
  type Strategy,
} from "./config.ts";
export { nextInstant } from "./deadlines.ts";
export { decide } from "./decide.ts";
export { batchOrder } from "./dependency.ts";
export { emptyState } from "./empty-state.ts";
export {
  type Event,
  type EventKind,
  FIELDS,
  type LossCause,
  type Rank,
  type StopCause,
  type TaskSubmitted,
  taskOf,
} from "./events.ts";
export { evolve } from "./evolve.ts";
export { type GateClass, type GateSettings, type GateStanding, gateStanding } from "./gate.ts";
export { InputError } from "./input-error.ts";
export {
  deficits,
  globalExhausted,
  type PublicLoad,
  projectExhausted,
  type ScoredTask,
  score,
  shouldAccept,
  shouldThrottle,
  targetRatios,
} from "./pieces.ts";
export type { AffinityKind, Reason } from "./placement.ts";
export {
  planRound,
  type RoundPolicy,
  type RoundProject,
  type RoundSnapshot,
  type RoundStart,
  type RoundTask,
  type RoundWorker,
} from "./plan-round.ts";
export { type Refusal, sentence } from "./refusal.ts";
export { BrokenInvariant, type Failed, type Ok, type Result } from "./result.ts";
export { restore, SNAPSHOT_FORMAT, SnapshotUnreadable, snapshotLines } from "./snapshot.ts";
export type { Agent, Attempt, EndPhase, LivePhase, Phase, Project, State, Task, Tombstone, Worker } from "./state.ts";
export { type Why, type WhyAhead, type WhyCode, type WhyCondition, why } from "./why.ts";
export {
  createWindow,
  limitWindow,
  type UsageWindow,
  type WindowFacts,
  type WindowKind,
  type WindowOptions,
  windowFromFacts,
} from "./window.ts";
