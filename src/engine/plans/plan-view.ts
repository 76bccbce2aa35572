/**
 * A plan as people see it: how far it is in all, and task by task.
 */
import type { TaskId } from "../../core/base/index.ts";
import { items } from "../../core/collections/index.ts";
import { groupOfPlan, missingIn, summed } from "../../core/lifecycle/index.ts";
import type { Plan, State, Task, UsageTotals } from "../../core/model/index.ts";
import type { PlanState, PlanSummary, PlanTaskView, PlanView } from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import { usageView } from "../base/charged-tokens.ts";
import { currentRound } from "../tasks/task-view.ts";

/** What a plan has and had, in the order of submission; not what another of its name has left. */
export function* tasksOf({ groups }: State, { id, createdAt }: Plan): Generator<Task> {
  const group = groups.get(groupOfPlan(id));
  if (group !== undefined) for (const task of items(group.tasks)) if (task.createdAt >= createdAt) yield task;
}

/** Its tasks that are there. */
export const currentTasks = ({ tasks }: State, plan: Plan): Task[] =>
  plan.tasks.flatMap(({ id }) => tasks.get(id) ?? []);

export function planSummary(state: State, plan: Plan): PlanSummary {
  const usage = currentTasks(state, plan).reduce<UsageTotals | null>(
    (sum, { extra }) => (extra?.usage ? summed(sum, extra.usage) : sum),
    null,
  );
  const { waiting, done, cancelled, ...rest } = plan.counts;
  const [missing, adopted, dropped] = [missingIn(plan), plan.adopted, plan.dropped];
  return {
    id: plan.id,
    groupId: groupOfPlan(plan.id),
    project: plan.project,
    state: stateOf(plan),
    counts: { waiting: waiting + missing, ...rest, done: done + adopted, cancelled: cancelled + dropped },
    total: plan.tasks.length,
    createdAt: isoTime(plan.createdAt),
    putAt: isoTime(plan.putAt),
    ...(plan.open > 0 ? {} : { endedAt: isoTime(plan.endedAt) }),
    ...(plan.paused === null ? {} : { pausedBy: plan.paused }),
    ...(usage === null ? {} : { usage: usageView(usage) }),
    ...(plan.directory === null ? {} : { directory: plan.directory }),
  };
}

export function stateOf({ open, paused, counts, dropped }: Plan): PlanState {
  if (open > 0) return paused === null ? "running" : "paused";
  if (counts.failed > 0) return "failed";
  return counts.cancelled + dropped > 0 ? "cancelled" : "done";
}

export function planView(state: State, plan: Plan): PlanView {
  const names = new Map<TaskId, string>(plan.tasks.map(({ name, id }) => [id, name]));
  return {
    ...planSummary(state, plan),
    seq: state.seq,
    tasks: plan.tasks.map(({ name, id }) => taskView(state, name, id, names) ?? absentView(state, plan, name, id)),
  };
}

function taskView(state: State, name: string, id: TaskId, names: ReadonlyMap<TaskId, string>): PlanTaskView | null {
  const task = state.tasks.get(id);
  if (task === undefined) return null;
  const round = currentRound(task);
  const reason = task.end === null ? (task.extra?.approval?.question ?? null) : task.end.error;
  return {
    name,
    taskId: id,
    needs: (task.links?.needs ?? []).map((need) => names.get(need) ?? need),
    state: task.phase,
    attempt: task.attempts,
    ...(task.startedAt < 0 ? {} : { startedAt: isoTime(task.startedAt) }),
    ...(task.end === null ? {} : { endedAt: isoTime(task.end.at) }),
    ...(reason === null || !mayHaveReason(task) ? {} : { reason }),
    ...(task.extra?.usage ? { usage: usageView(task.extra.usage) } : {}),
    ...(round === null ? {} : { round: { number: round.number, max: round.max } }),
    ...(task.links === null || task.links.children === 0 ? {} : { children: task.links.children }),
  };
}

/** A question that was answered is no reason any more. */
const mayHaveReason = ({ end, phase }: Task): boolean => end !== null || phase === "parked";

/** Of a task that was done before plans were held, that is not there yet, or that never came. */
function absentView({ tombstones }: State, { dropped }: Plan, name: string, id: TaskId): PlanTaskView {
  const stone = tombstones.get(id);
  const what = { name, taskId: id, needs: [], attempt: 0 };
  if (stone !== undefined) return { ...what, state: stone.phase, endedAt: isoTime(stone.endedAt) };
  return { ...what, state: dropped > 0 ? "cancelled" : "waiting" };
}
