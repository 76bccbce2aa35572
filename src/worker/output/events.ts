/**
 * What lines of output mean.
 *
 * A line of stdout that is a JSON object with a `type` Drover knows is an event: `progress`, `usage`, `result`,
 * `heartbeat`. Anything else is log. The `result` line is also what `claude -p --output-format stream-json` prints
 * last, with its session, its cost and whether it went wrong, so those fields are understood here and not in a preset
 * only. A reader has a memory of one attempt; readers of other tools are in exec/presets.ts.
 */
import { isRecord } from "../../core/base/index.ts";
import type { Usage } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";

export type Line = {
  readonly stream: "out" | "err";
  readonly text: string;
  /** The line as JSON, if it is a whole line of stdout and an object. */
  readonly json: Readonly<Record<string, unknown>> | null;
};
/** What one line said. */
export type Said = {
  readonly progress?: unknown;
  /** Tokens so far, in all. */
  readonly usage?: Usage;
  readonly sessionId?: string;
  /** The session that was to be continued does not exist any more. */
  readonly isSessionGone?: boolean;
  readonly result?: { readonly value: unknown };
  readonly failure?: Failure | null;
  /** Something in it that makes no sense, and was left out. */
  readonly problem?: string;
};
/** The tool itself says that it went wrong, whatever its exit code. */
export type Failure = { readonly error: string; readonly later?: Later };
/** It is to come back later: because its provider said 429 or 529, or for another reason that passes. */
type Later = { readonly isRateLimited: boolean; readonly retryAfterMs?: number };
export type LineReader = (line: Line) => Said;

export const NOTHING: Said = {};

const WORDS = /rate[ _-]?limit|overloaded|too many requests|usage limit reached/i;
/** A number alone may count anything; right after a word of an answer's status it is one. */
const STATUS = new RegExp(
  "(?<![a-z])(?:https?(?:/[\\d.]+)?|status|(?:status[_-]?)?code|error|api|answered)" +
    "(?:\\W{1,4}(?:status|code|error|with)){0,2}\\W{1,4}(?:429|529)\\b",
  "i",
);
/** Whether somebody repeats what a provider says to those who ask too much. */
export const saysRateLimited = (text: string): boolean => WORDS.test(text) || STATUS.test(text);

export const textOr = (value: unknown, other: string): string =>
  typeof value === "string" && value !== "" ? value : other;

export function createEventReader(): LineReader {
  return ({ json }) => {
    if (json === null) return NOTHING;
    const session = typeof json.session_id === "string" ? { sessionId: json.session_id } : {};
    switch (json.type) {
      case "progress": {
        const { type: _, ...rest } = json;
        return { ...session, progress: "value" in json ? json.value : rest };
      }
      case "usage":
        return { ...session, ...readUsage(json.usage ?? json) };
      case "heartbeat":
        return { ...session, ...readUsage(json.usage) };
      case "result":
        return { ...session, ...readUsage(withCost(json)), ...readResult(json) };
      default:
        return session;
    }
  };
}

/** Coding agents say what all of it cost beside their usage. */
const withCost = ({ usage, total_cost_usd: cost }: Readonly<Record<string, unknown>>): unknown =>
  isRecord(usage) && typeof cost === "number" ? { cost, ...usage } : usage;

function readResult(json: Readonly<Record<string, unknown>>): Said {
  const failure = json.is_error === true ? { error: errorOf(json) } : null;
  return { failure, result: { value: resultOf(json) } };
}

/** An agent's result keeps what people ask for afterwards: what it cost, and which session it was. */
function resultOf(json: Readonly<Record<string, unknown>>): unknown {
  if (typeof json.session_id === "string") {
    const { result, session_id: sessionId, total_cost_usd: costUsd, num_turns: turns, duration_ms: durationMs } = json;
    const structured = json.structured_output === undefined ? {} : { structuredOutput: json.structured_output };
    return { result, ...structured, sessionId, costUsd, turns, durationMs };
  }
  const { type: _, usage: _usage, ...rest } = json;
  return "result" in json ? json.result : rest;
}

function errorOf(json: Readonly<Record<string, unknown>>): string {
  const errors = Array.isArray(json.errors) ? json.errors.filter((error) => typeof error === "string").join("; ") : "";
  const subtype = textOr(json.subtype, "error");
  return textOr(json.error, "") || textOr(json.result, "") || errors || `the agent says it failed: ${subtype}`;
}

const CHARGED_SPELLINGS = [
  ["inputTokens", "input_tokens"],
  ["outputTokens", "output_tokens"],
  ["cacheCreationTokens", "cache_creation_input_tokens"],
] as const;
/** What is charged. */
export const USAGE_FIELDS: readonly (keyof Usage)[] = CHARGED_SPELLINGS.map(([ours]) => ours);
const USAGE_SPELLINGS: readonly (readonly [keyof Usage, ...string[]])[] = [
  ...CHARGED_SPELLINGS,
  ["cachedTokens", "cache_read_input_tokens", "cached_input_tokens"],
];
/** What is charged, and what is only shown. */
const ALL_FIELDS: readonly (keyof Usage)[] = [...USAGE_SPELLINGS.map(([ours]) => ours), "cost"];
const COST_MAX = 1_000_000_000;
/** As much as anybody may report; more is not charged but taken for nonsense. */
export const TOKENS_MAX = 1_000_000_000_000;

/** In our spelling or the providers'; counts that are no counts are left out. */
export function readUsage(value: unknown): Pick<Said, "usage" | "problem"> {
  if (!isRecord(value)) return {};
  const counts: [string, number][] = [];
  let problem: string | null = null;
  for (const [ours, ...theirs] of USAGE_SPELLINGS) {
    const count = [ours, ...theirs].map((name) => value[name]).find((one) => one !== undefined);
    if (count === undefined || count === null) continue;
    if (typeof count === "number" && count >= 0 && count <= TOKENS_MAX) counts.push([ours, Math.round(count)]);
    else problem = `${ours} is not counted: it must be a number from 0 to ${TOKENS_MAX}`;
  }
  if (typeof value.cost === "number" && value.cost >= 0 && value.cost <= COST_MAX) counts.push(["cost", value.cost]);
  return present({ usage: counts.length === 0 ? null : Object.fromEntries(counts), problem });
}

export function addUsage(left: Usage, right: Usage): Usage {
  return combine(left, right, (a, b) => Math.min(TOKENS_MAX, a + b));
}

/** Totals only grow: a line that tells less than an earlier one is a slip, or about a part. */
export function grownUsage(left: Usage, right: Usage): Usage {
  return combine(left, right, Math.max);
}

function combine(left: Usage, right: Usage, merge: (a: number, b: number) => number): Usage {
  const said = ALL_FIELDS.filter((key) => left[key] !== undefined || right[key] !== undefined);
  return Object.fromEntries(said.map((key) => [key, merge(left[key] ?? 0, right[key] ?? 0)]));
}
