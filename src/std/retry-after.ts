/**
 * "Not now": when a caller may come back, by a header, by an error, or by the word of a handler.
 *
 * The `Retry-After` header holds whole seconds, or a date. Servers also send fractions, negative numbers, dates long
 * past and nonsense; what cannot be read is as if it were absent, and what is past means at once. Clients of providers
 * carry a 429 or 529 in several ways: the status on the error or on its response, the span in milliseconds or in the
 * headers. No span is longer than SPAN_MS_MAX; a caller bounds it further, since a header must not be able to put
 * something off for a year.
 */

/** A thousand years. */
export const SPAN_MS_MAX = 31_556_952_000_000;
const RATE_LIMIT_STATUS: readonly unknown[] = [429, 529];
/** The one form of date that servers may send; `Date.parse` alone would take "-5" for a year. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Thrown by a handler: there is nothing to do. The task ends as skipped, and so do those that need it. */
export class TaskSkip extends Error {
  override readonly name: string = "TaskSkip";
}

/** Thrown by a handler that wants its task back in the queue, at no cost to its attempts. */
export class TaskRequeue extends Error {
  override readonly name: string = "TaskRequeue";
  /** How long the task rests first. */
  readonly retryAfterMs: number;
  constructor(message: string, { retryAfterMs = 0 }: { readonly retryAfterMs?: number } = {}) {
    super(message);
    const read = spanOf(retryAfterMs);
    if (read === null || read < retryAfterMs)
      throw Object.assign(
        new RangeError(`retryAfterMs is ${retryAfterMs}, and must be milliseconds from 0 to ${SPAN_MS_MAX}`),
        { code: "bad_request" },
      );
    this.retryAfterMs = read;
  }
}

/** In milliseconds from now; null where there is nothing to be read. */
export function readRetryAfter(header: string | null | undefined, now: number): number | null {
  const text = header?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(text)) return spanOf(Number(text) * 1000);
  const at = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(at) ? Math.max(0, at - now) : null;
}

/** If the error is a provider's 429 or 529: the milliseconds it asked to wait, 0 if it did not say. Else null. */
export function rateLimitOf(error: unknown, now: number): number | null {
  const isRateLimit = readable(() => {
    const { status, statusCode, response } = fieldsOf(error);
    return RATE_LIMIT_STATUS.includes(status ?? statusCode ?? fieldsOf(response).status);
  });
  return isRateLimit === true ? (readable(() => askedMs(error, now)) ?? 0) : null;
}

function askedMs(error: unknown, now: number): number | null {
  const { retryAfterMs, headers, response } = fieldsOf(error);
  const source = headers ?? fieldsOf(response).headers;
  const inMs = headerOf(source, "retry-after-ms") ?? "";
  return (
    spanOf(retryAfterMs) ??
    (inMs === "" ? null : spanOf(Number(inMs))) ??
    readRetryAfter(headerOf(source, "retry-after"), now)
  );
}

/** A getter or a proxy that throws says nothing that could be understood. */
function readable<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Whole milliseconds; null for what is no span. */
export function spanOf(ms: unknown): number | null {
  return typeof ms === "number" && ms >= 0 ? Math.min(SPAN_MS_MAX, Math.ceil(ms)) : null;
}

function headerOf(headers: unknown, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const found = Object.entries(fieldsOf(headers)).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === "string" || typeof found === "number" ? String(found) : null;
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
