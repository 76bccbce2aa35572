/**
 * What people hand to a gate, checked once at the door.
 *
 * Past this file every option is known, whole and in range. Unknown fields are refused by name, because a misspelt
 * limit that is silently ignored is found out only when the provider complains. `Infinity` for a count means no limit.
 */
import { isRecord } from "../core/base/index.ts";
import type { GateClass, GateSettings } from "../core/gate/index.ts";
import { CLASS_RANK, DEFAULT_GATE_SETTINGS, GATE_CLASSES } from "../core/gate/index.ts";
import type { Clock } from "../std/index.ts";
import { GateInputError } from "./gate-error.ts";

/** What a gate needs of a clock. */
export type GateClock = Pick<Clock, "now" | "elapsed" | "ringAt">;

/** What differs from the defaults of a gate. */
export type GateOptions = {
  /** Calls that are out at once. */
  readonly maxConcurrent?: number;
  /** Calls that start in any window. */
  readonly requests?: number;
  /** How long the window of requests is; it slides. */
  readonly windowMs?: number;
  /** The priority of calls that say none. */
  readonly defaultPriority?: GateClass;
  /** The time in milliseconds, for tests. */
  readonly now?: () => number;
  /** Token windows. */
  readonly tokens?: Partial<GateSettings["tokens"]>;
  /** Waiting so long counts as one class more urgent. */
  readonly agingPerClassMs?: number;
  /** A permit that is not given back returns after this. */
  readonly permitTtlMs?: number;
  /** A whole clock, for simulators and tests: the date, the time elapsed and alarms. */
  readonly clock?: GateClock;
};

/** How urgent a call is, and how long it waits. */
export type AcquireOptions = {
  /** How urgent it is; absent: the gate's default. */
  readonly priority?: GateClass | undefined;
  /** Gives it up while it waits. */
  readonly signal?: AbortSignal | undefined;
  /** Who pays: projects share the gate by weight. */
  readonly project?: string | undefined;
  /** The tokens it is expected to use. */
  readonly weight?: number | undefined;
  /** An estimate, for the token windows. */
  readonly tokens?: number | undefined;
};

/** Charged: input, output and cache creation. */
export type Usage =
  | number
  | {
      /** Tokens that the model read. */
      readonly inputTokens?: number;
      /** Tokens that the model wrote. */
      readonly outputTokens?: number;
      /** Tokens that were put into the provider's cache. */
      readonly cacheCreationTokens?: number;
    };

/** What came of a call. */
export type ReleaseOptions = {
  /** Whether the provider took it; absent: it did. */
  readonly ok?: boolean | undefined;
  /** The tokens it used. */
  readonly usage?: Usage | undefined;
};

const CLASSES_IN_WORDS = GATE_CLASSES.map((name) => `"${name}"`).join(", ");
const CLOCK_METHODS = ["now", "elapsed", "ringAt"] as const;
const COUNT_IN_WORDS = "a whole number of at least 1, or Infinity";
const ACQUIRE_FIELDS: readonly string[] = ["priority", "signal", "project", "weight", "tokens"];

export function parseGateOptions(options: unknown): GateSettings {
  const given = fieldsOf("options", options, [...Object.keys(DEFAULT_GATE_SETTINGS), "now", "clock"]) as GateOptions;
  const standard = DEFAULT_GATE_SETTINGS;
  const { now, clock } = given;
  if (now !== undefined && typeof now !== "function") throw new GateInputError("now", now, "a function");
  if (clock !== undefined && !CLOCK_METHODS.every((name) => typeof clock?.[name] === "function"))
    throw new GateInputError("clock", clock, `an object with the functions ${CLOCK_METHODS.join(", ")}`);
  return {
    maxConcurrent: count("maxConcurrent", given.maxConcurrent ?? standard.maxConcurrent),
    requests: count("requests", given.requests ?? standard.requests),
    windowMs: span("windowMs", given.windowMs ?? standard.windowMs),
    tokens: parseTokens(given.tokens ?? {}),
    defaultPriority: parseClass("defaultPriority", given.defaultPriority ?? standard.defaultPriority),
    agingPerClassMs: span("agingPerClassMs", given.agingPerClassMs ?? standard.agingPerClassMs),
    permitTtlMs: span("permitTtlMs", given.permitTtlMs ?? standard.permitTtlMs),
  };
}

