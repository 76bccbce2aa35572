/**
 * Whether an error is a provider's "too much, too fast", and how long it asked to wait.
 *
 * Clients of providers carry it in several ways: the status on the error or on its response, the span in
 * milliseconds, in seconds or as a date.
 */

const RATE_LIMIT_STATUS: readonly unknown[] = [429, 529];
const SPAN_MS_MAX = 31_556_952_000_000;

/** Milliseconds to wait, 0 if it did not say; null if it is another error. */
export function rateLimitOf(error: unknown, wallNow: number): number | null {
  try {
    const { status, statusCode, response } = fields(error);
    if (!RATE_LIMIT_STATUS.includes(status ?? statusCode ?? fields(response).status)) return null;
    return Math.min(SPAN_MS_MAX, Math.ceil(retryAfterOf(error, wallNow)));
  } catch {
    // A getter or a proxy that throws: it says nothing that could be understood.
    return null;
  }
}

function retryAfterOf(error: unknown, wallNow: number): number {
  const { retryAfterMs, headers, response } = fields(error);
  if (isSpan(retryAfterMs)) return retryAfterMs;
  const source = headers ?? fields(response).headers;
  const inMs = Number(header(source, "retry-after-ms") ?? Number.NaN);
  if (isSpan(inMs)) return inMs;
  const text = header(source, "retry-after")?.trim() ?? "";
  if (text === "") return 0;
  const inSeconds = Number(text);
  if (isSpan(inSeconds)) return inSeconds * 1000;
  const until = Date.parse(text) - wallNow;
  return isSpan(until) ? until : 0;
}

function header(headers: unknown, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const found = Object.entries(fields(headers)).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === "string" || typeof found === "number" ? String(found) : null;
}

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const isSpan = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0;
