/**
 * From what a plan file says of its tasks to the tasks themselves.
 *
 * Defaults are filled in, a task with `for` becomes one per combination of values, names in `needs` become tasks. A
 * task has two halves that are kept apart: its work (what is run, where, with what) and its rules (when it may run,
 * how often it is tried). Only a change of the work makes finished work stale; a new timeout does not.
 *
 * All values have been checked against the schema before they come here. What is found wrong here is what takes more
 * than one value to see, and each is reported with its line.
 */

import { nearest, orNull, sentence, span } from "../core/base/index.ts";
import { EXEC } from "../core/fleet/index.ts";
import { readShape } from "../protocol/index.ts";
import { name } from "../protocol/schema/index.ts";
import { present } from "../std/index.ts";
import { type Combination, combinations, filledIn } from "./matrix.ts";
import { orderSteps } from "./order.ts";
import type { Note, Path } from "./problem.ts";
import { type OneOrMore, type RawTask, type RawTasks, type Shared, TASKS_MAX } from "./schema.ts";
import { withTexts } from "./work/call.ts";
import { CommandError, splitCommand } from "./work/command-words.ts";
import { readAddition } from "./work/variable.ts";
import type { Command, PlanWorktree, Work } from "./work/work.ts";

/** When it may run, and how often. Absent fields are the engine's to fill in. */
export type Rules = {
  readonly agent: string;
  readonly project: string;
  readonly type: string;
  readonly priority?: Shared["priority"];
  readonly locks: readonly string[];
  readonly provider: string | null;
  readonly timeoutMs: number | null;
  readonly idleTimeoutMs: number | null;
  readonly attempts: number;
  readonly tokens?: number;
  readonly capabilities?: readonly string[];
  readonly zone?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly onDependencyFailure: "skip" | "run";
  readonly onLoss?: "retry" | "fail";
  /** Of a loop: how many rounds it may have. */
  readonly maxRounds?: number;
  readonly approval?: { readonly question?: string; readonly timeoutMs?: number };
  readonly wait?: "children";
};
export type PlanTask = {
  /** `build`, or with `for`, `build[a,x]`. */
  readonly name: string;
  /** The name in the file. */
  readonly definition: string;
  readonly needs: readonly string[];
  readonly work: Work;
  readonly rules: Rules;
};

/** What the engine takes of one task. */
const LOCKS_MAX = 64;
const NEEDS_MAX = 1000;
/** Needs of all tasks of a plan together. A short file may stand for very many. */
const LINKS_MAX = 200_000;
/** Characters of all tasks together, each with its defaults and values. */
const TEXT_IN_ALL_MAX = 32 * 1024 * 1024;
const PARAMS_DEPTH_MAX = 32;
const lockName = name();

/** A task whose needs are still names as they were written. */
type Drafted = Omit<PlanTask, "needs"> & { readonly needs: readonly { readonly text: string; readonly path: Path }[] };

/** As they are written, and each behind all that it needs; those on a cycle are in no order. */
type ReadTasks = { readonly tasks: readonly PlanTask[]; readonly ordered: readonly PlanTask[] };

