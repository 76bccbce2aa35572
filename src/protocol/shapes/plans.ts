/**
 * Plans on the wire: tasks that are put as one, and go on as one.
 */
import type { PlanDocument } from "../generated/plan-document.ts";
import type * as wire from "../generated/plans.ts";
import * as s from "../schema/schema.ts";
import { PAGE_MAX } from "../wire/endpoints.ts";
import { TASK_STATES, type TaskState } from "../wire/task-state.ts";
import { PAGE_DEFAULT } from "./task-calls.ts";
import { usageView } from "./usage.ts";

export const PLAN_ID_MAX = 100;
const PLAN_TASKS_MAX = 10_000;
const taskName = (): s.Schema<string> => s.text(1, 1024);

/** What it holds is read by the plan's own rules, which report every mistake at once. */
export const planDocument: s.Schema<PlanDocument> = s.described(
  s.anyObject() as s.Schema<PlanDocument>,
  "A plan file as JSON: tasks, defaults and all else that docs/guide/plan-files.md tells of.",
  { examples: [{ tasks: { build: { run: "make" }, test: { run: "make test", needs: ["build"] } } }] },
);
export const putPlanFields: s.Fields<wire.PutPlanQuery> = {
  only: s.optional(
    s.list(taskName(), { min: 1, max: PLAN_TASKS_MAX }),
    "Only these tasks and what they need, as in only=build,test; a task with for stands for all its values.",
  ),
  retryFailed: s.optional(s.flag(), "Whether what failed or was skipped is run again.", { default: true }),
  failFast: s.optional(s.flag(), "The first task that fails pauses the plan.", { default: false }),
  fresh: s.optional(s.flag(), "Nothing counts as done: all of it is run again.", { default: false }),
  directory: s.optional(
    s.text(1, 4096),
    "The absolute path that paths in it start from; absent: the directory of the worker that runs a task.",
  ),
};
export const putPlanQuery: s.Schema<wire.PutPlanQuery> = s.object(putPlanFields);

const planState = (): s.Schema<wire.PlanState> => s.oneOf("running", "paused", "done", "failed", "cancelled");
const round = (): s.Schema<{ readonly number: number; readonly max: number }> =>
  s.answer<{ readonly number: number; readonly max: number }>({
    number: s.described(s.whole(1), "Which round."),
    max: s.described(s.whole(1), "How many there may be."),
  });

export const planTaskView: s.Schema<wire.PlanTaskView> = s.answer<wire.PlanTaskView>({
  name: s.described(taskName(), "In the plan."),
  taskId: s.name(),
  needs: s.described(s.list(taskName()), "The names of those it waits for."),
  state: s.oneOf<TaskState>(...TASK_STATES),
  attempt: s.described(s.whole(0), "The number of the last attempt; 0 before the first."),
  startedAt: s.optional(s.instant(), "When its attempt began; absent while it waits for another one."),
  endedAt: s.optional(s.instant(), "When it ended."),
  reason: s.optional(s.text(0, 1_000_000), "Why it did not go well, or what it asks."),
  usage: s.optional(usageView(), "What its attempts used in all, as they said at their ends."),
  round: s.optional(round(), "Of a loop: which round it is in, of how many."),
  children: s.optional(s.whole(1), "How many tasks name it as their parent."),
});

const summary: s.Fields<wire.PlanSummary> = {
  id: s.name(PLAN_ID_MAX),
  groupId: s.described(s.name(), "The group of its tasks, with all that it had before."),
  project: s.described(s.name(), "Of tasks that name none."),
  state: s.described(planState(), "Paused only while something of it has not ended."),
  counts: s.described(s.table(s.whole(0)), "Its tasks by their state."),
  total: s.whole(0),
  createdAt: s.described(s.instant(), "When it was first put."),
  putAt: s.described(s.instant(), "When it was last put."),
  endedAt: s.optional(s.instant(), "When the last of them ended; absent while one has not."),
  pausedBy: s.optional(s.oneOf("asked", "failed"), "Why it is paused: somebody asked, or it fails fast."),
  usage: s.optional(usageView(), "What the attempts of its tasks used in all."),
  directory: s.optional(s.text(1, 4096), "What paths in it start from."),
};
export const planSummary: s.Schema<wire.PlanSummary> = s.namedAnswer("PlanSummary", summary);
export const planQuery: s.Schema<wire.PlanQuery> = s.object<wire.PlanQuery>({
  document: s.optional(s.flag(), "Whether the answer has the document that was put.", { default: false }),
});
const view: s.Fields<wire.PlanView> = {
  ...summary,
  seq: s.described(s.whole(0), "The last event that this is as of: those behind it say what has changed."),
  tasks: s.described(s.list(planTaskView), "Each behind all that it needs."),
  document: s.optional(s.anyObject(), "What was put last, if it was asked for and the log has it still."),
};
export const planView: s.Schema<wire.PlanView> = s.namedAnswer("Plan", view);
export const planPut: s.Schema<wire.PlanPut> = s.namedAnswer("PlanPut", {
  ...view,
  submitted: s.described(s.whole(0), "How many tasks are new."),
  retried: s.described(s.whole(0), "How many had not ended well and run again."),
  kept: s.described(s.whole(0), "How many stay as they are: done, under way, or left as they ended."),
  cancelled: s.described(s.whole(0), "How many were live and are no part of it any more."),
  warnings: s.described(s.list(s.text(1, 10_000)), "What the caller should know, in sentences."),
});
export const planChanged: s.Schema<wire.PlanChanged> = s.namedAnswer("PlanChanged", {
  ...summary,
  count: s.described(s.whole(0), "How many tasks were cancelled or run again."),
});

export const planFilterFields: s.Fields<wire.PlansQuery> = {
  limit: s.optional(s.whole(1, PAGE_MAX), "How many at most.", { default: PAGE_DEFAULT }),
  cursor: s.optional(
    s.refined(s.text(1, 17), (value) => /^\d{1,16}$/.test(value), "the nextCursor of a former page"),
    "The nextCursor of the page before.",
  ),
};
export const plansQuery: s.Schema<wire.PlansQuery> = s.object(planFilterFields);
export const planPage: s.Schema<wire.PlanPage> = s.namedAnswer("PlanPage", {
  plans: s.described(s.list(planSummary), "The one that was put last comes first."),
  count: s.described(s.whole(0), "Of this page."),
  nextCursor: s.optional(s.text(1, 17), "Where to go on. Absent on the last page, and only there."),
});
export const planStatus: s.Schema<wire.PlanStatus> = s.answer({ status: s.oneOf("removed"), id: s.name() });
