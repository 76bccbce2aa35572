/**
 * Tokens, as a handler reports them: input, output and cache creation, in all so far.
 *
 * A misspelt count would be a call that is never paid for, so it is refused where it is made and the task fails for
 * good.
 */
import type { Usage } from "../../protocol/index.ts";
import { TOKENS_MAX, USAGE_FIELDS } from "../output/events.ts";

/** The tokens that are charged for it. Throws if it makes no sense. */
export function tokensOf(usage: Usage): number {
  if (typeof usage !== "object" || usage === null || Array.isArray(usage))
    throw badUsage("usage must be an object with inputTokens and outputTokens");
  const unknown = Object.keys(usage).find((key) => !USAGE_FIELDS.some((field) => field === key));
  if (unknown !== undefined) throw badUsage(`usage.${unknown} is not known; known are ${USAGE_FIELDS.join(", ")}`);
  return USAGE_FIELDS.reduce((sum, field) => sum + countOf(usage[field] ?? 0, field), 0);
}

function countOf(count: unknown, field: string): number {
  if (Number.isSafeInteger(count) && (count as number) >= 0 && (count as number) <= TOKENS_MAX) return count as number;
  throw badUsage(`usage.${field} is ${String(count)}, and must be a whole number from 0 to ${TOKENS_MAX}`);
}

/** Whichever says more. */
export function largerUsage(first: Usage | null, second: Usage | null): Usage | null {
  if (first === null || second === null) return first ?? second;
  return tokensOf(second) >= tokensOf(first) ? second : first;
}

export function isUsage(value: unknown): value is Usage {
  try {
    tokensOf(value as Usage);
    return true;
  } catch {
    return false;
  }
}

const badUsage = (message: string): Error => Object.assign(new TypeError(message), { permanent: true });