export function checkId(id: unknown): void {
  if (typeof id !== "string" || id === "") throw new GateInputError("id", id, "a non-empty string");
}

export function parseClass(field: string, value: unknown): GateClass {
  if (typeof value !== "string" || !Object.hasOwn(CLASS_RANK, value)) {
    throw new GateInputError(field, value, `one of ${CLASSES_IN_WORDS}`);
  }
  return value as GateClass;
}

export function checkAcquireOptions(options: unknown, more: readonly string[] = []): void {
  const given: AcquireOptions = fieldsOf("options", options, [...ACQUIRE_FIELDS, ...more]);
  const { priority, signal, project, weight, tokens } = given;
  if (priority !== undefined) parseClass("priority", priority);
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new GateInputError("signal", signal, "an AbortSignal");
  }
  if (project !== undefined && typeof project !== "string") throw new GateInputError("project", project, "a string");
  if (weight !== undefined && !(Number.isFinite(weight) && weight > 0)) {
    throw new GateInputError("weight", weight, "a number above 0");
  }
  if (tokens !== undefined) amount("tokens", tokens);
}

/** The tokens to charge; null if the caller did not say. */
export function parseUsage(usage: unknown): number | null {
  if (usage === undefined || usage === null) return null;
  if (typeof usage === "number") return amount("usage", usage);
  const fields = fieldsOf("usage", usage, ["inputTokens", "outputTokens", "cacheCreationTokens"]);
  let tokens = 0;
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined) tokens += amount(`usage.${field}`, value);
  return tokens;
}

export function parseOk(ok: unknown): boolean {
  if (ok === undefined) return true;
  if (typeof ok !== "boolean") throw new GateInputError("ok", ok, "true or false");
  return ok;
}

export function parseRetryAfter(retryAfterMs: unknown): number {
  if (retryAfterMs === undefined || retryAfterMs === null) return 0;
  if (typeof retryAfterMs !== "number" || !Number.isFinite(retryAfterMs) || retryAfterMs < 0) {
    throw new GateInputError("retryAfterMs", retryAfterMs, "milliseconds, at least 0");
  }
  return Math.ceil(retryAfterMs);
}

export const parseAttempts = (attempts: unknown): number =>
  whole("attempts", attempts, 1, "a whole number of at least 1");

export function fieldsOf(name: string, value: unknown, known: readonly string[]): Record<string, unknown> {
  if (!isRecord(value)) throw new GateInputError(name, value, "a plain object");
  const field = Object.keys(value).find((key) => !known.includes(key));
  if (field === undefined) return value;
  const path = name === "options" ? field : `${name}.${field}`;
  throw new GateInputError(path, value[field], `no such field; known are ${known.join(", ")}`);
}

function parseTokens(tokens: unknown): GateSettings["tokens"] {
  const standard = DEFAULT_GATE_SETTINGS.tokens;
  const given = fieldsOf("tokens", tokens, Object.keys(standard)) as Partial<GateSettings["tokens"]>;
  const limit = (field: "perMinute" | "perHour" | "perDay"): number | null =>
    given[field] === undefined || given[field] === null ? null : count(`tokens.${field}`, given[field]);
  const kind = given.kind ?? standard.kind;
  if (kind !== "sliding" && kind !== "fixed") throw new GateInputError("tokens.kind", kind, '"sliding" or "fixed"');
  return { perMinute: limit("perMinute"), perHour: limit("perHour"), perDay: limit("perDay"), kind };
}

function count(field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? Number.MAX_SAFE_INTEGER : whole(field, value, 1, COUNT_IN_WORDS);
}

const span = (field: string, value: unknown): number => whole(field, value, 1, "whole milliseconds, at least 1");
const amount = (field: string, value: unknown): number => whole(field, value, 0, "a whole number of at least 0");

function whole(field: string, value: unknown, min: number, expected: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < min) throw new GateInputError(field, value, expected);
  return value as number;
}
