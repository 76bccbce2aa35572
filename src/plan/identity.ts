/**
 * Which task in the log is which task of the plan: how finished work is known again after a restart or an edit.
 *
 * The id of a task holds its name, a hash of its work and a hash of its rules. The work of a task is what it runs and
 * the work of all it needs, so editing a task makes everything behind it stale too, as it should be. Work that is done
 * counts as done whatever rules it ran under: raising a timeout runs nothing again. Work that is not done goes on
 * under the very same id only if the rules are the same; otherwise it is a new task, and the old one is of no
 * interest. And a task that runs whatever becomes of its needs is stale when one of these is run once more.
 */
import { hash } from "node:crypto";
import { atOnce } from "../std/index.ts";
import { type Fate, fateOf } from "./bring-in-line.ts";
import type { PlanTask } from "./tasks.ts";

/** A task as the log has it. */
export type Known = {
  readonly id: string;
  readonly phase: string;
  /** Why it ended as it did; absent or null if nothing says. */
  readonly error?: string | null;
};
export type Matched = {
  readonly task: PlanTask;
  readonly id: string;
  /** The ids of what it needs. */
  readonly needs: readonly string[];
  /** Where the log has it; null if it has none such yet. */
  readonly phase: string | null;
  /** What becomes of it when the plan is put. */
  readonly fate: Fate;
};
/** A task with its hashes, which hold for every run of it. */
export type Hashed = {
  readonly task: PlanTask;
  /** Its name and the hash of its work. */
  readonly work: string;
  /** Its id without a prefix, and those of what it needs, where none of them has another. */
  readonly id: string;
  readonly needs: readonly string[];
};
export type MatchRules = {
  /** What the ids of new tasks begin with. */
  readonly prefix?: string;
  /** Whether what failed or was skipped runs again; by default it does. */
  readonly retriesFailed?: boolean;
  /** Whether an id belongs to another task, so that a new one cannot have it. */
  readonly isTaken?: (id: string) => boolean;
};

const WORK_DIGITS = 12;
const RULE_DIGITS = 8;
const NAME_MAX = 100;
/** Among so many ids it is looked for one that a task has got because those before it were taken. */
const STEPS_BACK_MAX = 4;
const ENDS: ReadonlySet<string> = new Set(["done", "failed", "cancelled", "skipped", "rejected"]);

export const hasEnded = (phase: string): boolean => ENDS.has(phase);

/** Each task must come behind all that it needs. Step by step: there may be many. */
export function* hashTasks(tasks: readonly PlanTask[]): Generator<unknown, readonly Hashed[]> {
  const byName = new Map<string, Hashed>();
  for (const task of tasks) {
    const behind = task.needs.map((need) => byName.get(need)?.work).sort();
    const work = `${plainName(task.name)}.${digest([task.name, task.work, behind], WORK_DIGITS)}`;
    const needs = task.needs.map((need) => byName.get(need)?.id ?? need);
    byName.set(task.name, { task, work, id: idOf(work, task, needs), needs });
    yield;
  }
  return [...byName.values()];
}

/** Each behind all that it needs, as `hashed` is. Step by step too. */
export function* matchHashed(
  hashed: readonly Hashed[],
  known: Iterable<Known>,
  rules: MatchRules = {},
): Generator<unknown, Matched[]> {
  const { prefix = "", retriesFailed = true, isTaken = () => false } = rules;
  const plain = (id: string): string => (id.startsWith(prefix) ? id.slice(prefix.length) : id);
  const found = new Map<string, Known>();
  const done = new Map<string, string>();
  const begun = new Set<string>();
  for (const one of known) {
    found.set(one.id, one);
    begun.add(workOf(plain(one.id)));
    if (one.phase === "done") done.set(workOf(plain(one.id)), one.id);
    yield;
  }
  const byName = new Map<string, Matched>();
  /** Done before, and to be done once more. */
  const stale = new Set<Matched>();
  for (const one of hashed) {
    const { task, work } = one;
    const behind = task.needs.flatMap((name) => byName.get(name) ?? []);
    const needs = behind.map(({ id }) => id);
    const isStale = done.has(work) && saysOther(task, behind, stale);
    const id = (isStale ? undefined : done.get(work)) ?? freeId(one, needs, isStale);
    const { phase = null, error = null } = found.get(id) ?? {};
    const fate = fateOf({ task, phase, error }, behind, retriesFailed);
    const matched = { task, id, needs, phase, fate };
    byName.set(task.name, matched);
    if (isStale) stale.add(matched);
    yield;
  }
  return [...byName.values()];

  /**
   * The id that its rules give it. Where that is another's, or that of what is stale, the next one after it; and what
   * has got such an id keeps it, also when the one before is free again.
   */
  function freeId({ task, work, ...base }: Hashed, needs: readonly string[], isStale: boolean): string {
    const own = needs.map(plain);
    const isAsHashed = own.every((need, index) => need === base.needs[index]);
    const first = isStale ? idOf(work, task, own, done.get(work)) : isAsHashed ? base.id : idOf(work, task, own);
    const after = (id: string): string => idOf(work, task, own, prefix + id);
    for (let id = first, steps = 0; begun.has(work) && steps < STEPS_BACK_MAX; id = after(id), steps++)
      if (found.has(prefix + id)) return prefix + id;
    let id = first;
    while (!found.has(prefix + id) && isTaken(prefix + id)) id = after(id);
    return prefix + id;
  }
}

/** The same in one go. */
export function matchTasks(tasks: readonly PlanTask[], known: Iterable<Known>, rules: MatchRules = {}): Matched[] {
  return atOnce(matchHashed(atOnce(hashTasks(tasks)), known, rules));
}

/** Of one that runs whatever becomes of its needs: whether these are run once more, so that it would see others. */
const saysOther = (task: PlanTask, behind: readonly Matched[], stale: ReadonlySet<Matched>): boolean =>
  behind.some((need) => stale.has(need) || (task.rules.onDependencyFailure === "run" && isOpen(need)));

const isOpen = ({ phase, fate }: Matched): boolean => fate !== "keep" || !hasEnded(phase ?? "");

const idOf = (work: string, task: PlanTask, needs: readonly string[], after?: string): string =>
  `${work}.${digest([...ruleKey(task, needs), ...(after === undefined ? [] : [{ after }])], RULE_DIGITS)}`;

const workOf = (id: string): string => id.slice(0, id.lastIndexOf("."));

/** One with a worktree asks for a worker of its own. Older logs have it without; then it is a new task. */
const ruleKey = ({ rules, work }: PlanTask, needs: readonly string[]): unknown[] => [
  rules,
  needs,
  ...(work.worktree === null ? [] : ["worktree"]),
];

const digest = (value: unknown, digits: number): string =>
  hash("sha256", JSON.stringify(sorted(value)), "hex").slice(0, digits);

/** Two objects with the same fields are the same work, in whichever order they are written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** An id has no blanks and no control characters; values in a name may have any. */
const plainName = (name: string): string => name.replaceAll(/[^\w.[\],=@%+-]+/g, "_").slice(0, NAME_MAX);