/** `broken` are the tasks in which something is wrong already: they count as there, and are not looked at again. */
export function* readTasks(
  given: RawTasks,
  defaults: Shared,
  broken: ReadonlySet<string>,
  note: Note,
): Generator<unknown, ReadTasks> {
  const drafts: Drafted[] = [];
  const names = new Set<string>();
  const shared = JSON.stringify(defaults);
  let size = 0;
  for (const [definition, value] of Object.entries(given)) {
    yield;
    const isSound = !broken.has(definition) && !isTooDeep(definition, value, note);
    const raw: RawTask = !isSound ? {} : typeof value === "string" ? { run: value } : (value ?? {});
    if (isSound) checkTask(definition, raw, defaults, note);
    size += sizeOf(raw, shared);
    if (size > TEXT_IN_ALL_MAX) {
      const advice = "put long texts into files, or make several plans";
      note(`the tasks up to here hold more than 32 MiB of text, the most of one plan; ${advice}`, [
        "tasks",
        definition,
      ]);
      break;
    }
    const all = combinations(definition, raw.for ?? {}, note);
    if (drafts.length + all.length > TASKS_MAX) {
      note(`there are more than ${TASKS_MAX} tasks up to here, the most of one plan`, ["tasks", definition], "key");
      break;
    }
    for (const combination of all) {
      const { name } = combination;
      if (names.has(name)) note(`two combinations of values are both called ${name}`, ["tasks", definition, "for"]);
      names.add(name);
      const drafted = draft(definition, raw, defaults, combination);
      checkLocks(drafted, note);
      drafts.push(drafted);
      yield;
    }
  }
  const tasks = yield* resolveWorktrees(yield* resolveNeeds(drafts, broken, note), broken, note);
  const { waves, cycles } = yield* orderSteps(tasks);
  for (const cycle of cycles) noteCycle(cycle, tasks, note);
  return { tasks, ordered: waves.flat() };
}

/** Params may be anything. What reads and writes them goes into them level by level. */
function isTooDeep(definition: string, value: RawTasks[string], note: Note): boolean {
  const { params } = typeof value === "object" ? (value ?? {}) : {};
  const isDeep = (part: unknown, left: number): boolean =>
    left === 0 ||
    (typeof part === "object" && part !== null && Object.values(part).some((one) => isDeep(one, left - 1)));
  if (!isDeep(params, PARAMS_DEPTH_MAX)) return false;
  note(`${definition}.params is nested more than ${PARAMS_DEPTH_MAX} deep`, ["tasks", definition, "params"], "key");
  return true;
}

