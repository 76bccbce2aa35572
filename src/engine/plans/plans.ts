/**
 * Plans: put, listed, read, cancelled, run again, paused and forgotten as one.
 *
 * A plan is known by its name. Whoever names an agent or projects means plans of which every task is theirs.
 */
import { name, type Seq, text } from "../../core/base/index.ts";
import { groupOfPlan } from "../../core/lifecycle/index.ts";
import { hasEnded, type Plan, type State, type Task } from "../../core/model/index.ts";
import type {
  PlanChanged,
  PlanDocument,
  PlanPage,
  PlanPut,
  PlanStatus,
  PlanSummary,
  PlanView,
} from "../../protocol/index.ts";
import * as s from "../../protocol/schema/index.ts";
import { PAGE_DEFAULT, PLAN_ID_MAX, planFilterFields, planQuery, putPlanFields } from "../../protocol/shapes/index.ts";
import { type Clock, inSlices, present } from "../../std/index.ts";
import { readBody, readOptions } from "../base/call-options.ts";
import { accepted, refused } from "../base/drover-error.ts";
import type { BodyStore } from "../tasks/body-store.ts";
import type { GroupApi } from "../tasks/groups.ts";
import { treeOf } from "../tasks/read-tasks.ts";
import { onceDurable, type Writer } from "../writer/writer.ts";
import { currentTasks, planSummary, planView, tasksOf } from "./plan-view.ts";
import { type PlanGuard, putPlan } from "./put-plan.ts";

const isGrown = ({ links }: Task): boolean => links?.ofRunning === true;

