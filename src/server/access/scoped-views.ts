/**
 * What a scoped token sees of what all share: its own part.
 *
 * Its projects are those the token lists; of a token that is scoped to an agent and lists none, those in which that
 * agent has tasks. Of lists it gets its own entries; of gates those that the config names and those its projects used;
 * of workers all, with the tasks of its own that they run, and without their notes, which may name others. `why` says
 * that somebody else goes first, and not who. Totals of the whole fleet stay: how busy it is is what a caller must know
 * to understand why it waits.
 */
import type { GateId, ProjectId, TaskId } from "../../core/base/index.ts";
import type { Agent, Project, State } from "../../core/model/index.ts";
import type { Why, WhyCondition } from "../../core/why/index.ts";
import { type GateView, queuedOf } from "../../engine/views/index.ts";
import { type Caller, isScoped } from "../../http/index.ts";
import type {
  AnyEvent,
  LineEntry,
  LinePart,
  LineQuery,
  LineView,
  QueueView,
  Stats,
  WorkerView,
} from "../../protocol/index.ts";
import { LINE_MAX } from "../../protocol/shapes/index.ts";
import { remember } from "../../std/index.ts";
import { isOwn } from "./token-scope.ts";

export function ownProject(state: State, caller: Caller, id: string): boolean {
  const { projects, agentId } = caller;
  if (projects !== null) return projects.includes(id);
  return agentId === null || state.projects.get(id as ProjectId)?.agents.has(agentId as Agent["id"]) === true;
}

/** The agents whose tasks in a project are the token's own. */
const agentsOf = ({ agents }: Project, { agentId }: Caller): Agent[] =>
  [...agents.values()].filter(({ id }) => agentId === null || id === agentId);

