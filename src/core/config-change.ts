/**
 * What follows when the rules change.
 *
 * Most knobs are read where they bind and need nothing. A few have left their mark on an index: limits by type (which
 * shapes are shut) and by agent (who stands in a turn), room on workers, half lives of levels, windows of budgets, the
 * fixed part of scores (which group a task is in), limits of budgets (which tasks are too large). Those are brought up
 * to date here, once, when the config event is applied. Only new scores and new limits of budgets walk over tasks.
 */

import type { ProjectId } from "./base/brand.ts";
import type { Config, PriorityRules, ProjectSettings } from "./config/config.ts";
import { completed, completedProject, gateSettings, settingsFor, typeLimit } from "./config/config.ts";
import { type ConfigPatch, withPatch } from "./config/config-patch.ts";
import { setTypeShut } from "./fleet/shape.ts";
import { setRoom } from "./fleet/worker-tree.ts";
import { configureGate } from "./gate/state.ts";
import { watchTabs } from "./lifecycle/browser-tab.ts";
import type { Project, State } from "./model/state.ts";
import { restartHalvings } from "./turn/fairness.ts";
import { newProject, setFull } from "./turn/members.ts";
import { EXPRESS_PRIORITY } from "./turn/priority.ts";
import { isOversize, projectPosition, queuedTasks, requeue, reseatProject, settleQueue } from "./turn/queue.ts";

export function changeConfig(state: State, given: Config, patch: ConfigPatch | null): void {
  const former = state.config;
  const base = completed(given);
  const config = withPatch(base, patch);
  state.base = base;
  state.patch = patch;
  const isBudgetNew = former.budget.limit !== config.budget.limit;
  if (former.scheduler.fairness.halfLife !== config.scheduler.fairness.halfLife) restartHalvings(state, state.at);
  state.config = config;
  state.spent.resize(config.budget.window);
  for (const project of state.projects.values()) {
    if (project.source !== "put") applySettings(state, project, ...settingsFor(config, project.id));
    if (isBudgetNew) resettle(state, project);
    project.recent.resize(config.scheduler.fairness.window);
    project.starts.resize(config.scheduler.fairness.window);
  }
  for (const [id, settings] of Object.entries(config.projects.named)) {
    if (!state.projects.has(id as ProjectId)) putProject(state, id as ProjectId, settings, "named");
  }
  for (const use of state.shapes.types.values()) {
    setTypeShut(state.shapes, use, use.inFlight >= typeLimit(config, use.type));
  }
  for (const [id, gate] of state.gates) configureGate(gate, gateSettings(config, id));
  for (const load of state.loads.values()) setFull(load, config.scheduler.maxPerAgentInFlight);
  setRoom(state.fleet, state.shapes, config.scheduler.placement.maxQueuePerWorker);
  watchTabs(state);
  if (scoresDiffer(former.scheduler.priority, config.scheduler.priority)) regroup(state);
}

export function putProject(state: State, id: ProjectId, settings: ProjectSettings, source: Project["source"]): void {
  const known = state.projects.get(id);
  if (known !== undefined) return applySettings(state, known, settings, source);
  const project = newProject(id, state.registrations++, settings, state.config.scheduler.fairness.window);
  state.projects.set(id, project);
  applySettings(state, project, settings, source);
}

function applySettings(state: State, project: Project, given: ProjectSettings, source: Project["source"]): void {
  const settings = completedProject(given);
  const isBudgetNew = project.settings.budget.limit !== settings.budget.limit;
  const from = projectPosition(state, project);
  project.settings = settings;
  project.source = source;
  reseatProject(state, project, from);
  project.spent.resize(settings.budget.window);
  if (isBudgetNew) resettle(state, project);
  if (settings.maxPriority <= EXPRESS_PRIORITY) state.expressProjects.add(project);
  else state.expressProjects.delete(project);
}

/** A budget's limit changed: some tasks may be too large for it now, and others no longer. */
function resettle(state: State, project: Project): void {
  const queued = [...project.agents.values()].flatMap((agent) => [...queuedTasks(agent)]);
  const concerned = [...project.oversize, ...queued.filter((task) => isOversize(state, task))];
  for (const task of concerned) settleQueue(state, task);
}

function scoresDiffer(left: PriorityRules, right: PriorityRules): boolean {
  const fixedParts = ({ base, depthBoost, retryPenalty, retryMax }: PriorityRules): string =>
    JSON.stringify([Object.entries(base).sort(([a], [b]) => (a < b ? -1 : 1)), depthBoost, retryPenalty, retryMax]);
  return fixedParts(left) !== fixedParts(right);
}

/** Puts every queued task into the group its new score belongs to. */
function regroup(state: State): void {
  for (const project of state.projects.values()) {
    for (const agent of project.agents.values()) {
      for (const task of [...queuedTasks(agent)]) requeue(state, task, () => {});
    }
  }
}
