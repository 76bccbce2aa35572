/**
 * The rows of a run, from the plan as an engine or a server shows it.
 */
import { EXEC_WORKTREE } from "../../core/fleet/index.ts";
import { IF_REASON, type PlanTask } from "../../plan/index.ts";
import type { PlanTaskView, PlanView, TaskView, UsageView } from "../../protocol/index.ts";
import { childRow } from "./facts.ts";
import { newRow, type Row, type RowState } from "./state.ts";

export const ROW_STATES: Readonly<Record<PlanTaskView["state"], RowState>> = {
  waiting: "waiting",
  queued: "waiting",
  assigned: "running",
  running: "running",
  parked: "parked",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
  rejected: "failed",
};

/** With the file in hand, what had ended when the plan was put was done before; without it, all is of one run. */
export function rowsOf(view: Pick<PlanView, "tasks">, tasks: readonly PlanTask[] | null): Row[] {
  const byName = new Map(tasks?.map((task) => [task.name, task]));
  const ids = new Map(view.tasks.map(({ name, taskId }) => [name, taskId]));
  const unwanted = new Set<string>();
  return view.tasks.map((task) => {
    const { name, taskId: id, attempt, startedAt, endedAt } = task;
    const why = reasonIn(task, view.tasks);
    const { rules, work } = byName.get(name) ?? {};
    const state = ROW_STATES[task.state];
    const isUnwanted =
      state === "skipped" && (why.startsWith(IF_REASON) || task.needs.some((need) => unwanted.has(need)));
    if (isUnwanted) unwanted.add(name);
    const began = startedAt === undefined ? null : Date.parse(startedAt);
    const tookMs = began === null || endedAt === undefined ? null : Math.max(0, Date.parse(endedAt) - began);
    return newRow({
      name,
      id,
      state,
      isUnwanted,
      needs: task.state === "queued" ? [] : task.needs.map((need) => ids.get(need) ?? need),
      attempt,
      why,
      tookMs,
      maxAttempts: rules?.attempts ?? 0,
      maxRounds: task.round?.max ?? rules?.maxRounds ?? null,
      round: roundOf(task),
      hasWorktree: work === undefined ? tasks === null : work.worktree !== null,
      isBefore: tasks !== null && (state === "done" || isUnwanted),
      startedAt: state === "running" || state === "parked" ? began : null,
      ...(tasks === null ? { attempts: attempt, usage: usageOf(task) } : {}),
    });
  });
}

/** The row of a task that another had submitted before anybody watched. */
export function childRowOf(task: TaskView): Row {
  const { taskId: id, parent = null, attempt, startedAt, completedAt, error: why = "", usage } = task;
  const began = startedAt === undefined ? null : Date.parse(startedAt);
  // Of one that waits for a person no attempt has begun.
  const state = task.state === "parked" && began !== null ? "awaiting" : ROW_STATES[task.state];
  const row = childRow({
    id,
    parent,
    maxAttempts: task.maxAttempts ?? 1,
    maxRounds: task.loop?.max ?? 0,
    hasWorktree: task.action === EXEC_WORKTREE,
    needs: task.state === "queued" ? [] : needsOf(task),
  });
  const tookMs = began === null || completedAt === undefined ? null : Math.max(0, Date.parse(completedAt) - began);
  const under = state === "running" || state === "awaiting" ? began : null;
  return { ...row, state, attempt, attempts: attempt, why, tookMs, startedAt: under, usage: usageOf({ usage }) };
}

const needsOf = ({ needs = [] }: TaskView): readonly string[] => (Array.isArray(needs) ? needs : Object.values(needs));

/** Why it did not go well, with the names of others instead of their ids. */
export function reasonIn({ reason = "", needs }: PlanTaskView, tasks: readonly PlanTaskView[]): string {
  if (reason === "" || needs.length === 0) return reason;
  const needed = tasks.filter(({ name }) => needs.includes(name));
  return needed.reduce((text, { taskId, name }) => text.replaceAll(taskId, name), reason);
}

/** The round it is in; of one that has ended, the last. */
export function roundOf({ attempt, round, endedAt }: PlanTaskView): number {
  if (attempt === 0 || round === undefined) return 0;
  return endedAt === undefined ? round.number : Math.max(1, round.number - 1);
}

const usageOf = ({ usage }: { readonly usage?: UsageView | undefined }): Row["usage"] =>
  usage === undefined ? null : { tokens: usage.inputTokens + usage.outputTokens, cost: usage.cost ?? null };
