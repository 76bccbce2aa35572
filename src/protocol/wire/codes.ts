/**
 * Every code by which Drover says no, with its status.
 *
 * The table is complete: a code has one status everywhere, and a code that is not in it does not compile.
 */

export type WireCode =
  | ("bad_request" | "unsupported_protocol" | "batch_too_large" | "unauthorized" | "forbidden" | "not_found")
  | ("method_not_allowed" | "conflict" | "stale_attempt" | "session_lost" | "stale_sync" | "too_large")
  | ("unsupported_media_type" | "queue_full" | "backpressure" | "limit" | "budget_exhausted" | "internal")
  | ("bytes_per_minute" | "log_full" | "damaged" | "over_capacity")
  | ("overloaded" | "closed" | "deposed" | "no_leader" | "behind" | "log_failed" | "worker_silent");

/** The body of every answer that is an error. */
export type WireError = {
  /** What is wrong and what would be right, for people. */
  readonly error: string;
  /** What is wrong, for programs. */
  readonly code: WireCode;
  /** Whether the very same request may succeed later. */
  readonly retryable?: boolean;
  /** The facts, such as field, value and expected. */
  readonly details?: Readonly<Record<string, unknown>>;
};

type Meaning = { readonly status: number; readonly retryable: boolean; readonly meaning: string };

const meaning = (status: number, text: string, retryable: boolean = false): Meaning => ({
  status,
  retryable,
  meaning: text,
});

export const WIRE_CODES: Readonly<Record<WireCode, Meaning>> = {
  bad_request: meaning(400, "A field is wrong or unknown; the error names it and says what would be right"),
  unsupported_protocol: meaning(400, "The request asks for a version of the protocol this server does not speak"),
  batch_too_large: meaning(400, "More tasks at once than scheduler.maxBatch"),
  unauthorized: meaning(401, "No token, or one this server does not know"),
  forbidden: meaning(403, "The token's role, project or agent does not allow this; or a foreign Origin or Host"),
  not_found: meaning(404, "No such task, file, project, worker, schedule, permit or path"),
  method_not_allowed: meaning(405, "The path is there, but not with this method"),
  conflict: meaning(409, "It stands otherwise than the request takes it to: the task has ended, the id is taken"),
  stale_attempt: meaning(409, "The attempt has lost its lease; another one counts now"),
  session_lost: meaning(409, "Another session has joined under this worker id, or it was given up: join again"),
  stale_sync: meaning(409, "A sync with a higher number has been seen already"),
  too_large: meaning(413, "The body is larger than server.bodyLimit, or the file than files.maxFile"),
  unsupported_media_type: meaning(415, "Bodies are application/json, and files application/octet-stream"),
  queue_full: meaning(429, "No room in the queue: scheduler.maxQueue or scheduler.maxPerAgent", true),
  backpressure: meaning(429, "Usage has reached backpressure.rejectThreshold, or there is no worker", true),
  limit: meaning(429, "A maximum number of projects, workers, schedules, gates or connections is reached"),
  bytes_per_minute: meaning(429, "The project has stored its bytesPerMinute: projects.default.bytesPerMinute", true),
  log_full: meaning(429, "The log has reached log.maxBytes, or what is left of it is kept for others", true),
  budget_exhausted: meaning(429, "The budget of the project is used up", true),
  internal: meaning(500, "A bug of Drover; the server's log has it"),
  damaged: meaning(500, "What is stored of this task is not what was written; run drover verify"),
  overloaded: meaning(503, "More at once than the server takes in", true),
  closed: meaning(503, "The server is shutting down", true),
  deposed: meaning(503, "Another writer has taken over the log", true),
  no_leader: meaning(503, "No node leads the cluster at the moment, or this one does not; ask again", true),
  behind: meaning(503, "This node has not applied the event that X-Drover-After names; ask again, or another", true),
  log_failed: meaning(503, "The log cannot be written; nothing is accepted until it can", true),
  over_capacity: meaning(507, "All files together have reached files.maxTotal, or could not be counted", true),
  worker_silent: meaning(504, "The worker that has the log did not hand it in within a few seconds"),
};

export const CODE_NAMES: readonly WireCode[] = Object.keys(WIRE_CODES) as WireCode[];

/** The error of a status that came without a body of ours, as from something that stands in between. */
export function codeOfStatus(status: number): WireCode {
  if (status === 502 || status === 504) return "overloaded";
  const found = CODE_NAMES.find((code) => WIRE_CODES[code].status === status);
  if (found !== undefined) return found;
  return status >= 500 ? "internal" : "bad_request";
}