/** How a plan is put. */
export type PlanOptions = {
  /** Only these tasks and what they need; a task with `for` stands for all its values. */
  readonly only?: readonly string[];
  /** Whether what failed or was skipped is run again; by default it is. */
  readonly retryFailed?: boolean;
  /** The first task that fails pauses the plan. */
  readonly failFast?: boolean;
  /** Nothing counts as done: all of it is run again. */
  readonly fresh?: boolean;
  /** What paths in it start from; absent: the directory of the worker that runs a task. */
  readonly directory?: string;
  /** The agent of tasks that name none. */
  readonly agentId?: string;
  /** The project of tasks that name none. */
  readonly project?: string;
  /** The log is of this plan alone: what was done in it before plans had groups counts as done. */
  readonly adopt?: boolean;
};
/** Which plans, and how many of them. */
export type PlanFilter = {
  /** Only those of which every task is of this agent. */
  readonly agentId?: string;
  /** Only those of which every task is of this project, or one of these. */
  readonly project?: string | readonly string[];
  /** How many at most. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
};
/** Tasks that are put as one. */
export type Plans = {
  /** Runs a plan or goes on with it; the document is a plan file as JSON. All of it is taken, or nothing. */
  put(id: string, document: PlanDocument, options?: PlanOptions, guard?: PlanGuard): Promise<PlanPut>;
  /** A page of plans, the one that was put last first. */
  list(filter?: PlanFilter): Promise<PlanPage>;
  /** How far a plan is, task by task. */
  get(
    id: string,
    options?: {
      /** Whether the answer has the document that was put last, if the log has it still. */
      readonly document?: boolean;
    },
  ): Promise<PlanView>;
  /** The plan, once all of its tasks have ended. */
  wait(
    id: string,
    options?: {
      /** Stops the waiting. */
      readonly signal?: AbortSignal;
    },
  ): Promise<PlanView>;
  /** Cancels what has not ended, and what its tasks have submitted. */
  cancel(
    id: string,
    options?: {
      /** For people; it becomes the error of each task. */
      readonly reason?: string;
    },
  ): Promise<PlanChanged>;
  /** Runs the failed, cancelled and skipped tasks again; a plan that a failure has paused goes on. */
  retry(id: string): Promise<PlanChanged>;
  /** Starts nothing more of it; what runs may end. */
  pause(id: string): Promise<PlanSummary>;
  /** Goes on with it. */
  resume(id: string): Promise<PlanSummary>;
  /** Forgets a plan that has ended; its tasks are then kept as any others. */
  remove(id: string): Promise<PlanStatus>;
};

const optionsSchema: s.Schema<PlanOptions> = s.object<PlanOptions>({
  ...putPlanFields,
  agentId: s.optional(s.name()),
  project: s.optional(s.name()),
  adopt: s.optional(s.flag()),
});
const filterSchema: s.Schema<PlanFilter> = s.object<PlanFilter>({
  ...planFilterFields,
  agentId: s.optional(s.name()),
  project: s.optional(s.either(s.name(), s.list(s.name()), "a name, or a list of names")),
});
const readId = name(PLAN_ID_MAX);

type Sources = {
  readonly writer: Writer;
  readonly bodies: Pick<BodyStore, "read">;
  readonly clock: Pick<Clock, "stopwatch">;
};

/** All but waiting, which takes an engine that tells of ends. */
export type PlanVerbs = Omit<Plans, "wait">;

export function createPlans({ writer, bodies, clock }: Sources): PlanVerbs {
  const { state } = writer;

  const find = (given: unknown): Plan => findPlan(state, given);

  async function put(given: string, document: unknown, options: PlanOptions = {}, guard?: PlanGuard): Promise<PlanPut> {
    const id = accepted(readId(given, "planId"));
    const { agentId, project, ...rest } = readBody(optionsSchema, options, "options");
    const unsaid = present({ agent: agentId, project });
    const answer = await putPlan({ writer, clock }, id, document, { ...rest, unsaid, ...present({ guard }) });
    await writer.settled();
    return answer;
  }

  async function cancel(id: string, options?: { reason?: string }): Promise<PlanChanged> {
    const { reason = null } = readOptions<{ reason?: string }>({ reason: text(0, 1024) }, options);
    const plan = find(id);
    const live = [...tasksOf(state, plan)].filter((task) => !hasEnded(task));
    // Those that wait for others first: they are cancelled, not skipped.
    const ids = live.map((task) => task.id).reverse();
    let count = ids.filter((task) => writer.execute({ type: "cancel-task", task, reason }).ok).length;
    accepted(writer.execute({ type: "cut-plan", plan: plan.id }));
    // What its tasks have submitted may be much more.
    const grown = [...tasksOf(state, plan)].flatMap((task) => treeOf(state, task.id)).filter(isGrown);
    function* cancelGrown(): Generator<void, void> {
      for (const task of grown.reverse()) {
        if (!hasEnded(task) && writer.execute({ type: "cancel-task", task: task.id, reason }).ok) count++;
        yield;
      }
    }
    await inSlices(cancelGrown(), clock);
    return onceDurable(writer, () => ({ ...planSummary(state, plan), count }));
  }

  async function retry(id: string): Promise<PlanChanged> {
    const plan = find(id);
    if (plan.paused === "failed") accepted(writer.execute({ type: "pause-plan", plan: plan.id, paused: false }));
    const bad = currentTasks(state, plan).filter((task) => hasEnded(task) && task.phase !== "done");
    const count = bad.filter((task) => writer.execute({ type: "retry-task", task: task.id }).ok).length;
    return onceDurable(writer, () => ({ ...planSummary(state, plan), count }));
  }

  async function setPaused(id: string, paused: boolean): Promise<PlanSummary> {
    const plan = find(id);
    accepted(writer.execute({ type: "pause-plan", plan: plan.id, paused }));
    return onceDurable(writer, () => planSummary(state, plan));
  }

  return {
    put,
    cancel,
    retry,
    async list(filter = {}) {
      const { limit = PAGE_DEFAULT, cursor, ...only } = readBody(filterSchema, filter, "filter");
      const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number(cursor);
      return onceDurable(writer, () => pageOf(state, only, before, limit));
    },
    async get(id, options) {
      const { document = false } = readBody(planQuery, options ?? {}, "options");
      const plan = find(id);
      const { seq, documentHash } = plan;
      const view = await onceDurable(writer, () => planView(state, plan));
      const text = document ? await bodies.read(seq as Seq, documentHash || null) : null;
      return text === null ? view : { ...view, document: JSON.parse(text) as Record<string, unknown> };
    },
    pause: (id) => setPaused(id, true),
    resume: (id) => setPaused(id, false),
    async remove(id) {
      const plan = find(id);
      await writer.run({ type: "remove-plan", plan: plan.id });
      return { status: "removed", id: plan.id };
    },
  };
}

/** Waits as one waits for a group. */
export const waitForPlan =
  (writer: Writer, waitGroup: GroupApi["waitGroup"]): Plans["wait"] =>
  async (id, options) => {
    const { state } = writer;
    const plan = findPlan(state, id);
    await waitGroup(groupOfPlan(plan.id), options);
    return onceDurable(writer, () => planView(state, plan));
  };

function findPlan({ plans }: State, given: unknown): Plan {
  const id = accepted(readId(given, "planId"));
  const plan = plans.get(id);
  if (plan === undefined) throw refused({ type: "plan-unknown", plan: id });
  return plan;
}

function pageOf(state: State, only: Pick<PlanFilter, "agentId" | "project">, before: number, limit: number): PlanPage {
  const rest = [...state.plans.values()].filter((plan) => plan.seq < before && isOf(state, plan.id, only));
  const found = rest.sort((left, right) => right.seq - left.seq).slice(0, limit);
  const last = rest.length > limit ? found.at(-1) : undefined;
  return {
    plans: found.map((plan) => planSummary(state, plan)),
    count: found.length,
    ...(last === undefined ? {} : { nextCursor: String(last.seq) }),
  };
}

/**
 * Whether every task of a plan is of this agent and in these projects, also what an earlier one of its name has left.
 * False where there is none.
 */
export function isOf(
  { groups }: State,
  id: string,
  { agentId, project }: Pick<PlanFilter, "agentId" | "project">,
): boolean {
  if (agentId === undefined && project === undefined) return true;
  const projects = project === undefined ? null : new Set<string>([project].flat());
  const parts = [...(groups.get(groupOfPlan(id))?.parts.values() ?? [])];
  return (
    parts.length > 0 &&
    parts.every(
      (part) => (agentId === undefined || part.agent === agentId) && (projects === null || projects.has(part.project)),
    )
  );
}
