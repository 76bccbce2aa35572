/** What other layers may use of this room. */

export { keepPrivate, makeOwnDirectory, makeOwnFile, OWN_FILE_MODE } from "./data-directory.ts";
export { rateLimitOf } from "./rate-limit.ts";
export { readRetryAfter } from "./retry-after.ts";
export { nextTurn, realTimers, type Timers } from "./timers.ts";
