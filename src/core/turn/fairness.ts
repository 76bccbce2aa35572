/**
 * Whose turn it is among projects.
 *
 * Each project has a level: what it was charged, divided by its weight. The lowest level goes next, so
 * the levels of all that compete rise together and no project is more than one charge ahead. A start is
 * charged before the next is chosen and put right when the attempt settles. A project that comes back
 * from having nothing to do starts at the highest level yet served: idleness banks no credit.
 *
 * Every halfLife all levels halve together, so that old spending fades and time alone never reorders.
 * Halving all of them is the same as doubling what is added from then on, which touches nothing: the
 * numbers kept here are levels times two to the number of half lives since `origin`. When that factor
 * grows large everything is scaled back at once, exactly, since it is a power of two.
 *
 * The deficit rule is the seed's instead: a project with nothing yet in the window first, then
 * share minus target ascending, then registration, shares and targets over the same eligible set.
 */

import { clear, insert, items } from "../collections/sorted-list.ts";
import type { ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { Project, State } from "../model/state.ts";
import { expectedTokens, isUnknown } from "./expected-tokens.ts";
import { projectPosition, reseatProject } from "./queue.ts";
import { compareProjects } from "./total-orders.ts";

const HALVINGS_MAX = 512;
/** Of two, by their exponent. */
const POWERS: number[] = [1];
while (POWERS.length <= HALVINGS_MAX) POWERS.push((POWERS.at(-1) as number) * 2);

/** How many stored units one unit of level is at this moment. */
function unitAt(state: ReadonlyState, at: number): number {
  const halvings = Math.floor(Math.max(0, at - state.levels.origin) / state.config.scheduler.fairness.halfLife);
  return POWERS[Math.min(halvings, HALVINGS_MAX)] as number;
}

/** Scales every level back when the factor has grown large; call before charging. */
function keepLevelsSmall(state: State, at: number): void {
  const { halfLife } = state.config.scheduler.fairness;
  const halvings = Math.floor(Math.max(0, at - state.levels.origin) / halfLife);
  if (halvings < HALVINGS_MAX) return;
  rescale(state, halvings >= 2 * HALVINGS_MAX ? 0 : 1 / (POWERS[HALVINGS_MAX] as number));
  state.levels.origin = halvings >= 2 * HALVINGS_MAX ? at : state.levels.origin + HALVINGS_MAX * halfLife;
}

/** Starts the count of half lives afresh, as when halfLife changes. */
export function restartHalvings(state: State, at: number): void {
  keepLevelsSmall(state, at);
  rescale(state, 1 / unitAt(state, at));
  state.levels.origin = at;
}

function rescale(state: State, factor: number): void {
  const waiting = [...items(state.turn)];
  clear(state.turn);
  // Adding 0 turns -0, which JSON does not know, into 0.
  for (const project of state.projects.values()) project.level = project.level * factor + 0;
  state.levels.highest = state.levels.highest * factor + 0;
  for (const project of waiting.sort(compareProjects)) insert(state.turn, project);
}

/** A project's level as people see it. */
export const shownLevel = (state: ReadonlyState, project: ReadonlyProject, at: number): number =>
  project.level / unitAt(state, at) + 0;

/** Charges a project, or takes a part of a charge back: the one way its level and what it was charged move. */
export function chargeProject(state: State, project: Project, amount: number, at: number): void {
  keepLevelsSmall(state, at);
  const step = (amount / project.settings.weight) * unitAt(state, at);
  const from = projectPosition(state, project);
  project.level += step;
  project.charged += amount;
  reseatProject(state, project, from);
}

/** What counts for the deficit rule: what was settled within fairness.window, and the charges of what runs. */
export const recentCharge = (project: ReadonlyProject, now: number): number =>
  project.recent.total(now) + project.chargesOut;

/** Records that a project was chosen at its present level; call before charging it. */
export function noteServed(state: State, project: Project): void {
  if (project.level > state.levels.highest) state.levels.highest = project.level;
}

/** A project that had nothing queued or running has something again. */
export function comeBack(state: State, project: Project): void {
  const from = projectPosition(state, project);
  project.level = Math.max(project.level, state.levels.highest);
  reseatProject(state, project, from);
}

/** What a start of this task is charged before anybody knows what it will use. */
export function chargeFor(state: ReadonlyState, task: ReadonlyTask): number {
  const { startCost, defaultTokens } = state.config.scheduler.fairness;
  return startCost + (isUnknown(task) ? defaultTokens : expectedTokens(task));
}

/**
 * The seed-003 order of projects that could start something: guarantee, then share − target, then registration. That
 * excess is the deficit that people see, with the other sign: the least goes first.
 */
export function deficitOrder(eligible: readonly ReadonlyProject[], now: number): Deficit[] {
  return sharesOf(eligible, now)
    .map(({ project, share, target }) => ({
      project,
      served: project.starts.total(now) > 0 ? 1 : 0,
      excess: share - target,
    }))
    .sort(
      (left, right) =>
        left.served - right.served ||
        left.excess - right.excess ||
        left.project.registration - right.project.registration,
    );
}
export type Deficit = { readonly project: ReadonlyProject; readonly excess: number };

/** What each of these projects got of all that they were charged lately, and what its weight entitles it to. */
export function sharesOf(
  projects: readonly ReadonlyProject[],
  now: number,
): { project: ReadonlyProject; share: number; target: number }[] {
  let weights = 0;
  let charged = 0;
  for (const project of projects) {
    weights += project.settings.weight;
    charged += recentCharge(project, now);
  }
  return projects.map((project) => ({
    project,
    share: charged === 0 ? 0 : recentCharge(project, now) / charged,
    target: project.settings.weight / weights,
  }));
}