/** How many characters what a task stands for has at most: its values may be filled in wherever it has a mark. */
function sizeOf({ for: given = {}, ...rest }: RawTask, shared: string): number {
  const lists = Object.values(given).map((list) => list.map((value) => String(value).length));
  const count = lists.reduce((product, list) => product * list.length, 1);
  // Too many tasks are complained of as such.
  if (count > TASKS_MAX) return 0;
  const text = JSON.stringify(rest) + shared;
  const longest = lists.reduce((sum, list) => sum + list.reduce((most, length) => Math.max(most, length), 0), 0);
  return count * (text.length + (2 + (text.match(MARK)?.length ?? 0)) * longest);
}
const MARK = /\$\{\w/g;

// ------------------------------------------------------------------ one task

/** The kinds of work, by the field that says what is done; and the fields that only one of them has a use for. */
const KINDS = ["run", "preset", "action"] as const;
const ONLY_FOR: Readonly<Record<(typeof KINDS)[number], readonly (keyof RawTask)[]>> = {
  run: ["input", "shell"],
  preset: ["prompt", "model", "args"],
  action: ["params"],
};
/** What its worker does with a command, and no other worker with an action. */
const NOT_FOR_ACTIONS = ["env", "passEnv", "cwd", "worktree", "idleTimeout", "outputs"] as const;

function checkTask(definition: string, raw: RawTask, defaults: Shared, note: Note): void {
  const at: Path = ["tasks", definition];
  const { preset, prompt, needs } = raw;
  const [kind = "run", second] = KINDS.filter((key) => raw[key] !== undefined);
  if (raw[kind] === undefined && needs === undefined)
    note(
      `${definition} says nothing to do; give it run:, preset: or action:, or needs: if it only waits for others`,
      at,
      "key",
    );
  if (second !== undefined)
    note(`${definition} has both ${kind} and ${second}; a task does one thing`, [...at, second], "key");
  if (preset !== undefined && prompt === undefined)
    note(`${definition} starts ${preset} without a prompt; add prompt: with what it is to do`, at, "key");
  for (const other of KINDS)
    for (const key of raw[other] !== undefined || other === kind ? [] : ONLY_FOR[other])
      if (raw[key] !== undefined)
        note(
          `${definition}.${key} means nothing ${other === "run" ? `with ${kind}` : `without ${other}`}`,
          [...at, key],
          "key",
        );
  if (kind === "action") checkAction(definition, raw, note);
  checkCommand(definition, raw, defaults, note);
  if (typeof raw.worktree === "object" && raw.worktree.from !== undefined)
    for (const key of ["base", "merge"] as const)
      if (raw.worktree[key] !== undefined)
        note(
          `${definition}.worktree has both from and ${key}; it begins at one place`,
          [...at, "worktree", key],
          "key",
        );
  if (raw.loop !== undefined && raw.loop.max === undefined)
    note(`${definition}.loop has no max; say how many rounds there may be, such as max: 10`, [...at, "loop"], "key");
  checkEnvironment(raw.env, [...at, "env"], note);
  checkEnvironment(raw.for, [...at, "for"], note);
  for (const name of Object.keys(raw.for ?? {}))
    if (Object.hasOwn(raw.env ?? {}, name)) note(`${name} stands in both for and env`, [...at, "env", name], "key");
}

function checkAction(definition: string, raw: RawTask, note: Note): void {
  const at: Path = ["tasks", definition];
  if (raw.action === EXEC) note(`${definition}.action is exec; give the command as run:`, [...at, "action"]);
  for (const key of NOT_FOR_ACTIONS)
    if (raw[key] !== undefined) note(`${definition}.${key} means nothing with action`, [...at, key], "key");
  if (raw.loop?.until !== undefined)
    note(
      `${definition}.loop.until means nothing with action: its worker says whether there is another round`,
      [...at, "loop", "until"],
      "key",
    );
}

/** A value that is put into a lock's name may have blanks, a name may not. */
function checkLocks({ name, definition, rules }: Drafted, note: Note): void {
  const at: Path = ["tasks", definition, "locks"];
  if (rules.locks.length > LOCKS_MAX)
    note(`${name} has ${rules.locks.length} locks; at most ${LOCKS_MAX} are taken`, at);
  for (const lock of rules.locks) {
    const read = readShape(lockName, lock, `${name}.locks`);
    if (!read.ok) note(sentence(read.failure), at);
  }
}

function checkCommand(definition: string, { run, shell }: RawTask, defaults: Shared, note: Note): void {
  const at: Path = ["tasks", definition, "run"];
  if (Array.isArray(run)) {
    if (run[0] === "") note(`${definition}.run begins with an empty word; the first is the program`, [...at, 0]);
    if (shell === true) note(`${definition} has a list of words, which no shell reads`, ["tasks", definition, "shell"]);
  } else if (typeof run === "string") {
    if (run.trim() === "") note(`${definition}.run is empty; give a command`, at);
    else if (!(shell ?? defaults.shell ?? true)) wordsOf(run, (message) => note(message, at));
  }
}

/** The text with each expression in it changed. What is not closed is looked at once, however much of it there is. */
function withExpressions(text: string, change: (expression: string) => string): string {
  let changed = "";
  let at = 0;
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, at)) {
    const close = text.indexOf(CLOSE, open + OPEN.length);
    if (close < 0) break;
    const next = close + CLOSE.length;
    changed += text.slice(at, open) + change(text.slice(open, next));
    at = next;
  }
  return changed + text.slice(at);
}
const OPEN = `\${{`;
const CLOSE = "}}";
const HELD = "\u{f0000}";
const HELD_AT = /\u{f0000}(\d+)\u{f0000}/gu;

/** None where the line cannot be split; `complain` hears why. */
function wordsOf(line: string, complain: (message: string) => void): string[] {
  try {
    // An expression is part of one word, whatever it holds.
    const held: string[] = [];
    const plain = withExpressions(line, (whole) => `${HELD}${held.push(whole) - 1}${HELD}`);
    return splitCommand(plain).map((word) => word.replaceAll(HELD_AT, (_, index) => held[index] ?? ""));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    complain(error.message.replace("(--shell)", "(shell: true)"));
    return [];
  }
}

