/**
 * Which task in the log is which task of the plan: how finished work is known again after a restart or an edit.
 *
 * The id of a task holds its name, a hash of its work and a hash of its rules. The work of a task is what it runs and
 * the work of all it needs, so editing a task makes everything behind it stale too, as it should be. Work that is done
 * counts as done whatever rules it ran under: raising a timeout runs nothing again. Work that is not done goes on
 * under the very same id only if the rules are the same; otherwise it is a new task, and the old one is of no
 * interest.
 */
import { hash } from "node:crypto";
import type { PlanTask } from "./tasks.ts";

/** A task as the log has it. */
export type Known = { readonly id: string; readonly phase: string };
export type Matched = {
  readonly task: PlanTask;
  readonly id: string;
  /** The ids of what it needs. */
  readonly needs: readonly string[];
  /** Where the log has it; null if it has none such yet. */
  readonly phase: string | null;
};
export type Matching = {
  /** In the order of the tasks, so that needs come first. */
  readonly matched: readonly Matched[];
  /** Tasks in the log that have not ended and are no part of this. */
  readonly strays: readonly string[];
};

const WORK_DIGITS = 12;
const RULE_DIGITS = 8;
const NAME_MAX = 100;
const ENDS: ReadonlySet<string> = new Set(["done", "failed", "cancelled", "skipped", "rejected"]);

export const hasEnded = (phase: string): boolean => ENDS.has(phase);

/** Each task must come behind all that it needs. `prefix` is what the ids of new tasks begin with. */
export function matchTasks(tasks: readonly PlanTask[], known: Iterable<Known>, prefix = ""): Matching {
  const phases = new Map<string, string>();
  const done = new Map<string, string>();
  for (const { id, phase } of known) {
    phases.set(id, phase);
    if (phase === "done") done.set(workOf(id.startsWith(prefix) ? id.slice(prefix.length) : id), id);
  }
  const works = new Map<string, string>();
  const ids = new Map<string, string>();
  const matched = tasks.map((task): Matched => {
    const behind = task.needs.map((need) => works.get(need)).sort();
    const work = `${plainName(task.name)}.${digest([task.name, task.work, behind], WORK_DIGITS)}`;
    const needs = task.needs.map((name) => ids.get(name) ?? name);
    const id = done.get(work) ?? `${prefix}${work}.${digest(ruleKey(task, needs), RULE_DIGITS)}`;
    works.set(task.name, work);
    ids.set(task.name, id);
    return { task, id, needs, phase: phases.get(id) ?? null };
  });
  const mine = new Set(matched.map(({ id }) => id));
  const strays = [...phases].filter(([id, phase]) => !mine.has(id) && !hasEnded(phase)).map(([id]) => id);
  return { matched, strays };
}

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

/** What a task sees of those it needs, by their names in the plan; the log has them by id. */
export function inputsByName<Input>(
  { task, needs: ids }: Pick<Matched, "task" | "needs">,
  inputs: Readonly<Record<string, Input>>,
): Readonly<Record<string, Input>> {
  const known = task.needs.flatMap((name, index) => {
    const input = inputs[ids[index] ?? name];
    return input === undefined ? [] : [[name, input] as const];
  });
  return Object.fromEntries(known);
}
