/**
 * The small pure pieces on their own, for people who embed them.
 *
 * The same arithmetic the scheduler uses (turn/priority.ts, lifecycle/admission.ts) or that the share-and-budget spec
 * names, behind checks: a value that cannot be (not a number, negative, of another kind) is refused by the name of its
 * field with an InputError, never computed with. Nothing here reads a clock or changes what it is given.
 */

import { finite, flag, isRecord, join, name, orNull, type Reader, whole } from "../base/readers.ts";
import { badField, type Refusal, sentence } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { type PriorityRules, readConfig } from "../config/config.ts";
import { type Load, usage as usageOf } from "../lifecycle/admission.ts";
import { fixedScore, shownScore } from "../turn/priority.ts";

/**
 * Thrown by the functions that stand alone when a value cannot be. Inside Drover a refusal is data; these functions
 * answer with plain values, so the same data is thrown.
 */
export class InputError extends Error {
  override readonly name: string = "InputError";
  /** What was wrong, as data. */
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(sentence(refusal));
    this.refusal = refusal;
  }
}

/** The value that was read, or the refusal thrown. */
export function orThrow<Value>(read: Result<Value, Refusal>): Value {
  if (!read.ok) throw new InputError(read.failure);
  return read.value;
}

/** What the score of a task depends on. */
export type ScoredTask = {
  /** Its type, such as `code`. */
  readonly type: string;
  /** When it became runnable, in milliseconds. */
  readonly runnableAt: number;
  /** How many ancestors it has. */
  readonly depth: number;
  /** Which try at the same work it is. */
  readonly iteration: number;
};
/** What back-pressure goes by, for `shouldAccept` and `shouldThrottle`. */
export type PublicLoad = Load & {
  /** Whether tasks are taken with no worker there; true if absent. */
  readonly acceptWithoutWorkers?: boolean;
};

const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const amount = finite(0, AMOUNT_MAX);
const instantOf = finite(-AMOUNT_MAX, AMOUNT_MAX);

/**
 * base[type] + min(ageMax, floor(minutes × agePerMinute)) + depth × depthBoost − min(retryMax, max(0, iteration − 1) ×
 * retryPenalty). `config` is any part of the `scheduler.priority` section; the rest has its defaults.
 */
export function score(task: ScoredTask, now: number, config: Partial<PriorityRules> = {}): number {
  const given = objectOf(task, "task");
  const read: ScoredTask = {
    type: orThrow(name()(given.type, "task.type")),
    runnableAt: orThrow(instantOf(given.runnableAt, "task.runnableAt")),
    depth: orThrow(whole(0)(given.depth, "task.depth")),
    iteration: orThrow(whole(0)(given.iteration, "task.iteration")),
  };
  const rules = orThrow(readConfig({ scheduler: { priority: config } })).scheduler.priority;
  const waitedMs = orThrow(instantOf(now, "now")) - read.runnableAt;
  return shownScore(fixedScore(read, rules), waitedMs, rules);
}

/** weight ÷ sum of weights; all zero gives nothing at all. */
export function targetRatios(weights: Readonly<Record<string, number>>): Record<string, number> {
  return ratiosOf(amountsOf(weights, "weights"));
}

/** Target minus actual share: positive is behind. Usage counts over the keys of `weights` only. */
export function deficits(
  weights: Readonly<Record<string, number>>,
  usage: Readonly<Record<string, number>>,
): Record<string, number> {
  const targets = ratiosOf(amountsOf(weights, "weights"));
  const used = new Map(amountsOf(usage, "usage"));
  const keys = Object.keys(targets);
  let total = 0;
  for (const key of keys) total += used.get(key) ?? 0;
  if (total === 0) return targets;
  return Object.fromEntries(keys.map((key) => [key, (targets[key] as number) - (used.get(key) ?? 0) / total]));
}

/** Whether nothing more may be spent: a limit is there and is reached. */
export const globalExhausted = (budget: number | null, used: number): boolean => isSpent(budget, used, "budget");
/** Whether a project may spend no more: it has a limit, and that is reached. */
export const projectExhausted = (limit: number | null, used: number): boolean => isSpent(limit, used, "limit");

/** Whether another task may be let in. With no worker only the length of the queue counts, or nothing is let in. */
export function shouldAccept(load: PublicLoad): boolean {
  const { acceptWithoutWorkers, ...read } = readLoad(load);
  return (read.workers > 0 || acceptWithoutWorkers) && usageOf(read) < read.rejectThreshold;
}

/** Whether callers should be asked to slow down. */
export function shouldThrottle(load: PublicLoad): boolean {
  const read = readLoad(load);
  return usageOf(read) > read.throttleAt;
}

function isSpent(limit: number | null, used: number, field: string): boolean {
  const most = orThrow(orNull(amount)(limit, field));
  const sum = orThrow(amount(used, "used"));
  return most !== null && sum >= most;
}

function ratiosOf(weights: readonly (readonly [string, number])[]): Record<string, number> {
  let total = 0;
  for (const [, weight] of weights) total += weight;
  return total === 0 ? {} : Object.fromEntries(weights.map(([key, weight]) => [key, weight / total]));
}

function readLoad(load: PublicLoad): Load & { readonly acceptWithoutWorkers: boolean } {
  const given = objectOf(load, "load");
  const read = <Value>(reader: Reader<Value>, field: string): Value =>
    orThrow(reader(given[field], join("load", field)));
  const perWorker = given.perWorker === undefined ? null : read(orNull(finite(0, AMOUNT_MAX, true)), "perWorker");
  const workers = read(whole(0), "workers");
  return {
    queued: read(whole(0), "queued"),
    inFlight: read(whole(0), "inFlight"),
    workers,
    maxQueue: read(finite(0, AMOUNT_MAX, true), "maxQueue"),
    perWorker: workers === 0 ? null : perWorker,
    rejectThreshold: read(finite(0, AMOUNT_MAX, true), "rejectThreshold"),
    throttleAt: read(amount, "throttleAt"),
    acceptWithoutWorkers: given.acceptWithoutWorkers === undefined ? true : read(flag, "acceptWithoutWorkers"),
  };
}

export function objectOf(value: unknown, field: string): Record<string, unknown> {
  return orThrow(isRecord(value) ? ok(value) : fail(badField(field, value, "an object")));
}

function amountsOf(value: unknown, field: string): [string, number][] {
  return orThrow(readAmounts(value, field));
}

/** A table of amounts by name: nothing negative, nothing that is not a number. */
export function readAmounts(value: unknown, field: string): Result<[string, number][], Refusal> {
  if (!isRecord(value)) return fail(badField(field, value, "an object of numbers by name"));
  const read: [string, number][] = [];
  for (const key of Object.keys(value)) {
    const one = amount(value[key], join(field, key));
    if (!one.ok) return one;
    read.push([key, one.value]);
  }
  return ok(read);
}