/** Names that Drover itself sets cannot be given. */
export function checkEnvironment(env: Readonly<Record<string, unknown>> | undefined, at: Path, note: Note): void {
  for (const [name, value] of Object.entries(env ?? {})) {
    try {
      readAddition(`${name}=${String(value)}`);
    } catch (error) {
      note((error as Error).message.replace(/^env: /, ""), [...at, name], "key");
    }
  }
}

// ------------------------------------------------------------------- filled in

function draft(definition: string, raw: RawTask, defaults: Shared, { name, values }: Combination): Drafted {
  const fill = (text: string): string => filledIn(text, values);
  const both: Omit<Shared, "worktree"> & Pick<RawTask, "worktree"> = { ...defaults, ...raw };
  const { passEnv, cwd = ".", worktree = false } = both;
  const env = { ...texts(defaults.env), ...texts(raw.env), ...values };
  const command = commandOf(raw, both.shell ?? true, fill);
  return {
    name,
    definition,
    needs: listOf(raw.needs).map((text, index) => ({
      text: fill(text),
      path: ["tasks", definition, "needs", ...(Array.isArray(raw.needs) ? [index] : [])],
    })),
    work: {
      command,
      // What the defaults say of commands is nothing to an action.
      ...(command.kind === "call"
        ? NO_SURROUNDINGS
        : {
            cwd: fill(cwd),
            env,
            passEnv: listOf(passEnv),
            input: fill(raw.input ?? ""),
            worktree: worktree === false ? null : worktreeOf(worktree === true ? {} : worktree, fill),
          }),
      ...(raw.if === undefined ? {} : { if: conditionOf(fill(String(raw.if))) }),
      ...(raw.loop?.until === undefined ? {} : { until: withExpressions(raw.loop.until, fill) }),
      ...(raw.outputs === undefined ? {} : { outputs: listOf(raw.outputs).map(fill) }),
    },
    rules: {
      ...rulesOf(both, raw.action ?? (raw.preset === undefined ? "command" : "agent"), listOf(raw.locks).map(fill)),
      ...labelled({ ...defaults.labels, ...raw.labels }, fill),
      ...(raw.approval === undefined ? {} : { approval: approvalOf(raw.approval === true ? {} : raw.approval, fill) }),
      ...(raw.loop?.max === undefined ? {} : { maxRounds: raw.loop.max }),
      ...(raw.wait === undefined ? {} : { wait: raw.wait }),
    },
  };
}

const NO_SURROUNDINGS = { cwd: ".", env: {}, passEnv: [], input: "", worktree: null } as const;

/** Those of the defaults, and its own over them. */
function labelled(labels: Readonly<Record<string, string>>, fill: (text: string) => string): Pick<Rules, "labels"> {
  const entries = Object.entries(labels).map(([key, value]) => [key, fill(value)]);
  return entries.length === 0 ? {} : { labels: Object.fromEntries(entries) };
}

/** It may stand in the marks of an expression, as it does elsewhere. */
const conditionOf = (text: string): string => /^\s*\$\{\{(.*)\}\}\s*$/s.exec(text)?.[1]?.trim() ?? text.trim();

function worktreeOf(
  { base = "HEAD", from, merge }: Exclude<NonNullable<RawTask["worktree"]>, boolean>,
  fill: (text: string) => string,
): PlanWorktree {
  return {
    base: fill(base),
    ...(from === undefined ? {} : { from: fill(from) }),
    ...(merge === undefined ? {} : { merge: listOf(merge).map(fill) }),
  };
}

