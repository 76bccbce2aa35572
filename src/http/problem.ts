/**
 * How the server says no: every error becomes `{error, code, retryable?, details?}` with the right status.
 *
 * The engine's codes are mapped by a table that does not compile when one is missing; the wire's codes have their
 * status in the protocol. What nobody expected is a bug: the caller hears that it is one and nothing of the inside, the
 * log hears the rest. Where the same request may succeed later the answer says when: `Retry-After` holds whole seconds,
 * from the refusal if it knows, else one.
 */
import type { Refusal } from "../core/base/index.ts";
import { LogFailure } from "../engine/index.ts";
import { isoTime } from "../engine/tasks/index.ts";
import { DroverError, type DroverErrorCode, refused } from "../engine/writer/index.ts";

import { WIRE_CODES, type WireCode, type WireError } from "../protocol/index.ts";

const RETRY_AFTER_S = 1;

/** The engine's words on the wire. */
const WIRE_CODE: Readonly<Record<DroverErrorCode, WireCode>> = {
  bad_request: "bad_request",
  not_found: "not_found",
  conflict: "conflict",
  queue_full: "queue_full",
  backpressure: "backpressure",
  batch_too_large: "batch_too_large",
  limit: "limit",
  bytes_per_minute: "bytes_per_minute",
  log_full: "log_full",
  session_lost: "session_lost",
  stale_sync: "stale_sync",
  budget_exhausted: "budget_exhausted",
  stale_attempt: "stale_attempt",
  log_failed: "log_failed",
  deposed: "deposed",
  overloaded: "overloaded",
  closed: "closed",
  stopped: "closed",
  broken: "internal",
  damaged: "damaged",
};

export type Problem = {
  readonly status: number;
  readonly body: WireError;
  readonly retryAfterS?: number;
  /** Something nobody expected: the log should have it. */
  readonly isBug: boolean;
};

/** A refusal of the server itself, where the engine has not been asked. */
export class ServerRefusal extends Error {
  override readonly name: string = "ServerRefusal";
  readonly code: WireCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    code: WireCode,
    message: string,
    more: { readonly details?: Readonly<Record<string, unknown>>; readonly retryAfterMs?: number } = {},
  ) {
    super(message);
    this.code = code;
    this.details = more.details;
    this.retryAfterMs = more.retryAfterMs;
  }
}

export const forbidden = (message: string, details: Readonly<Record<string, unknown>> = {}): ServerRefusal =>
  new ServerRefusal("forbidden", message, { details });

export function problemOf(error: unknown): Problem {
  if (error instanceof DroverError) return ofEngine(error);
  if (error instanceof ServerRefusal)
    return problem(error.code, error.message, error.details, retryAfter(error.retryAfterMs));
  if (error instanceof LogFailure) return ofLog(error);
  return bug();
}

/** A refusal of the core, or of the wire's validator, as it is answered. */
export const problemOfRefusal = (refusal: Refusal): Problem => ofEngine(refused(refusal));

function ofEngine(error: DroverError): Problem {
  if (error.code === "broken") return bug();
  return problem(WIRE_CODE[error.code], error.message, detailsOf(error), retryAfter(error.details.retryAfterMs));
}

/** A log that cannot be read: the caller may try later, and the server's log has why. */
function ofLog({ code }: LogFailure): Problem {
  if (code === "closed") return problem("closed", "the server is shutting down; try again later");
  return { ...problem("log_failed", "the log cannot be read; the server's log says why"), isBug: true };
}

/** The core's short names are not those of the wire, and its instants are numbers. */
const ON_THE_WIRE: ReadonlyMap<string, string> = new Map([
  ["agent", "agentId"],
  ["task", "taskId"],
  ["worker", "workerId"],
  ["permit", "permitId"],
  ["schedule", "scheduleId"],
]);

function detailsOf({ details, refusal }: DroverError): Readonly<Record<string, unknown>> {
  if (refusal?.type === "past-deadline") {
    const { field, deadline, now } = refusal;
    return { field, deadline: isoTime(deadline), now: isoTime(now) };
  }
  const named = Object.entries(details).map(([key, value]) => [ON_THE_WIRE.get(key) ?? key, value]);
  return Object.fromEntries(named) as Record<string, unknown>;
}

const retryAfter = (ms: unknown): number =>
  typeof ms === "number" && Number.isFinite(ms) ? Math.max(RETRY_AFTER_S, Math.ceil(ms / 1000)) : RETRY_AFTER_S;

function problem(
  code: WireCode,
  error: string,
  details: Readonly<Record<string, unknown>> = {},
  retryAfterS: number = RETRY_AFTER_S,
): Problem {
  const { status, retryable } = WIRE_CODES[code];
  const body: WireError = {
    error,
    code,
    ...(retryable ? { retryable } : {}),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  };
  const isLater = status === 429 || status === 503;
  return { status, body, ...(isLater ? { retryAfterS } : {}), isBug: code === "internal" };
}

const bug = (): Problem => problem("internal", "this is a bug of Drover; the server's log says more");
