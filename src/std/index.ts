/** What other layers may use of this room. */

export { type Again, again, isAgain } from "./again.ts";
export { type Ask, type AskOptions, ask, asked, TaskAsk } from "./ask.ts";
export { attemptCode, attemptToken } from "./attempt-token.ts";
export { LastOnes, remember } from "./bounded-map.ts";
export type { CancelAlarm, Clock } from "./clock.ts";
export {
  answerWithin,
  clockFrom,
  isoTime,
  isReading,
  nextTurn,
  realClock,
  restFor,
  ringAfter,
  ringEvery,
  withSteadyDate,
} from "./clock.ts";
export {
  DATABASE_FILE,
  ifThere,
  isDirectory,
  keepPrivate,
  makeOwnDirectory,
  makeOwnFile,
  OWN_FILE_MODE,
} from "./data-directory.ts";
export { createHandClock, type TestClock } from "./hand-clock.ts";
export { keptBy } from "./kept-by.ts";
export { isLoopback } from "./loopback.ts";
export { JsonText, jsonFault, present, RESULT_BYTES_MAX } from "./plain-json.ts";
export { createProgress, type Progress } from "./progress.ts";
export { referenceIn } from "./result-reference.ts";
export { rateLimitOf, readRetryAfter, SPAN_MS_MAX, spanOf, TaskRequeue, TaskSkip } from "./retry-after.ts";
export { isSafePath, PATH_LENGTH_MAX, patternTest } from "./safe-path.ts";
export { atOnce, inSlices } from "./slices.ts";
export { unitAdvice } from "./span-text.ts";
export { type OwnFault, readThrown } from "./thrown.ts";
export { versionText } from "./version.ts";
export { collectYoung } from "./young-objects.ts";