export function ownStats(state: State, caller: Caller, stats: Stats): Stats {
  if (!isScoped(caller)) return stats;
  const queues = new Map<string, { queued: number; inflight: number }>();
  const sums = new Map<string, Stats["metrics"]["agents"][string]>();
  for (const project of state.projects.values()) {
    if (!ownProject(state, caller, project.id)) continue;
    for (const agent of agentsOf(project, caller)) {
      const { id, inFlight, totals } = agent;
      const queue = queues.get(id) ?? { queued: 0, inflight: 0 };
      queues.set(id, { queued: queue.queued + queuedOf(agent), inflight: queue.inflight + inFlight });
      const sum = sums.get(id) ?? { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
      const { submitted, completed, failed, cancelled } = totals;
      sums.set(id, {
        submitted: sum.submitted + submitted,
        completed: sum.completed + completed,
        failed: sum.failed + failed,
        cancelled: sum.cancelled + cancelled,
        rejected: 0,
      });
    }
  }
  return {
    ...stats,
    queue: { ...stats.queue, agents: Object.fromEntries(queues) },
    metrics: { ...stats.metrics, agents: Object.fromEntries(sums) },
  };
}

export function ownQueue(state: State, caller: Caller, queue: QueueView): QueueView {
  if (!isScoped(caller)) return queue;
  const projects = queue.projects
    .filter(({ project }) => ownProject(state, caller, project))
    .map((project) => ({
      ...project,
      agents: project.agents.filter(({ agentId }) => caller.agentId === null || agentId === caller.agentId),
    }));
  return { ...queue, projects };
}

/** Its own among the first of all: more of those are looked at than it has asked for. */
export async function ownLine(
  caller: Caller,
  query: LineQuery,
  read: (query: LineQuery) => Promise<LineView>,
): Promise<LineView> {
  if (!isScoped(caller)) return read(query);
  const { tasks, calls, ...common } = await read({ limit: LINE_MAX });
  const { projects, agentId } = caller;
  const own = ({ running, next, gates, ...totals }: LinePart): LinePart => {
    const isTheirs = (entry: LineEntry): boolean =>
      (projects === null || projects.includes(entry.project)) && (agentId === null || entry.agentId === agentId);
    const shown = (list: readonly LineEntry[]): LineEntry[] => list.filter(isTheirs).slice(0, query.limit);
    const used = new Set([...running, ...next].filter(isTheirs).map(({ gate }) => gate));
    const theirs = gates === undefined ? {} : { gates: gates.filter(({ id }) => used.has(id)).slice(0, query.limit) };
    return { ...totals, running: shown(running), next: shown(next), ...theirs };
  };
  return { ...common, tasks: own(tasks), calls: own(calls) };
}

export function ownGates(state: State, caller: Caller, gates: readonly GateView[]): readonly GateView[] {
  if (!isScoped(caller)) return gates;
  return gates.filter(({ id }) => {
    if (Object.hasOwn(state.config.gates.named, id)) return true;
    const shares = state.gates.get(id as GateId)?.queue.shares.keys() ?? [];
    return [...shares].some((project) => ownProject(state, caller, project));
  });
}

export function ownWorkers(state: State, caller: Caller, workers: readonly WorkerView[]): readonly WorkerView[] {
  if (!isScoped(caller)) return workers;
  return workers.map((worker) => {
    const { heldFor, endpoint: _, path: __, note: ___, ...common } = worker;
    const shown = { ...common, tasks: worker.tasks.filter((id) => isOwnTask(state, caller, id)) };
    return heldFor !== undefined && isOwnTask(state, caller, heldFor) ? { ...shown, heldFor } : shown;
  });
}

export function isOwnTask(state: State, caller: Caller, id: unknown): boolean {
  const task = state.tasks.get(id as TaskId);
  return task !== undefined && isOwn(caller, { agentId: task.agent.id, project: task.project.id });
}

/**
 * Whether an event is about a task of the token's own. Whose it is says its submit, and the state while its record is
 * there; of one that is gone, whoever has read its submit knows.
 */
export function ownEvents(state: State, caller: Caller): (event: AnyEvent<number>) => boolean {
  const known = new Map<string, boolean>();
  return ({ seq, task: id, payload }) => {
    if (id === undefined) return false;
    if (payload.kind === "task-submitted") {
      const isMine = isOwn(caller, { agentId: payload.agent, project: payload.project });
      remember(known, id, isMine, KNOWN_MAX);
      return isMine;
    }
    const task = state.tasks.get(id as TaskId);
    // A later task may have taken the id of one that was forgotten.
    return task === undefined || task.seq > seq ? known.get(id) === true : isOwnTask(state, caller, id);
  };
}
const KNOWN_MAX = 10_000;

/** What a line of `why` says where it would name somebody else. */
const INSTEAD: { readonly [Code in WhyCondition["code"]]?: (numbers: WhyCondition["numbers"]) => string } = {
  "express-lane": () => "a task of somebody else goes first, by the express lane",
  "project-turn": () => "another project goes first",
  "agent-turn": () => "another agent of its project goes first",
  lock: ({ lock }) => `lock ${lock} is held by a task of somebody else`,
  "fleet-budget": () => "the budget of the fleet is judged on a task of somebody else, which is next in line",
  "project-budget": () => "the budget of its project is judged on a task of somebody else, which is next in line",
};
const NAMES_TASKS = ["first", "task", "judgedOn", "dependency"] as const;
const OF_OTHERS: ReadonlySet<string> = new Set([
  ...NAMES_TASKS,
  ...["firstProject", "firstLevel", "firstWeight", "firstChargedPerWeight", "firstAgent", "firstInFlight"],
  ...["attempt", "worker"],
]);

/** The same answer without the names of others. */
export function ownWhy(state: State, caller: Caller, answer: Why): Why {
  if (!isScoped(caller)) return answer;
  let { summary } = answer;
  const conditions = answer.conditions.map((condition): WhyCondition => {
    const { code, numbers, detail, notes, ...common } = condition;
    if (notes !== undefined) {
      const shown = detail.slice(0, -notes.length);
      summary = summary.replaceAll(detail, shown);
      return { ...common, code, numbers, detail: shown };
    }
    const isForeign = (id: unknown): boolean =>
      typeof id === "string" && id !== answer.task && !isOwnTask(state, caller, id);
    if (!NAMES_TASKS.some((key) => isForeign(numbers[key]))) return condition;
    const shown = INSTEAD[code]?.(numbers) ?? "it waits for a task of somebody else";
    summary = summary.replaceAll(detail, shown);
    const rest = Object.entries(numbers).filter(([key]) => !OF_OTHERS.has(key));
    return { ...condition, detail: shown, numbers: Object.fromEntries(rest) };
  });
  const next = answer.ahead.next.filter(({ task }) => isOwnTask(state, caller, task));
  return { ...answer, summary, conditions, ahead: { ...answer.ahead, next } };
}
