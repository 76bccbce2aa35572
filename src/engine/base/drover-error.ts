/**
 * The one error a caller of the engine sees.
 *
 * `code` is for programs, the message for people, `retryable` says whether the same call may succeed later,
 * and `refusal` holds the details as data where the core refused. Nothing else is thrown on purpose.
 */
import { badField, type Refusal, type Result, sentence, unreadable } from "../../core/base/index.ts";

/** Every code of a DroverError. */
export type DroverErrorCode =
  | ("bad_request" | "not_found" | "conflict" | "queue_full" | "backpressure" | "batch_too_large" | "limit")
  | ("session_lost" | "stale_sync" | "bytes_per_minute" | "log_full" | "damaged" | "too_large" | "over_capacity")
  | ("budget_exhausted" | "stale_attempt" | "log_failed" | "deposed" | "no_leader" | "overloaded" | "closed")
  | ("stopped" | "broken");

const CODE: Readonly<Record<Refusal["type"], DroverErrorCode>> = {
  "bad-field": "bad_request",
  "unknown-field": "bad_request",
  "past-deadline": "bad_request",
  cycle: "bad_request",
  "dependency-unknown": "bad_request",
  "dependency-refused": "bad_request",
  "task-unknown": "not_found",
  "group-unknown": "not_found",
  "plan-unknown": "not_found",
  "plan-live": "conflict",
  "task-exists": "conflict",
  "task-ended": "conflict",
  "task-not-ended": "conflict",
  "task-not-parked": "conflict",
  "approval-late": "conflict",
  "queue-full": "queue_full",
  backpressure: "backpressure",
  "no-workers": "backpressure",
  "batch-too-large": "batch_too_large",
  "project-unknown": "not_found",
  "too-many": "limit",
  "worker-unknown": "not_found",
  "worker-local": "conflict",
  "worker-exists": "conflict",
  "attempt-stale": "stale_attempt",
  "session-lost": "session_lost",
  "sync-stale": "stale_sync",
  "permit-exists": "conflict",
  "permit-settled": "conflict",
  "permit-unknown": "not_found",
  "schedule-unknown": "not_found",
  "bytes-per-minute": "bytes_per_minute",
  "log-full": "log_full",
  "gate-unknown": "not_found",
  "gate-configured": "conflict",
  "gate-in-use": "conflict",
  "budget-exhausted": "budget_exhausted",
  "dependency-failed": "conflict",
};
const RETRYABLE: ReadonlySet<DroverErrorCode> = new Set<DroverErrorCode>([
  ...(["queue_full", "backpressure", "overloaded", "deposed", "no_leader"] as const),
  ...(["budget_exhausted", "bytes_per_minute", "log_full", "over_capacity"] as const),
]);

/** A refusal, or why the engine stopped. */
export class DroverError extends Error {
  override readonly name: string = "DroverError";
  /** What is wrong, for programs. */
  readonly code: DroverErrorCode;
  /** Whether the very same call may succeed later. */
  readonly retryable: boolean;
  /** The refusal itself, where it is one. */
  readonly refusal: Refusal | null;
  /** The facts, such as field, value and expected. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: DroverErrorCode,
    message: string,
    more: { refusal?: Refusal; details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    this.refusal = more.refusal ?? null;
    const { type: _, ...fields } = more.refusal ?? { type: "" };
    this.details = { ...fields, ...more.details };
  }
}

export const refused = (refusal: Refusal, details: Record<string, unknown> = {}): DroverError =>
  new DroverError(CODE[refusal.type], sentence(refusal), { refusal, details });

/** The value; a refusal is thrown. */
export function accepted<Value>(result: Result<Value, Refusal>): Value {
  if (!result.ok) throw refused(result.failure);
  return result.value;
}

const STOPS: ReadonlySet<DroverErrorCode> = new Set<DroverErrorCode>([
  ...(["closed", "deposed", "no_leader", "log_failed", "broken"] as const),
]);

/**
 * Whether the engine has stopped, or only follows, so that a report has no receiver. Any other error must not be kept
 * quiet.
 */
export const isStop = (error: unknown): error is DroverError => error instanceof DroverError && STOPS.has(error.code);

export const badInput = (field: string, value: unknown, expected: string): DroverError =>
  refused(badField(field, value, expected));

/** What to throw where reading what a caller gave has thrown: if that itself throws, a refusal that says where. */
export function faultOfReading(thrown: unknown, given: unknown, path: string): unknown {
  if (thrown instanceof DroverError) return thrown;
  const refusal = unreadable(given, path);
  return refusal === null ? thrown : refused(refusal);
}

/** Reads what a caller gave. What every task costs does without the closure, and catches by itself. */
export function reading<Value>(given: unknown, path: string, read: () => Value): Value {
  try {
    return read();
  } catch (thrown) {
    throw faultOfReading(thrown, given, path);
  }
}
