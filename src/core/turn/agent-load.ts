/**
 * What one agent has waiting and out, over all its projects.
 *
 * An agent takes its turn in each project on its own, but its limits count all of them: naming another project must
 * not lift them. An agent that has as much in flight as it may stands in no project's turn. So whoever looks for the
 * next task never passes over it, and the end of one attempt, in whichever project, puts it back into all of its
 * lines. That walks over the agent's own projects, and only when it reaches its limit or leaves it.
 */
import type { AgentId } from "../base/brand.ts";
import { insert, remove } from "../collections/sorted-list.ts";
import { newAgent } from "../empty-state.ts";
import type { Agent, AgentLoad, Project, State } from "../model/state.ts";

/** The agent in a project it was not known in. */
export function addAgent(state: State, id: AgentId, project: Project): Agent {
  let load = state.loads.get(id);
  if (load === undefined) {
    load = { backlog: 0, inFlight: 0, isFull: false, agents: [] };
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
