/**
 * Plans in a snapshot.
 */
import type { AgentId, Instant, ProjectId, TaskId } from "../base/brand.ts";
import { listFailed } from "../lifecycle/groups.ts";
import { newPlan } from "../lifecycle/plans.ts";
import type { Plan } from "../model/plan.ts";
import type { ReadonlyPlan } from "../model/read-only.ts";
import type { State } from "../model/state.ts";
import type { PlanRow } from "./format.ts";

/** How far it is follows from its tasks. */
export function planRow(plan: ReadonlyPlan): PlanRow {
  const { id, createdAt, seq, putAt, project, directory, run, failsFast, paused, hasFailed, endedAt } = plan;
  return [
    ...(["plan", id, createdAt, seq, putAt, project, directory, run, failsFast, paused, hasFailed] as const),
    ...([endedAt, plan.adopted, plan.tasks.flatMap((task) => [task.name, task.id]), plan.agent] as const),
    ...([[...plan.others], plan.documentHash, plan.keptSince, plan.dropped] as const),
  ];
}

/** How far it is, is counted when its tasks are there. */
export function loadPlan(state: State, row: PlanRow): void {
  const [, id, createdAt, seq, putAt, project, directory, run, failsFast, paused, hasFailed, endedAt] = row;
  const [, , , , , , , , , , , , adopted, tasks, agent = null, others = [], documentHash = "", ...last] = row;
  const [keptSince = endedAt, dropped = 0] = last;
  const times = { createdAt: createdAt as Instant, putAt: putAt as Instant };
  const whose = { project: project as ProjectId, agent: agent as AgentId | null };
  const facts = { documentHash, directory, run, failsFast, adopted, ...whose };
  const entries = { tasks: entriesOf(tasks), others: others as readonly TaskId[] };
  const plan = Object.assign(newPlan({ id, seq, ...times, ...facts, ...entries }), {
    paused,
    hasFailed,
    endedAt,
    keptSince,
    dropped,
  });
  listFailed(state, plan);
  state.plans.set(id, plan);
}

const entriesOf = (pairs: readonly string[]): Plan["tasks"] =>
  Array.from({ length: pairs.length / 2 }, (_, at) => ({ name: pairs[2 * at] ?? "", id: pairs[2 * at + 1] as TaskId }));