function approvalOf(
  { question, timeout }: { readonly question?: string; readonly timeout?: string | number },
  fill: (text: string) => string,
): Rules["approval"] & {} {
  const timeoutMs = spanMs(timeout);
  return {
    ...(question === undefined ? {} : { question: fill(question) }),
    ...present({ timeoutMs }),
  };
}

function commandOf(raw: RawTask, shell: boolean, fill: (text: string) => string): Command {
  const { run, preset, prompt = "", model = null, args = [], action, params = {} } = raw;
  if (preset !== undefined)
    return { kind: "agent", preset, prompt: fill(prompt), model: model && fill(model), args: args.map(fill) };
  if (action !== undefined) return { kind: "call", action, params: withTexts(params, fill) as typeof params };
  if (run === undefined) return { kind: "nothing" };
  // A shell finds the values in its environment; where there is none they are put in here.
  if (typeof run !== "string") return { kind: "words", words: run.map(fill) };
  // What cannot be split was complained of before.
  return shell
    ? { kind: "line", line: withExpressions(run, fill) }
    : { kind: "words", words: wordsOf(run, () => {}).map(fill) };
}

/** By its type the engine learns what a task uses, so commands, agents and actions are of different ones. */
function rulesOf(both: Omit<Shared, "worktree">, kind: string, locks: readonly string[]): Rules {
  const { agent = "me", project = "default", type = kind, priority, tokens, attempts = 1 } = both;
  const capabilities = [...new Set(listOf(both.capabilities))].sort();
  return {
    agent,
    project,
    type,
    locks,
    attempts,
    provider: both.provider ?? null,
    timeoutMs: spanMs(both.timeout),
    idleTimeoutMs: spanMs(both.idleTimeout),
    onDependencyFailure: both.onDependencyFailure ?? "skip",
    ...present({ priority, tokens, onLoss: both.onLoss, zone: both.zone }),
    ...(capabilities.length === 0 ? {} : { capabilities }),
  };
}

const readSpan = orNull(span(0));

export function spanMs(given: string | number | null | undefined): number | null {
  const read = readSpan(given ?? null, "");
  return read.ok ? read.value : null;
}

const listOf = (some: OneOrMore = []): readonly string[] => (typeof some === "string" ? [some] : some);
const texts = (values: Readonly<Record<string, unknown>> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, String(value)]));

// ----------------------------------------------------------------------- needs

