/**
 * What became of an attempt: from what its handler returned or threw.
 *
 * A value is its result, up to a size, or asks for another round of its loop. A handler that knows outcomes itself,
 * like the one that runs commands, says them outright.
 */

import { ClientError } from "../../client/index.ts";
import { cutError } from "../../core/base/index.ts";
import type { Usage } from "../../protocol/index.ts";
import { isAgain, jsonFault, type OwnFault, present, RESULT_BYTES_MAX, readThrown, spanOf } from "../../std/index.ts";
import { TOKENS_MAX, USAGE_FIELDS } from "../output/events.ts";
import type { Outcome, Report } from "./messages.ts";

const OUTCOMES: readonly unknown[] = ["done", "failed", "cancelled", "requeue", "skipped", "again", "ask"];

/** That it is done, and nothing beside it. */
export const DONE: Report = { outcome: "done" };
/** Of a task that is no JSON, wherever that shows. */
export const UNREADABLE: Report = { outcome: "requeue", error: "its worker could not read it" };

/** `used` is what the handler reported while it ran. */
export function reportOfValue(value: unknown, used: Usage | null): Report {
  if (value === undefined && used === null) return DONE;
  const usage = present({ usage: used });
  if (isAgain(value)) return { outcome: "again", ...noteOf(value.note), ...usage };
  return { outcome: "done", ...resultOf(value), ...usage };
}

export function reportOfOutcome(given: unknown, used: Usage | null): Report {
  const {
    outcome,
    result,
    error,
    usage: said,
    retryAfterMs,
    rateLimited,
    permanent,
    note,
    question,
    timeoutMs,
  } = (given ?? {}) as Outcome;
  if (!OUTCOMES.includes(outcome)) throw permanentError(`outcome must be one of ${OUTCOMES.join(", ")}`);
  const usage = largerUsage(used, isUsage(said) ? said : null);
  return {
    outcome,
    // A result counts only with success.
    ...(outcome === "done" ? resultOf(result) : {}),
    ...(error === undefined ? {} : { error: cutError(String(error)) }),
    ...present({ usage }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs: spanOf(retryAfterMs) ?? 0 }),
    ...(rateLimited === true ? { rateLimited } : {}),
    ...(permanent === true ? { permanent } : {}),
    ...(outcome === "again" ? noteOf(note) : {}),
    ...(outcome === "ask" ? present({ question: question === undefined ? null : cutError(question), timeoutMs }) : {}),
  };
}

const noteOf = (note: string | undefined): { note?: string } =>
  note === undefined || note === "" ? {} : { note: cutError(String(note)) };

/** For whatever a handler throws. */
export function reportOfError(error: unknown, used: Usage | null, wallNow: number): Report {
  const { outcome, ...more } = readThrown(error, wallNow, ownFault);
  return { outcome, ...present({ ...more, usage: used }) };
}

function ownFault(error: unknown): ReturnType<OwnFault> {
  if (!(error instanceof ClientError)) return null;
  return error.code === "over_capacity" ? "no room" : error.code === "too_large" ? "permanent" : null;
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

/**
 * Undefined for undefined: there is no result then. What JSON cannot hold (a function, NaN, a date, a cycle) is refused
 * by its path, by the same rules as for a worker inside the engine's process. Another try would not mend that, so the
 * error is permanent.
 */
export function jsonText(value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  const fault = jsonFault(value, path);
  if (fault === null) return JSON.stringify(value);
  throw permanentError(`${fault.field} must be ${fault.expected}, not ${fault.value}`);
}

/** What a handler or its caller got wrong: another attempt would, too. */
export const permanentError = (message: string): Error => Object.assign(new TypeError(message), { permanent: true });

/**
 * The tokens that are charged for a usage. A misspelt count would be a call that is never paid for, so it is refused
 * where it is made and the task fails for good.
 */
export function tokensOf(usage: Usage): number {
  if (typeof usage !== "object" || usage === null || Array.isArray(usage))
    throw permanentError("usage must be an object with inputTokens and outputTokens");
  const known: readonly string[] = [...USAGE_FIELDS, "cachedTokens", "cost"];
  const unknown = Object.keys(usage).find((key) => !known.includes(key));
  if (unknown !== undefined) throw permanentError(`usage.${unknown} is not known; known are ${known.join(", ")}`);
  countOf(usage.cachedTokens ?? 0, "cachedTokens");
  if (!(usage.cost === undefined || (Number.isFinite(usage.cost) && usage.cost >= 0 && usage.cost <= COST_MAX)))
    throw permanentError(`usage.cost is ${String(usage.cost)}, and must be a number from 0 to ${COST_MAX}`);
  return USAGE_FIELDS.reduce((sum, field) => sum + countOf(usage[field] ?? 0, field), 0);
}

const COST_MAX = 1_000_000_000;

function countOf(count: unknown, field: string): number {
  if (Number.isSafeInteger(count) && (count as number) >= 0 && (count as number) <= TOKENS_MAX) return count as number;
  throw permanentError(`usage.${field} is ${String(count)}, and must be a whole number from 0 to ${TOKENS_MAX}`);
}

/** Whichever says more. */
export function largerUsage(first: Usage | null, second: Usage | null): Usage | null {
  if (first === null || second === null) return first ?? second;
  return tokensOf(second) >= tokensOf(first) ? second : first;
}

function isUsage(value: unknown): value is Usage {
  try {
    tokensOf(value as Usage);
    return true;
  } catch {
    return false;
  }
}
