/**
 * A plan, read from a plain value: the tasks, the rules they run under, and nothing left to find wrong.
 *
 * Every mistake is found before anything runs, and all of them are reported at once, each with its path. What a plan
 * becomes is plain data: tasks in an order in which they can go, and a config for the engine.
 */

import { fail, isRecord, nearest, ok, type Result, sentence } from "../core/base/index.ts";
import { readConfig } from "../core/config/index.ts";
import type { JsonSchema } from "../protocol/schema/index.ts";
import { atOnce } from "../std/index.ts";

import { problemSteps, shownPath } from "./check.ts";
import { configOf, type PlanConfig } from "./config.ts";
import { checkExpressions } from "./expressions.ts";
import type { Found, Note, Path } from "./problem.ts";
import { KILL_GRACE_MS, planSchema, type RawPlan, type RawTask, type RawTasks, type Shared } from "./schema.ts";
import { checkEnvironment, type PlanTask, readTasks, spanMs } from "./tasks.ts";

export type Plan = {
  readonly name: string;
  /** Of tasks that name none. */
  readonly project: string;
  /** Sections that say how to run alone: a server has its own. */
  readonly unused: readonly string[];
  /** Null: one for each core. */
  readonly slots: number | null;
  readonly killGraceMs: number;
  readonly maxWorktrees: number;
  /** For the engine, as far as the plan says; what depends on the machine is added when it runs. */
  readonly config: PlanConfig;
  /** Each behind all that it needs. */
  readonly tasks: readonly PlanTask[];
};

const SERVER_SECTIONS = ["workers", "limits", "scheduler", "gates", "projects", "budget"] as const;
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/;

/** Who submits and who pays, where a plan says nothing. */
export type PlanDefaults = { readonly agent?: string; readonly project?: string };

/** With so many mistakes in it a plan is not read on: to look for what was meant costs time that others wait for. */
const FOUND_MAX = 100;
class TooMany extends Error {}

export type PlanRead = Result<Plan, readonly Found[]>;

/** The plan, or what is wrong with it. `name` is what it is called if it says nothing itself. */
export const readPlanValue = (value: unknown, name: string, unsaid: PlanDefaults = {}): PlanRead =>
  atOnce(planReading(value, name, unsaid));

/** The same step by step: a plan may have many tasks. Until it is done nobody may change the value. */
export function* planReading(value: unknown, name: string, unsaid: PlanDefaults): Generator<unknown, PlanRead> {
  const found: Found[] = [];
  const note: Note = (message, path, spot = "value") => {
    found.push({ message, path, spot });
    if (found.length >= FOUND_MAX) throw new TooMany();
  };
  try {
    const plan = yield* readNoting(value, name, unsaid, found, note);
    return plan === null ? fail(found) : ok(plan);
  } catch (error) {
    if (error instanceof TooMany) return fail(found);
    throw error;
  }
}

/** Null if anything is wrong; that is noted. */
function* readNoting(
  value: unknown,
  name: string,
  unsaid: PlanDefaults,
  found: readonly Found[],
  note: Note,
): Generator<unknown, Plan | null> {
  if (!isRecord(value)) {
    note("a plan begins with names, such as tasks:", []);
    return null;
  }
  for (const problem of problemSteps(planSchema as JsonSchema, value, [])) {
    if (problem === null) yield;
    else note(problem.message, problem.path, problem.spot);
  }
  const raw = withUnsaid(soundParts(value, found), unsaid);
  const tasks = yield* readAll(raw, found, note);
  const called = nameOf(raw, name, note);
  const config = configOf(raw, note);
  if (found.length === 0) noteCrossed(config, raw, note);
  if (found.length > 0) return null;
  return {
    name: called,
    config,
    project: raw.defaults?.project ?? "default",
    unused: SERVER_SECTIONS.filter((section) => Object.hasOwn(value, section)),
    slots: raw.workers?.slots ?? null,
    killGraceMs: spanMs(raw.workers?.killGrace) ?? KILL_GRACE_MS,
    maxWorktrees: raw.workers?.maxWorktrees ?? 50,
    tasks,
  };
}

const withUnsaid = (raw: RawPlan, unsaid: PlanDefaults): RawPlan => ({
  ...raw,
  defaults: { ...unsaid, ...raw.defaults },
});

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

/** Each behind all that it needs. */
function* readAll(raw: RawPlan, found: readonly Found[], note: Note): Generator<unknown, readonly PlanTask[]> {
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
  const { tasks, ordered } = yield* readTasks(raw.tasks ?? {}, defaults, broken, note);
  for (const task of tasks) {
    yield;
    if (broken.has(task.definition)) continue;
    const { env = {}, needs = [] } = (raw.tasks?.[task.definition] ?? {}) as RawTask;
    const fromDefaults = Object.keys(defaults.env ?? {}).filter((name) => !Object.hasOwn(env, name));
    // Of a task in which something is wrong it is not known which ones it stands for.
    const vague = [needs].flat().filter((text) => broken.has(text.replace(/\[.*$/s, "")));
    checkExpressions({ ...task, needs: [...new Set([...task.needs, ...vague])] }, new Set(fromDefaults), note);
  }
  return ordered;
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

/** Its own, or else the one it is given. */
function nameOf(raw: RawPlan, name: string, note: Note): string {
  if (typeof raw.name === "string") return raw.name;
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
