/**
 * The calls about plans.
 */
import type * as wire from "../generated/index.ts";
import * as plan from "../shapes/plans.ts";
import * as about from "../shapes/task-calls.ts";
import { type Call, callsOf, type Id } from "./call.ts";
import { AGENTS, idOf, READERS } from "./roles.ts";

export type PlanCalls = {
  readonly plans: Call<{ query: wire.PlansQuery }, wire.PlanPage>;
  readonly plan: Call<{ params: Id; query: wire.PlanQuery }, wire.PlanView>;
  readonly putPlan: Call<{ params: Id; query: wire.PutPlanQuery; body: wire.PlanDocument }, wire.PlanPut>;
  readonly cancelPlan: Call<{ params: Id; body: wire.CancelBody }, wire.PlanChanged>;
  readonly retryPlan: Call<{ params: Id }, wire.PlanChanged>;
  readonly pausePlan: Call<{ params: Id }, wire.PlanSummary>;
  readonly resumePlan: Call<{ params: Id }, wire.PlanSummary>;
  readonly removePlan: Call<{ params: Id }, wire.PlanStatus>;
};

const planId = idOf("plan", plan.PLAN_ID_MAX);

export const planCalls: PlanCalls = callsOf<PlanCalls>("plans", {
  plans: {
    roles: READERS,
    query: plan.plansQuery,
    summary: "Page through plans, the one put last first",
    answers: { 200: plan.planPage },
  },
  plan: {
    roles: READERS,
    params: planId,
    query: plan.planQuery,
    summary: "How far a plan is, task by task",
    description: "A plan that has ended is known for scheduler.planTtl, and so are the records of its tasks.",
    answers: { 200: plan.planView },
    errors: ["not_found"],
  },
  putPlan: {
    roles: AGENTS,
    params: planId,
    query: plan.putPlanQuery,
    body: plan.planDocument,
    needsBody: true,
    summary: "Run a plan, or go on with it",
    description:
      "What is new is submitted, what did not end well runs again, what is done and unchanged stays, and what is no " +
      "longer in it is cancelled: all of it, or nothing where one task is refused. Every mistake in the document is " +
      "in details.problems, each with its path. The sections workers, limits, scheduler, gates, projects and budget " +
      "are for drover run alone: here the server's own hold.",
    answers: { 202: plan.planPut },
    errors: ["conflict", "not_found", "queue_full", "backpressure", "limit", "bytes_per_minute", "log_full"],
  },
  cancelPlan: {
    roles: AGENTS,
    params: planId,
    body: about.cancelBody,
    summary: "Cancel what has not ended of a plan",
    answers: { 200: plan.planChanged },
    errors: ["not_found"],
  },
  retryPlan: {
    roles: AGENTS,
    params: planId,
    summary: "Run the failed, cancelled and skipped tasks of a plan again",
    answers: { 202: plan.planChanged },
    errors: ["not_found"],
  },
  pausePlan: {
    roles: AGENTS,
    params: planId,
    summary: "Start nothing more of a plan; what runs may end",
    answers: { 200: plan.planSummary },
    errors: ["not_found"],
  },
  resumePlan: {
    roles: AGENTS,
    params: planId,
    summary: "Go on with a plan that is paused",
    answers: { 200: plan.planSummary },
    errors: ["not_found"],
  },
  removePlan: {
    roles: AGENTS,
    params: planId,
    summary: "Forget a plan that has ended",
    answers: { 200: plan.planStatus },
    errors: ["not_found", "conflict"],
  },
});
