/** What other layers may use of this room. */

export {
  type AlarmOptions,
  type Clock,
  clockFrom,
  isReading,
  nextTurn,
  realClock,
  ringAfter,
  ringEvery,
  withSteadyDate,
} from "./clock.ts";
export { keepPrivate, makeOwnDirectory, makeOwnFile, OWN_FILE_MODE } from "./data-directory.ts";
export { createHandClock, type HandClock, type HandClockOptions, type Moves, type TestClock } from "./hand-clock.ts";
export { isoTime } from "./iso-time.ts";
export { rateLimitOf } from "./rate-limit.ts";
export { readRetryAfter } from "./retry-after.ts";
