/**
 * Numbers for people and dashboards: queues, totals, projects, workers.
 *
 * Live counts come from what is live now, totals from the events. Agents are listed as far as they are
 * remembered, which is bounded. A task that found no room was submitted too.
 */
import type { Project, State, Worker } from "../../core/model/index.ts";
import { setAside, sharesOf, shownLevel } from "../../core/turn/index.ts";
import {
  type AgentTotals,
  type ProjectList,
  type ProjectView,
  type Stats,
  WORKER_TASKS_MAX,
  type WorkerView,
} from "../../protocol/index.ts";
import { isoTime, present } from "../../std/index.ts";
import { usageView } from "../base/charged-tokens.ts";
import { queuedOf } from "./queue-view.ts";

const mean = (total: number, count: number): number => (count === 0 ? 0 : total / count);

export function statsOf(state: State, files: Stats["files"]): Stats {
  const { totals, rejected } = state;
  const queues = new Map<string, { queued: number; inflight: number }>();
  const agents = new Map<string, AgentTotals>();
  for (const [id, load] of state.loads) {
    const queued = load.agents.reduce((sum, agent) => sum + queuedOf(agent), 0);
    queues.set(id, { queued, inflight: load.inFlight });
    const sum = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
    for (const { totals: own } of load.agents) {
      for (const key of ["submitted", "completed", "failed", "cancelled"] as const) sum[key] += own[key];
    }
    agents.set(id, sum);
  }
  for (const [agent, count] of rejected) {
    const sum = agents.get(agent) ?? { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
    agents.set(agent, { ...sum, submitted: sum.submitted + count, rejected: count });
  }
  return {
    queue: {
      totalQueued: state.waiting + state.queued,
      totalInflight: state.inFlight,
      waiting: state.waiting,
      agents: Object.fromEntries(queues),
    },
    metrics: {
      tasksSubmitted: totals.submitted + totals.rejected,
      tasksCompleted: totals.completed,
      tasksFailed: totals.failed,
      tasksCancelled: totals.cancelled,
      tasksSkipped: totals.skipped,
      tasksRejected: totals.rejected,
      tasksExpired: totals.expired,
      dispatchCount: totals.starts,
      avgDispatchLatencyMs: mean(totals.waitMs, totals.starts),
      avgRunMs: mean(totals.runMs, totals.ends),
      agents: Object.fromEntries(agents),
    },
    files,
    config: state.config.scheduler,
  };
}

export function projectViews(state: State, now: number): ProjectView[] {
  return sharesOf([...state.projects.values()], now).map(({ project, share, target }) => ({
    id: project.id,
    ...project.settings,
    status: project.status,
    queued: queuedOf(project),
    inFlight: project.inFlight,
    level: shownLevel(state, project, now),
    share,
    target,
    deficit: target - share,
    charged: project.charged,
    spent: project.spent.total(now),
    ...freesAt(project.spent, project.settings.budget, now),
    ...(project.usage === null ? {} : { usage: usageView(project.usage) }),
    reserved: setAside(project),
  }));
}

/** When the budget has more room by the clock alone. */
function freesAt(spent: Project["spent"], { limit }: ProjectView["budget"], now: number): Pick<ProjectView, "freesAt"> {
  const at = limit === null ? null : spent.nextExpiry(now);
  return at === null ? {} : { freesAt: isoTime(at) };
}

/** What all projects together have used of their budget. */
export const fleetSpending = (state: State, now: number): NonNullable<ProjectList["fleet"]> => ({
  budget: state.config.budget,
  spent: state.spent.total(now),
  ...freesAt(state.spent, state.config.budget, now),
  reserved: setAside(state),
});

/** How it stands: ready is idle or busy. */
export const workerStatus = ({ status, attempts }: Worker): WorkerView["status"] =>
  status !== "ready" ? status : attempts.size === 0 ? "idle" : "busy";

export const workerView = (worker: Worker): WorkerView => ({
  id: worker.id,
  kind: worker.kind,
  status: workerStatus(worker),
  // What it fetches ahead waits for one of them.
  slots: Math.min(worker.slots, worker.offered),
  inFlight: worker.attempts.size,
  capabilities: worker.capabilities,
  ...present({ note: worker.note, zone: worker.zone }),
  ...takesView(worker),
  ...present({ heldFor: worker.hold?.task.id, endpoint: worker.target?.endpoint, path: worker.target?.path }),
  ...roomOf(worker),
  tasks: worker.attempts
    .inOrder()
    .slice(0, WORKER_TASKS_MAX)
    .map(({ task }) => task.id),
  joinedAt: isoTime(worker.joinedAt),
});

const takesView = ({ takes }: Worker): Pick<WorkerView, "actions" | "types" | "projects"> =>
  Object.fromEntries(Object.entries(takes ?? {}).filter(([, names]) => names !== null));

/** What there is, where it is limited. */
const limitedOf = (cpu: number, memory: number): NonNullable<WorkerView["resources"]> => ({
  ...(cpu === Number.POSITIVE_INFINITY ? {} : { cpuMillicores: Math.max(0, cpu) }),
  ...(memory === Number.POSITIVE_INFINITY ? {} : { memoryBytes: Math.max(0, memory) }),
});

/** What it has in all, and what of that is free; what is unlimited is absent. */
function roomOf(worker: Worker): Pick<WorkerView, "resources" | "free" | "worktrees"> {
  const { cpu, memory, worktrees, usedCpu, usedMemory } = worker;
  const resources = limitedOf(cpu, memory);
  const free = limitedOf(cpu - usedCpu, memory - usedMemory);
  return {
    ...(Object.keys(resources).length === 0 ? {} : { resources, free }),
    ...(worktrees === Number.POSITIVE_INFINITY ? {} : { worktrees }),
  };
}
