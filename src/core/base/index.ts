/** What other layers may use of this room. */

export type {
  AgentId,
  Duration,
  GateId,
  Instant,
  PermitId,
  ProjectId,
  ScheduleId,
  Seq,
  TaskId,
  WorkerId,
} from "./brand.ts";
export { agentId, gateId, instant, milliseconds, projectId, seconds, seq, taskId } from "./brand.ts";
export { cutError, ERROR_LENGTH_MAX, errorText } from "./error-text.ts";
export { INSTANT_MAX, instantInWords, instantTextFault } from "./instant-text.ts";
export { distanceOf, nearest } from "./nearest.ts";
export { isPlainObject } from "./plain-object.ts";
export * from "./readers.ts";
export { badField, brokenness, kindShown, type Refusal, sentence, shown } from "./refusal.ts";
export { isKeptForOthers, keptOf } from "./reserve.ts";
export { BrokenInvariant, fail, invariant, ok, type Result } from "./result.ts";
export { unreadable } from "./unreadable.ts";
export { CORE_VERSION } from "./version.ts";
