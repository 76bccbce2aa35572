/**
 * A call under a permit that is released on every path.
 *
 * An error whose status is 429 or 529 is the provider's word to everyone: it is reported to the gate first, then the
 * permit goes back (nobody sleeps with a slot in his hand), and the call queues again with its age, at most `attempts`
 * times in all. Any other error is the caller's own and is thrown on.
 */

import { SPAN_MS_MAX } from "../core/base/index.ts";
import { GateInputError } from "./gate-error.ts";
import type { GateHost } from "./gate-host.ts";
import { type AcquireOptions, checkAcquireOptions, parseAttempts } from "./gate-input.ts";
import type { Permit } from "./permit.ts";

export type WithPermitOptions = AcquireOptions & {
  /** How often the call may go out in all before its 429 is thrown on. */
  readonly attempts?: number;
};

const ATTEMPTS = 5;
const RATE_LIMIT_STATUS: readonly unknown[] = [429, 529];

export async function withPermit<Value>(
  host: GateHost,
  call: {
    readonly id: string;
    readonly fn: (permit: Permit) => Value | Promise<Value>;
    readonly options?: WithPermitOptions | undefined;
  },
): Promise<Value> {
  const { id, fn, options = {} } = call;
  if (typeof fn !== "function") throw new GateInputError("fn", fn, "a function");
  checkAcquireOptions(options, ["attempts"]);
  const { attempts = ATTEMPTS, ...asked } = options;
  parseAttempts(attempts);
  let permit = await host.acquire(id, asked);
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await fn(permit);
      permit.release({ ok: true });
      return value;
    } catch (error) {
      const isRateLimit = isRateLimitError(error);
      if (isRateLimit) host.rateLimited(retryAfterOf(error, host.wallNow()), id);
      permit.release({ ok: false });
      if (!isRateLimit || attempt >= attempts) throw error;
    }
    permit = await host.acquireAgain(permit, options.signal);
  }
}

/** An error that cannot be read, because a getter or a proxy throws, says nothing. */
export function isRateLimitError(error: unknown): boolean {
  try {
    const { status, statusCode, response } = fields(error);
    return RATE_LIMIT_STATUS.includes(status ?? statusCode ?? fields(response).status);
  } catch {
    return false;
  }
}

/**
 * What the provider asked for, in milliseconds; 0 if it did not say, or not so that one can read it. A wait without an
 * end is as long as a span may be.
 */
export function retryAfterOf(error: unknown, wallNow: number): number {
  try {
    return Math.min(SPAN_MS_MAX, asked(error, wallNow));
  } catch {
    return 0;
  }
}

function asked(error: unknown, wallNow: number): number {
  const { retryAfterMs, headers, response } = fields(error);
  if (isSpan(retryAfterMs)) return retryAfterMs;
  const source = headers ?? fields(response).headers;
  const inMs = Number(header(source, "retry-after-ms") ?? Number.NaN);
  if (isSpan(inMs)) return inMs;
  const text = header(source, "retry-after");
  if (text === null || text.trim() === "") return 0;
  const inSeconds = Number(text);
  if (isSpan(inSeconds)) return inSeconds * 1000;
  const until = Date.parse(text) - wallNow;
  return isSpan(until) ? until : 0;
}

function header(headers: unknown, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  for (const [key, value] of Object.entries(fields(headers))) {
    if (key.toLowerCase() === name && (typeof value === "string" || typeof value === "number")) return String(value);
  }
  return null;
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function isSpan(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}
