/**
 * One execution of a task on a worker.
 *
 * Everything an attempt holds (a slot, resources, locks, a part of every limit, reserved tokens) is
 * taken in `attach` and given back in `detach`, and nowhere else; so counts cannot drift from what is
 * really live. A stopping attempt still holds all of it, until its worker confirms or is given up.
 * The attempt's number is its fencing token: only the newest one's word counts.
 * Its calls are known too: those that it leaves at a gate, waiting or out, are taken back by the next step of the pump.
 */

import { insert } from "../collections/sorted-list.ts";
import { typeLimit } from "../config/config.ts";
import { lockUse, setLockHolder, setTypeShut, typeUse } from "../fleet/shape.ts";
import { carry } from "../fleet/worker-tree.ts";
import type { Attempt, State } from "../model/state.ts";
import { setFull } from "../turn/members.ts";
import { agentPosition, reseatAgent } from "../turn/queue.ts";

/** `served` is the event that started it, where it starts: its agent was served then. */
export function attach(state: State, attempt: Attempt, served: number | null): void {
  const { task } = attempt;
  task.attempt = attempt;
  book(state, attempt, 1, served);
  for (const lock of task.requirements.locks) setLockHolder(state.shapes, lockUse(state.shapes, lock), attempt);
  carry(state.fleet, state.shapes, attempt, 1);
}

export function detach(state: State, attempt: Attempt): void {
  const { task } = attempt;
  task.attempt = null;
  book(state, attempt, -1, null);
  for (const lock of task.requirements.locks) {
    const use = lockUse(state.shapes, lock);
    if (use.holder === attempt) setLockHolder(state.shapes, use, null);
  }
  carry(state.fleet, state.shapes, attempt, -1);
  if (attempt.permits !== null) for (const permit of attempt.permits) insert(state.strayPermits, permit);
}

function book(state: State, attempt: Attempt, by: 1 | -1, served: number | null): void {
  const { task } = attempt;
  const { project, agent } = task;
  state.inFlight += by;
  state.reserved += by * attempt.reserve;
  if (attempt.express) state.express += by;
  project.inFlight += by;
  project.reserved += by * attempt.reserve;
  project.chargesOut += by * attempt.charge;
  const from = agentPosition(agent);
  agent.inFlight += by;
  if (served !== null) agent.lastServed = served;
  reseatAgent(agent, from);
  agent.load.inFlight += by;
  setFull(agent.load, state.config.scheduler.maxPerAgentInFlight);
  const use = typeUse(state.shapes, task.requirements.type);
  const limit = typeLimit(state.config, task.requirements.type);
  const wasShut = use.inFlight >= limit;
  use.inFlight += by;
  if (wasShut !== use.inFlight >= limit) setTypeShut(state.shapes, use, !wasShut);
}
