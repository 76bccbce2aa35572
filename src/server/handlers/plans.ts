/**
 * The calls about plans. A token that is scoped to projects or an agent sees the plans of which every task is its own,
 * and puts only tasks that it could submit; any other plan is not found.
 */
import { groupOfPlan } from "../../core/lifecycle/index.ts";
import { refused } from "../../engine/base/index.ts";
import type { PlanOptions } from "../../engine/index.ts";
import { isOf } from "../../engine/plans/index.ts";
import { type Caller, forbidden, isScoped } from "../../http/index.ts";
import { type PlanTask, readPlanValue } from "../../plan/index.ts";
import type { PlanCalls } from "../../protocol/calls/index.ts";
import type { PlanView } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { checkClaims, makeOwnProject, ownFilter } from "../access/token-scope.ts";
import type { Deps, Handlers } from "./handler.ts";

export function planHandlers({ drover }: Deps): Handlers<keyof PlanCalls> {
  const { plans, state } = drover;

  /** Its name, if the caller may see it. */
  function own(caller: Caller, id: string): string {
    if (!isOf(state, id, ownFilter(caller, {}))) throw refused({ type: "plan-unknown", plan: id });
    return id;
  }

  /** Throws if a task is there that is not the caller's own, be it left of an earlier plan: it would be cancelled. */
  function checkFree(caller: Caller, id: string): void {
    const isTaken = (state.groups.get(groupOfPlan(id))?.parts.size ?? 0) > 0;
    if (isTaken && !isOf(state, id, ownFilter(caller, {})))
      throw forbidden(`plan ${id} is not this token's own; choose another name`);
  }

  /** Throws if a task of it is none that the caller could submit. */
  async function checkTasks(caller: Caller, tasks: readonly PlanTask[]): Promise<void> {
    for (const owner of ownersOf(caller, tasks)) await makeOwnProject(drover, caller, owner);
  }

  /** Tasks that were never submitted, or are left out, stand in the document too, with all that they say. */
  async function shown(caller: Caller, id: string, query: { readonly document?: boolean }): Promise<PlanView> {
    const view = await plans.get(own(caller, id), query);
    if (view.document === undefined || !isScoped(caller)) return view;
    const { agentId: agent, project } = unsaidOf(caller);
    const read = readPlanValue(view.document, id, present({ agent, project }));
    if (read.ok) ownersOf(caller, read.value.tasks);
    return view;
  }

  return {
    plans: ({ query }, { caller }) => plans.list(ownFilter(caller, query as { readonly project?: string })),
    plan: ({ params, query }, { caller }) => shown(caller, params.id, query),
    putPlan: async ({ params, query, body }, { caller }) => {
      checkFree(caller, params.id);
      if (!isScoped(caller)) return plans.put(params.id, body, query);
      // Another may put one of this name while this one is read.
      const guard = {
        onRead: (tasks: readonly PlanTask[]) => checkTasks(caller, tasks),
        check: () => checkFree(caller, params.id),
      };
      return plans.put(params.id, body, { ...query, ...unsaidOf(caller) }, guard);
    },
    cancelPlan: ({ params, body }, { caller }) => plans.cancel(own(caller, params.id), body),
    retryPlan: ({ params }, { caller }) => plans.retry(own(caller, params.id)),
    pausePlan: ({ params }, { caller }) => plans.pause(own(caller, params.id)),
    resumePlan: ({ params }, { caller }) => plans.resume(own(caller, params.id)),
    removePlan: ({ params }, { caller }) => plans.remove(own(caller, params.id)),
  };
}

type Owner = { readonly agentId: string; readonly project: string };

/** Whose the tasks are, each once. Throws if one is not the caller's own. */
function ownersOf(caller: Caller, tasks: readonly PlanTask[]): Owner[] {
  const owners = new Map<string, Owner>();
  for (const { definition, rules } of tasks) {
    const key = `${rules.agent}\n${rules.project}`;
    if (owners.has(key)) continue;
    const owner = { agentId: rules.agent, project: rules.project };
    checkClaims(caller, owner, `tasks.${definition}.`);
    owners.set(key, owner);
  }
  return [...owners.values()];
}

/** What a token says where the plan says nothing: its agent, and its project if it has just one. */
const unsaidOf = ({ agentId, projects }: Caller): Pick<PlanOptions, "agentId" | "project"> => ({
  ...(agentId === null ? {} : { agentId }),
  ...(projects?.length === 1 ? { project: projects[0] as string } : {}),
});
