/**
 * What became of an attempt: from what its handler returned or threw.
 *
 * A value is its result, up to a size. An error is a failure, unless it asks for the task to come back: a
 * `TaskRequeue`, or a provider's 429 or 529. An error with `permanent: true` is not tried again. A handler that knows
 * outcomes itself, like the one that runs commands, says them outright.
 */

import type { Usage } from "../../protocol/index.ts";
import { RESULT_BYTES_MAX, rateLimitOf, spanOf, TaskRequeue } from "../../std/index.ts";
import type { Outcome, Report } from "./messages.ts";
import { jsonText } from "./result-json.ts";
import { isUsage, largerUsage } from "./usage.ts";

/** Errors are for people; what is longer belongs in a result. */
const ERROR_MAX = 4096;
const OUTCOMES: readonly unknown[] = ["done", "failed", "cancelled", "requeue"];

/** `used` is what the handler reported while it ran. */
export function reportOfValue(value: unknown, used: Usage | null): Report {
  return { outcome: "done", ...resultOf(value), ...(used === null ? {} : { usage: used }) };
}

export function reportOfOutcome(given: unknown, used: Usage | null): Report {
  const { outcome, result, error, usage: said, retryAfterMs, rateLimited, permanent } = (given ?? {}) as Outcome;
  if (!OUTCOMES.includes(outcome))
    throw Object.assign(new TypeError(`outcome must be one of ${OUTCOMES.join(", ")}`), { permanent: true });
  const usage = largerUsage(used, isUsage(said) ? said : null);
  return {
    outcome,
    // A result counts only with success.
    ...(outcome === "done" ? resultOf(result) : {}),
    ...(error === undefined ? {} : { error: cut(String(error)) }),
    ...(usage === null ? {} : { usage }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs: spanOf(retryAfterMs) ?? 0 }),
    ...(rateLimited === true ? { rateLimited } : {}),
    ...(permanent === true ? { permanent } : {}),
  };
}

/** For whatever a handler throws, also what cannot even be looked at. */
export function reportOfError(error: unknown, used: Usage | null, wallNow: number): Report {
  try {
    return readError(error, used, wallNow);
  } catch {
    const usage = used === null ? {} : { usage: used };
    return { outcome: "failed", error: "threw something that cannot be shown", ...usage };
  }
}

function readError(error: unknown, used: Usage | null, wallNow: number): Report {
  const message = cut(messageOf(error));
  const usage = used === null ? {} : { usage: used };
  if (error instanceof TaskRequeue)
    return { outcome: "requeue", error: message, retryAfterMs: spanOf(error.retryAfterMs) ?? 0, ...usage };
  const retryAfterMs = rateLimitOf(error, wallNow);
  if (retryAfterMs !== null) return { outcome: "requeue", error: message, retryAfterMs, rateLimited: true, ...usage };
  const isPermanent = (error as { permanent?: unknown } | null | undefined)?.permanent === true;
  return { outcome: "failed", error: message, ...(isPermanent ? { permanent: true } : {}), ...usage };
}

function resultOf(value: unknown): { result?: string } {
  const result = jsonText(value, "result");
  if (result === undefined) return {};
  const bytes = Buffer.byteLength(result);
  if (bytes <= RESULT_BYTES_MAX) return { result };
  const advice = "write more to an artifact and return its name";
  throw Object.assign(new RangeError(`result is ${bytes} bytes, and at most ${RESULT_BYTES_MAX} are kept; ${advice}`), {
    permanent: true,
  });
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return String(error.message || error.name);
  try {
    return typeof error === "string" ? error : (JSON.stringify(error) ?? String(error));
  } catch {
    return "an error that cannot be shown";
  }
}

const cut = (text: string): string => (text.length <= ERROR_MAX ? text : `${text.slice(0, ERROR_MAX)}…`).toWellFormed();
