/**
 * drover/core: the pure state machine, and the small pieces of it on their own.
 *
 *     decide(state, command, now) → events | refusal        evolve(state, event)        why(state, task, now)
 *
 * Nothing here reads a clock, draws lots or waits: instants and spans are whole milliseconds and are handed in.
 * These names and shapes are public and stable.
 */

export type { AgentId, Duration, GateId, Instant, PermitId, ProjectId, Seq, TaskId, WorkerId } from "./base/brand.ts";
export {
  agentId,
  gateId,
  instant,
  milliseconds,
  permitId,
  projectId,
  seconds,
  seq,
  taskId,
  workerId,
} from "./base/brand.ts";
export { type Refusal, sentence } from "./base/refusal.ts";
export { BrokenInvariant, type Failed, type Ok, type Result } from "./base/result.ts";
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
} from "./config/config.ts";
export { decide } from "./decide.ts";
export { emptyState } from "./empty-state.ts";
export { evolve } from "./evolve.ts";
export { type GateStanding, gateStanding } from "./gate/limits.ts";
export type { GateClass, GateSettings } from "./gate/settings.ts";
export type { UsageWindow, WindowFacts, WindowKind, WindowOptions } from "./gate/usage-window.ts";
export { createWindow, limitWindow, windowFromFacts } from "./gate/usage-window.ts";
export type { Load } from "./lifecycle/admission.ts";
export { nextInstant } from "./lifecycle/deadlines.ts";
export { batchOrder } from "./lifecycle/dependency.ts";
export type {
  AskPermit,
  AttemptReport,
  Command,
  Decided,
  Decision,
  Submission,
  Warning,
  WorkerSettings,
} from "./model/commands.ts";
export { FIELDS } from "./model/event-fields.ts";
export {
  type AffinityKind,
  type Event,
  type EventKind,
  type LossCause,
  type Rank,
  type Reason,
  type StopCause,
  type TaskSubmitted,
  taskOf,
  type WorkerKind,
} from "./model/events.ts";
export type { ReadonlyState } from "./model/read-only.ts";
export type { EndPhase, LivePhase, Phase, State } from "./model/state.ts";
export { pump } from "./pump.ts";
export { restore, SNAPSHOT_FORMAT, SnapshotUnreadable, snapshotLines } from "./snapshot/snapshot.ts";
export {
  deficits,
  globalExhausted,
  InputError,
  type PublicLoad,
  projectExhausted,
  type ScoredTask,
  score,
  shouldAccept,
  shouldThrottle,
  targetRatios,
} from "./standalone/formulas.ts";
export { planRound, type RoundStart } from "./standalone/plan-round.ts";
export type {
  RoundPolicy,
  RoundProject,
  RoundSnapshot,
  RoundTask,
  RoundWorker,
} from "./standalone/plan-round-input.ts";
export { type Why, type WhyAhead, type WhyCode, type WhyCondition, why } from "./why/why.ts";
