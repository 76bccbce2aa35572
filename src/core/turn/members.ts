/**
 * Who takes turns: projects, and the agents of each.
 *
 * An agent takes its turn in each project on its own, but its limits count all of them: naming another project must
 * not lift them. An agent that has as much in flight as it may stands in no project's turn. So the search for the next
 * task never passes over it, and the end of one attempt, in any project, puts it back into the turns of all of them.
 * That walks over the agent's own projects, and only when it reaches its limit or leaves it.
 */

import type { AgentId, ProjectId } from "../base/brand.ts";
import { bitSet } from "../collections/bit-set.ts";
import { insert, remove, sortedList } from "../collections/sorted-list.ts";
import type { ProjectSettings } from "../config/config.ts";
import { RollingSum } from "../gate/usage-window.ts";
import type { Agent, AgentLoad, Project, State } from "../model/state.ts";
import { compareAgents } from "./total-orders.ts";

/** The agent in a project it was not known in. */
export function addAgent(state: State, id: AgentId, project: Project): Agent {
  let load = state.loads.get(id);
  if (load === undefined) {
    load = { backlog: 0, inFlight: 0, labels: 0, isFull: false, agents: [] };
    state.loads.set(id, load);
  }
  const agent = newAgent(id, project, load);
  load.agents.push(agent);
  project.agents.set(id, agent);
  return agent;
}

/** To be called for an agent that has nothing left in that project. */
export function dropAgent(state: State, { id, project, load }: Agent): void {
  project.agents.delete(id);
  load.agents.splice(
    load.agents.findIndex((agent) => agent.project === project),
    1,
  );
  if (load.agents.length === 0) state.loads.delete(id);
}

/** To be called whenever what it has in flight, or the limit, has changed. */
export function setFull(load: AgentLoad, maxPerAgentInFlight: number): void {
  const isFull = load.inFlight >= maxPerAgentInFlight;
  if (load.isFull === isFull) return;
  load.isFull = isFull;
  for (const agent of load.agents) {
    if (agent.queued === 0) continue;
    if (isFull) remove(agent.project.turn, agent);
    else insert(agent.project.turn, agent);
  }
}

/** How finely what was used within a window is counted. */
export const BUDGET_BUCKETS = 1000;

export function newProject(
  id: ProjectId,
  registration: number,
  settings: ProjectSettings,
  fairWindow: number,
): Project {
  return {
    id,
    registration,
    settings,
    source: "default",
    status: "active",
    level: 0,
    usage: null,
    charged: 0,
    spent: new RollingSum(settings.budget.window, BUDGET_BUCKETS),
    recent: new RollingSum(fairWindow, BUDGET_BUCKETS),
    starts: new RollingSum(fairWindow, BUDGET_BUCKETS),
    means: new Map(),
    agents: new Map(),
    turn: sortedList<Agent>(compareAgents),
    inFlight: 0,
    chargesOut: 0,
    reserved: 0,
    callsReserved: 0,
    backlog: 0,
    parked: 0,
    ready: 0,
    queued: 0,
    mayExpectNone: 0,
    shapes: bitSet(),
    shapeCounts: [],
    hold: null,
    oversize: new Set(),
  };
}

const newAgent = (id: AgentId, project: Project, load: AgentLoad): Agent => ({
  id,
  project,
  load,
  inFlight: 0,
  lastServed: 0,
  backlog: 0,
  parked: 0,
  queued: 0,
  groups: [],
  groupByKey: new Map(),
  records: 0,
  totals: { submitted: 0, completed: 0, failed: 0, cancelled: 0 },
  lastRequirements: null,
});
