/**
 * A plan file, read: the tasks, the rules they run under, and nothing left to find wrong.
 *
 *     const plan = readPlan({ file: "release.yml", text, directory: "/home/ann/app" });
 *
 * Every mistake is found before anything runs, and all of them are reported at once, each with its line. What a plan
 * becomes is plain data: tasks in an order in which they can go, and a config for the engine.
 */

import { basename } from "node:path";
import { isRecord, nearest, sentence } from "../../core/base/index.ts";
import { readConfig } from "../../core/config/index.ts";

import type { JsonSchema } from "../config/knobs.ts";
import type { ConfigProblem } from "../config/problem.ts";
import { oncePerLine } from "../config/yaml-complaint.ts";
import { problemsIn, shownPath } from "./check.ts";
import { configOf, type PlanConfig } from "./config.ts";
import { checkExpressions } from "./expressions.ts";
import { orderOf } from "./order.ts";
import { KILL_GRACE_MS, planSchema, type RawPlan, type RawTask, type RawTasks, type Shared } from "./schema.ts";
import { BadPlan, type Found, type Note, type Path, type PlanProblem, readPlanSource } from "./source.ts";
import { checkEnvironment, type PlanTask, readTasks, spanMs } from "./tasks.ts";

export { BadPlan } from "./source.ts";
export type { Command, PlanTask, Rules, Work } from "./tasks.ts";

export type Plan = {
  readonly name: string;
  readonly file: string;
  /** What paths in the plan start from. */
  readonly directory: string;
  /** Null: one for each core. */
  readonly slots: number | null;
  readonly killGraceMs: number;
  readonly maxWorktrees: number;
  /** For the engine, as far as the plan says; what depends on the machine is added when it runs. */
  readonly config: PlanConfig;
  /** Each behind all that it needs. */
  readonly tasks: readonly PlanTask[];
};

const PROBLEMS_MAX = 50;
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/;

/** Throws a `BadPlan` with everything that is wrong. */
export function readPlan(given: { readonly file: string; readonly text: string; readonly directory: string }): Plan {
  const { file, text, directory } = given;
  const source = readPlanSource(file, text);
  const found: Found[] = [];
  const note: Note = (message, path, spot = "value") => void found.push({ message, path, spot });
  if (!isRecord(source.value)) {
    const message = "a plan begins with names, such as tasks:";
    throw new BadPlan(file, [source.complaint({ message, path: [], spot: "value" })]);
  }
  found.push(...problemsIn(planSchema as JsonSchema, source.value, []));
  const raw = soundParts(source.value, found);
  const tasks = readAll(raw, found, note);
  const name = nameOf(raw, file, note);
  const config = configOf(raw, note);
  if (found.length === 0) noteCrossed(config, raw, note);
  if (found.length > 0) throw new BadPlan(file, inSequence(found.map(source.complaint)));
  return {
    name,
    file,
    directory,
    config,
    slots: raw.workers?.slots ?? null,
    killGraceMs: spanMs(raw.workers?.killGrace) ?? KILL_GRACE_MS,
    maxWorktrees: raw.workers?.maxWorktrees ?? 50,
    tasks: orderOf(tasks).waves.flat(),
  };
}

/** The plan without what the schema found wrong, so that the rest can be looked at too. */
function soundParts(value: Record<string, unknown>, found: readonly Found[]): RawPlan {
  const broken = new Set(found.map(({ path }) => path[0]));
  const entries = Object.entries(value).filter(([key]) => key === "tasks" || key === "defaults" || !broken.has(key));
  const { defaults, tasks, ...rest } = Object.fromEntries(entries);
  const wrong = new Set(found.filter(({ path }) => path[0] === "defaults").map(({ path }) => path[1]));
  const sound = Object.entries(isRecord(defaults) ? defaults : {}).filter(([key]) => !wrong.has(key));
  return {
    ...rest,
    defaults: Object.fromEntries(sound) as Shared,
    tasks: (isRecord(tasks) ? tasks : null) as RawTasks,
  };
}

function readAll(raw: RawPlan, found: readonly Found[], note: Note): PlanTask[] {
  const isWrong = found.some(({ path }) => path[0] === "tasks" && path.length === 1);
  if (Object.keys(raw.tasks ?? {}).length === 0) {
    if (!isWrong)
      note("there are no tasks; add tasks: with at least one, such as  hello: echo hello", ["tasks"], "key");
    return [];
  }
  const broken = new Set(found.flatMap(({ path }) => (path[0] === "tasks" ? [String(path[1])] : [])));
  const defaults = raw.defaults ?? {};
  checkEnvironment(defaults.env, ["defaults", "env"], note);
  noteStrangers(raw, "project", "projects", note);
  noteStrangers(raw, "provider", "gates", note);
  const tasks = readTasks(raw.tasks ?? {}, defaults, broken, note);
  for (const task of tasks) {
    if (broken.has(task.definition)) continue;
    const { env = {} } = (raw.tasks?.[task.definition] ?? {}) as RawTask;
    const fromDefaults = Object.keys(defaults.env ?? {}).filter((name) => !Object.hasOwn(env, name));
    // Of a task in which something is wrong it is not known which ones it stands for.
    checkExpressions({ ...task, needs: [...task.needs, ...broken] }, new Set(fromDefaults), note);
  }
  return tasks;
}

/** Where a plan lists its projects (or gates), a name that is not on the list is a slip. */
function noteStrangers(raw: RawPlan, field: "project" | "provider", section: "projects" | "gates", note: Note): void {
  const { tasks, defaults, [section]: listed } = raw;
  if (listed === null || listed === undefined) return;
  const check = (given: unknown, path: Path): void => {
    const name = isRecord(given) ? given[field] : undefined;
    if (typeof name !== "string" || Object.hasOwn(listed, name) || (field === "project" && name === "default")) return;
    const meant = nearest(name, Object.keys(listed));
    const help = meant === null ? `add it there, or take it out here` : `did you mean ${meant}?`;
    note(`${shownPath([...path, field])} is ${name}, which is not in ${section}; ${help}`, [...path, field]);
  };
  check(defaults, ["defaults"]);
  for (const [name, task] of Object.entries(tasks ?? {})) check(task, ["tasks", name]);
}

/** Its own, or that of its file. */
function nameOf(raw: RawPlan, file: string, note: Note): string {
  if (typeof raw.name === "string") return raw.name;
  const name = basename(file).replace(/\.(ya?ml|json)$/i, "");
  if (NAME.test(name)) return name;
  note(`the plan has no name, and ${JSON.stringify(name)} cannot be one; add name: at the top`, []);
  return "plan";
}

/** What the engine would say of the config as a whole, such as a longest rest that is below the first. */
function noteCrossed(config: PlanConfig, raw: RawPlan, note: Note): void {
  const read = readConfig(config);
  if (read.ok) return;
  const { failure } = read;
  const path: Path = "field" in failure ? failure.field.split(".") : [];
  const isLimit = path[0] === "scheduler" && Object.hasOwn(raw.limits ?? {}, path[1] ?? "");
  note(sentence(failure), isLimit ? ["limits", ...path.slice(1)] : path);
}

/** As they stand in the file, from top to bottom; each once. */
function inSequence(all: readonly PlanProblem[]): readonly ConfigProblem[] {
  const sorted = oncePerLine(
    all.toSorted(({ origin: left }, { origin: right }) => left.line - right.line || left.column - right.column),
  );
  if (sorted.length <= PROBLEMS_MAX) return sorted;
  const more = { message: `and ${sorted.length - PROBLEMS_MAX} more`, origin: null };
  return [...sorted.slice(0, PROBLEMS_MAX), more];
}