function* resolveNeeds(
  drafts: readonly Drafted[],
  broken: ReadonlySet<string>,
  note: Note,
): Generator<unknown, PlanTask[]> {
  const byDefinition = Map.groupBy(drafts, ({ definition }) => definition);
  const names = new Set(drafts.map(({ name }) => name));
  const noted = new Set<string>();
  let links = 0;

  function counted(found: string[], path: Path): string[] {
    const isFirst = links <= LINKS_MAX;
    links += found.length;
    if (links <= LINKS_MAX) return found;
    const advice = "put tasks that only have needs between";
    if (isFirst) note(`the tasks up to here have more than ${LINKS_MAX} needs, the most of one plan; ${advice}`, path);
    return [];
  }

  const tasks: PlanTask[] = [];
  for (const one of drafts) {
    yield;
    const needs = one.needs.flatMap(({ text, path }) => {
      const found = names.has(text) ? [text] : byDefinition.get(text)?.map(({ name }) => name);
      if (found !== undefined) return counted(found, path);
      // The values of a task are unknown where something in it is wrong.
      if (broken.has(text.replace(/\[.*$/s, ""))) return [];
      // Of a task with many values the same slip is reported once.
      const message = unknownNeed(one.definition, text, [...byDefinition.keys()], [...names]);
      if (!noted.has(`${path.join("\0")}\0${message}`)) note(message, path);
      noted.add(`${path.join("\0")}\0${message}`);
      return [];
    });
    const each = [...new Set(needs)];
    if (each.length > NEEDS_MAX)
      note(
        `${one.name} needs ${each.length} tasks; at most ${NEEDS_MAX} are taken: put one that only has needs between`,
        ["tasks", one.definition, "needs"],
      );
    tasks.push({ ...one, needs: each });
  }
  return tasks;
}

/** Names in `worktree` become tasks: needs that have a worktree. One of many values stands for all of them. */
function* resolveWorktrees(
  tasks: readonly PlanTask[],
  broken: ReadonlySet<string>,
  note: Note,
): Generator<unknown, PlanTask[]> {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const noted = new Set<string>();

  function needsCalled(task: PlanTask, text: string, path: Path): string[] {
    const found = task.needs.filter((need) => need === text || byName.get(need)?.definition === text);
    const wrong = found.length === 0 ? noSuchNeed(task, text) : withoutTree(task, text, found);
    // The values and the worktree of a task are unknown where something in it is wrong.
    if (wrong === null || broken.has(task.definition) || broken.has(text.replace(/\[.*$/s, ""))) return found;
    if (!noted.has(wrong)) note(wrong, path);
    noted.add(wrong);
    return [];
  }

  function withoutTree({ definition }: PlanTask, text: string, found: readonly string[]): string | null {
    const hasTree = (name: string): boolean => {
      const { worktree, command } = byName.get(name)?.work ?? {};
      return worktree !== null && command?.kind !== "nothing";
    };
    if (found.every(hasTree)) return null;
    const why = "which has no worktree, so it leaves no branch; give it worktree: true";
    return `${definition}.worktree names ${text}, ${why}`;
  }

  function withTrees(task: PlanTask): PlanTask {
    const { worktree } = task.work;
    if (worktree === null || (worktree.from === undefined && worktree.merge === undefined)) return task;
    const at: Path = ["tasks", task.definition, "worktree"];
    const { from, merge, base } = worktree;
    const [first, ...others] = from === undefined ? [] : needsCalled(task, from, [...at, "from"]);
    if (others.length > 0)
      note(
        `${task.definition}.worktree begins from ${from}, which is ${others.length + 1} tasks; name one, or use merge`,
        [...at, "from"],
      );
    const merged = merge?.flatMap((text) => needsCalled(task, text, [...at, "merge"]));
    return { ...task, work: { ...task.work, worktree: { base, ...present({ from: first, merge: merged }) } } };
  }

  const resolved: PlanTask[] = [];
  for (const task of tasks) {
    yield;
    resolved.push(withTrees(task));
  }
  return resolved;
}

function noSuchNeed({ definition, needs }: PlanTask, text: string): string {
  const meant = nearest(text, needs);
  const its = needs.length === 0 ? "it has none" : `its needs are ${clipped(needs)}`;
  const help = meant === null ? its : `did you mean ${meant}?`;
  return `${definition}.worktree names ${text}, which is not among its needs; ${help}`;
}

function unknownNeed(
  definition: string,
  text: string,
  definitions: readonly string[],
  names: readonly string[],
): string {
  const others = definitions.filter((one) => one !== definition);
  const values = names.filter((one) => one.split("[")[0] !== definition);
  const meant = nearest(text, others) ?? nearest(text, values);
  const help = meant === null ? `the tasks are ${clipped(definitions)}` : `did you mean ${meant}?`;
  return `${definition} needs ${JSON.stringify(text)}, which is no task; ${help}`;
}

const LISTED_MAX = 20;
const clipped = (names: readonly string[]): string =>
  names.length <= LISTED_MAX ? names.join(", ") : `${names.slice(0, LISTED_MAX).join(", ")}, …`;

function noteCycle(cycle: readonly string[], tasks: readonly PlanTask[], note: Note): void {
  const { definition = "" } = tasks.find(({ name }) => name === cycle[0]) ?? {};
  const message =
    cycle.length === 2
      ? `${cycle[0]} needs itself; take it out of its needs`
      : `these tasks wait for each other in a cycle: ${cycle.join(" → ")}; take one of the needs out`;
  note(message, ["tasks", definition, "needs"]);
}
