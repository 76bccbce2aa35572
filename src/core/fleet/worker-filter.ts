/**
 * Which tasks a worker takes, by their action, type and project.
 *
 * A worker offers capabilities, which tasks ask for; it may also have a filter, which says what it takes: names, or
 * patterns in which `*` stands for anything. A worker that names no actions takes all of them but one kind: a task that
 * brings what is to be run. A handler would make something else of that and call it done, so such a task goes only to
 * those that name its action.
 *
 * That is part of whether a worker could ever run a task. A fleet has few distinct filters, and most workers have none,
 * so a task's shape does not hold its action: it holds which of the filters refuse the task. While there is no filter
 * that is the same for all, and nothing costs more. When a filter comes for the first time, or its last worker goes,
 * every queued task is looked at once: a group whose tasks all change alike is moved as a whole, and only where they
 * differ is a task put into its queue anew. Nothing else here walks over tasks. A hundred thousand queued tasks cost
 * about 15 ms then; a fleet has at most 256 filters.
 */

import type { ProjectId } from "../base/brand.ts";
import { isRecord } from "../base/readers.ts";
import type { Takes } from "../model/events.ts";
import type { ReadonlyFleet } from "../model/read-only.ts";
import type { Fleet } from "../model/state.ts";

const ACTION_NAME_MAX = 128;
/** How many different filters the workers of one fleet may have. */
export const FILTERS_MAX = 256;
const NO_NAME = /[\s\p{Cc}]/u;
/** In the place of the key of a filter, for workers that have none. */
export const UNFILTERED = "none";
const NO_REFUSALS: readonly string[] = Object.freeze([]);
const BY_UNFILTERED: readonly string[] = Object.freeze([UNFILTERED]);

/**
 * Tasks that bring what is to be run, in place or in a worktree of their own. Their action is plain `exec`; a filter
 * may let only these through, and without one they are not let through.
 */
export const EXEC = "exec";
export const EXEC_COMMAND = "exec(command)";
export const EXEC_WORKTREE = "exec(worktree)";

type Params = Readonly<Record<string, unknown>> | undefined;

/** An action as it is known here: by its name, if it is one. Sentences are for people, and only `*` takes them. */
export function actionName(action: string, params: Params): string {
  if (action === EXEC && bringsWork(params)) return wantsWorktree(params) ? EXEC_WORKTREE : EXEC_COMMAND;
  const isName = action.length <= ACTION_NAME_MAX && !NO_NAME.test(action) && !isBrought(action);
  return isName ? action : "";
}

const isBrought = (name: string): boolean => name === EXEC_COMMAND || name === EXEC_WORKTREE;

/** Whether params say what is to be run: a command, or the work of a plan's task. */
const bringsWork = (params: Params): boolean => workIn(params) !== null || commandIn(params) !== null;

/** What a task of a plan does, not looked into; null if there is none. */
export function workIn(params: Params): Readonly<Record<string, unknown>> | null {
  const work = params !== undefined && Object.hasOwn(params, "work") ? params.work : undefined;
  return isRecord(work) && isRecord(work.command) ? work : null;
}

function wantsWorktree(params: Params): boolean {
  const worktree = (workIn(params) ?? params)?.worktree ?? false;
  return worktree !== false;
}

/** The command that params bring: a line that is not blank, or a list of words; null if there is none. */
export function commandIn(params: Params): string | readonly string[] | null {
  const command = params !== undefined && Object.hasOwn(params, "command") ? params.command : undefined;
  if (typeof command === "string") return command.trim() === "" ? null : command;
  if (!Array.isArray(command) || (command[0] ?? "") === "") return null;
  return command.every((word) => typeof word === "string") ? command : null;
}

/** What is asked of a worker that runs what tasks bring, and how to have one. */
const COMMANDS = "the commands that tasks bring (start one: drover worker --commands)";

export const keyOfTakes = ({ actions, types, projects }: Takes): string => JSON.stringify([actions, types, projects]);

type Taken = { readonly action: string; readonly type: string };

/** Whether a worker with this filter, or with none, takes such a task. */
export const takesSuch = (takes: Takes | null, { action, type }: Taken, project: string): boolean =>
  isAction(takes?.actions ?? null, action) &&
  isNamed(takes?.types ?? null, type) &&
  isNamed(takes?.projects ?? null, project);

const isNamed = (patterns: readonly string[] | null, name: string): boolean =>
  patterns === null || patterns.some((pattern) => matches(pattern, name));

/** Patterns are about what callers write. */
const isAction = (patterns: readonly string[] | null, name: string): boolean =>
  isBrought(name) ? patterns !== null && (isNamed(patterns, EXEC) || patterns.includes(name)) : isNamed(patterns, name);

/** Whether the name is the pattern, with anything at all in the place of each `*`. */
export function matches(pattern: string, name: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop();
  if (tail === undefined) return pattern === name;
  if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length) return false;
  let from = head.length;
  for (const piece of rest) {
    const at = name.indexOf(piece, from);
    if (at < 0 || at + piece.length > name.length - tail.length) return false;
    from = at + piece.length;
  }
  return true;
}

/** The keys of the fleet's filters that refuse such a task, and `UNFILTERED` if to have none refuses it too. */
export function refusalsOf(fleet: ReadonlyFleet, taken: Taken, project: ProjectId): readonly string[] {
  const always = isBrought(taken.action) ? BY_UNFILTERED : NO_REFUSALS;
  if (fleet.filters.size === 0) return always;
  const refusing = [...always];
  for (const { key, takes } of fleet.filters.values()) if (!takesSuch(takes, taken, project)) refusing.push(key);
  return refusing;
}

/** Whether the filters refuse tasks by their project, so that two that ask for the same may differ in their shape. */
export const mindsProjects = (fleet: ReadonlyFleet): boolean =>
  fleet.filters.size > 0 && [...fleet.filters.values()].some(({ takes }) => takes.projects !== null);

/** One worker more has this filter (1), or one fewer (-1). Answers whether it is the first or was the last. */
export function countFilter(fleet: Fleet, takes: Takes | null, by: 1 | -1): boolean {
  if (takes === null) return false;
  const key = keyOfTakes(takes);
  const filter = fleet.filters.get(key) ?? { key, takes, workers: 0 };
  filter.workers += by;
  if (filter.workers === 0) fleet.filters.delete(key);
  else if (filter.workers === 1 && by === 1) fleet.filters.set(key, filter);
  else return false;
  return true;
}

/** What of such a task some worker does not take, in words. */
export function refusedInWords(
  fleet: ReadonlyFleet,
  { action, type }: Taken,
  project: string,
  nameless: string = "(a sentence)",
): string[] {
  const all = [...fleet.filters.values()];
  const isRefused = (of: "types" | "projects", name: string): boolean =>
    all.some(({ takes }) => !isNamed(takes[of], name));
  const isRefusedAction = isBrought(action)
    ? fleet.order.some(({ takes }) => !isAction(takes?.actions ?? null, action))
    : all.some(({ takes }) => !isAction(takes.actions, action));
  const named = isBrought(action) ? COMMANDS : `action ${action === "" ? nameless : action}`;
  return [
    ...(isRefusedAction ? [named] : []),
    ...(isRefused("types", type) ? [`type ${type}`] : []),
    ...(isRefused("projects", project) ? [`project ${project}`] : []),
  ];
}
