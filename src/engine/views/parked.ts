/**
 * How many tasks of each agent are parked. What is parked takes its place in the queue's limits, so the state counts it
 * to an agent's backlog; but it waits for no turn, and people who ask how much is queued do not mean it.
 *
 * The state has only their number. While there are any, tasks are looked through from the oldest on until all are
 * found.
 */
import type { Agent, State } from "../../core/model/index.ts";

export function parkedByAgent({ parked, tasks }: State): ReadonlyMap<Agent, number> {
  const found = new Map<Agent, number>();
  let left = parked;
  if (left === 0) return found;
  for (const { phase, agent } of tasks.values()) {
    if (phase !== "parked") continue;
    found.set(agent, (found.get(agent) ?? 0) + 1);
    left--;
    if (left === 0) break;
  }
  return found;
}
