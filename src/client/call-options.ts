/**
 * What any call may be given for the client itself, checked as it comes in.
 *
 * A number that is none would be refused by a timer in other words, or taken for one millisecond: it is refused here,
 * by its name. What a call says to the server is for that to take or to refuse.
 */
import { kindInWords } from "../std/plain-json.ts";
import { ClientError } from "./client-error.ts";

/** What any call may be given. */
export type CallOptions = {
  /** Gives the call up. */
  readonly signal?: AbortSignal | undefined;
  /** How long one try may take, beside what the call itself waits; of a file, how long nothing may come. */
  readonly timeoutMs?: number | undefined;
  /** How often a call is made again. */
  readonly retries?: number | undefined;
  /** After so long without an answer, beside what the call itself waits, other nodes are asked, if there are any. */
  readonly doubtMs?: number | undefined;
  /** From 1000 on: a list may be the one that somebody else was told within the last second. */
  readonly maxAgeMs?: number | undefined;
  /** Reads the text of the answer in place of JSON.parse, and throws a SyntaxError as that does. */
  readonly parse?: ((text: string) => unknown) | undefined;
};

/** A timer takes 2^31 ms; the rest is for what a call itself waits. */
const TIMEOUT_MS_MAX = 2_000_000_000;

export type Rule = { readonly expected: string; readonly isRight: (value: unknown) => boolean };

const isMs = (value: unknown): value is number => typeof value === "number" && value >= 0;
const isWhole = (value: unknown, min: number, max: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

export const span = (min: number): Rule => ({
  expected: `a whole number from ${min} to ${TIMEOUT_MS_MAX}`,
  isRight: (value) => isWhole(value, min, TIMEOUT_MS_MAX),
});
export const times: Rule = {
  expected: "a whole number from 0, or Infinity",
  isRight: (value) => value === Number.POSITIVE_INFINITY || isWhole(value, 0, Number.MAX_SAFE_INTEGER),
};
const seq: Rule = {
  expected: "the number of an event, or 0",
  isRight: (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER),
};

/** With those of a wait, and of reading events. */
type Checked = keyof CallOptions | "withinMs" | "after" | "reconnects" | "silenceMs";
const RULES: { readonly [Key in Checked]: Rule } = {
  signal: { expected: "an AbortSignal", isRight: (value) => value instanceof AbortSignal },
  timeoutMs: span(1),
  retries: times,
  doubtMs: span(0),
  maxAgeMs: { expected: "milliseconds from 0", isRight: (value) => isMs(value) && value < Number.POSITIVE_INFINITY },
  parse: { expected: "a function", isRight: (value) => typeof value === "function" },
  withinMs: { expected: "milliseconds from 0, or Infinity", isRight: isMs },
  after: seq,
  reconnects: times,
  silenceMs: span(1),
};

/** Throws what is wrong with them. A field that is undefined is absent. */
export function checkCall(options: object): void {
  if (typeof options !== "object" || options === null) throw wrong("options", kindInWords(options), "an object");
  for (const key in options) {
    const value = (options as Readonly<Record<string, unknown>>)[key];
    if (value === undefined) continue;
    if (!Object.hasOwn(RULES, key)) throw unknownOption(key);
    const { expected, isRight } = RULES[key as Checked];
    if (!isRight(value)) throw wrong(key, valueInWords(value), expected);
  }
}

/** Most calls have options of their own beside these. */
function unknownOption(field: string): ClientError {
  const known = ["signal", "timeoutMs", "retries", "doubtMs", "maxAgeMs"].join(", ");
  const said = `${field} is not an option of this call; every call has ${known}, and some have more`;
  return new ClientError("bad_request", said, { details: { field } });
}

export const valueInWords = (value: unknown): string =>
  typeof value === "number" ? String(value) : kindInWords(value);

export function wrong(field: string, value: string, expected: string): ClientError {
  return new ClientError("bad_request", `${field} is ${value}, and must be ${expected}`, {
    details: { field, value, expected },
  });
}
