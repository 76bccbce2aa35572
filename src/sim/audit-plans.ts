/**
 * The rules of plans: a paused one starts nothing, one that fails fast stops at its first failure, what is done and
 * unchanged is not done again, what ended is held while the plan is known, and putting the same again changes nothing.
 */
import type { Event, State } from "../core/model/index.ts";
import {
  type Complain,
  type EventOf,
  isPlanDue,
  openOf,
  plansOf,
  type Shadow,
  type ShadowPlan,
  type ShadowTask,
  shadowPlanOf,
} from "./shadow.ts";

export function auditPlans(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind === "task-assigned") {
    const task = shadow.tasks.get(event.task);
    const plan = task === undefined ? undefined : shadowPlanOf(shadow, task.spec);
    if (plan !== undefined && plan.paused !== null)
      complain("plan-pause", `${event.task} starts while its plan is paused`);
    if (plan?.hasFailed) complain("plan-fail-fast", `${event.task} starts though a task of its plan has failed`);
  }
  if (event.kind === "task-submitted") auditRepeat(shadow, event, complain);
  if (event.kind === "engine-started") auditRestored(shadow, complain);
  if (!("plan" in event)) return;
  const plan = shadow.plans.get(event.plan);
  if (event.kind === "plan-put") {
    auditShare(shadow, event, complain);
    return plan === undefined ? undefined : auditAgain(plan, event, complain);
  }
  if (plan === undefined) return complain("plan-lost", `${event.kind} tells of ${event.plan}, which is not known`);
  if (event.kind === "plan-paused" && event.cause === "failed" && !plan.hasFailed)
    complain("plan-fail-fast", `${event.plan} is paused by a failure, and there was none`);
  if (event.kind === "plan-removed") auditRemoval(shadow, plan, event, complain);
}

/** A plan that was put is there with all of its tasks, wherever the engine before has crashed. */
function auditRestored({ plans, tasks }: Shadow, complain: Complain): void {
  for (const [id, plan] of plans) {
    const missing = plan.tasks.filter((entry) => !tasks.has(entry.id)).map(({ name }) => name);
    if (missing.length > 0) complain("plan-whole", `${id} is restored without ${missing.join(", ")}`);
  }
}

/** The id of a task says what it does: all of it but the last part, which is of its rules. */
const workOf = (id: string): string => id.slice(0, id.lastIndexOf("."));

function auditRepeat(shadow: Shadow, event: EventOf<"task-submitted">, complain: Complain): void {
  const plan = shadowPlanOf(shadow, event);
  if (plan === undefined) return;
  const done = known(shadow, [...plan.heldBefore, ...plan.held]).find(
    ({ spec: { task }, outcome }) => task !== event.task && outcome === "done" && workOf(task) === workOf(event.task),
  );
  if (done !== undefined) complain("plan-repeats", `${event.task} is to do what ${done.spec.task} has done`);
}

const known = ({ tasks }: Shadow, ids: Iterable<string>): ShadowTask[] =>
  [...ids].flatMap((id) => tasks.get(id as never) ?? []);

/** The same document with the same tasks, not begun anew, has the same ids. */
function auditAgain(plan: ShadowPlan, event: EventOf<"plan-put">, complain: Complain): void {
  if (plan.run !== event.run || plan.documentHash !== event.documentHash) return;
  const [before, now] = [plan.tasks, event.tasks].map((tasks) => new Map(tasks.map(({ name, id }) => [name, id])));
  for (const [name, id] of now ?? [])
    if (before?.has(name) && before.get(name) !== id)
      complain("plan-again", `${event.plan} is put again as it was, and ${name} is another task now: ${id}`);
}

/** There is room for it, the last tenth is kept for who has none, and nobody has lost a plan to one who has as many. */
function auditShare(shadow: Shadow, { plan, agent }: EventOf<"plan-put">, complain: Complain): void {
  const say = (claim: string): void => complain("plan-share", `${plan} is put by ${agent}, ${claim}`);
  const { evicted, plans, config } = shadow;
  const { plansMax } = config.scheduler;
  const mine = plansOf(shadow, agent);
  for (const { had, ...gone } of evicted)
    if (gone.agent !== agent && had <= mine) say(`who has ${mine}, and ${gone.agent} loses ${gone.plan} of ${had}`);
  if (plans.has(plan)) return;
  if (plans.size >= plansMax) say(`and there are ${plans.size} of ${plansMax}`);
  const isKept = evicted.length === 0 && plans.size >= plansMax - Math.floor(plansMax / 10);
  if (isKept && mine >= plansMax / 100) say(`who has ${mine}, and the last tenth is kept`);
}

function auditRemoval(shadow: Shadow, plan: ShadowPlan, event: EventOf<"plan-removed">, complain: Complain): void {
  const say = (claim: string): void => complain("plan-removed", `${event.plan} is removed ${claim}`);
  const open = openOf(shadow, plan);
  if (open.length > 0) return say(`and ${open.join(", ")} have not ended`);
  if (!event.expired || isPlanDue(shadow, plan, event.at)) return;
  const { plansMax } = shadow.config.scheduler;
  if (shadow.plans.size < plansMax - Math.floor(plansMax / 10)) say("before its time");
  const had = plansOf(shadow, plan.agent);
  for (const other of shadow.plans.values())
    if (openOf(shadow, other).length === 0 && plansOf(shadow, other.agent) > had)
      complain("plan-share", `${event.plan} goes, of ${plan.agent}, who has ${had}: ${other.agent} has more`);
}

/** The plans of the engine are those of the log, and the records that they hold are there. */
export function comparePlans(shadow: Shadow, state: State, complain: Complain): void {
  const say = (claim: string): void => complain("plan-lost", claim);
  for (const [id, plan] of shadow.plans) {
    const found = state.plans.get(id);
    const [ours, theirs] = [
      [plan.paused, openOf(shadow, plan).length, plan.tasks],
      [found?.paused, found?.open, found?.tasks],
    ].map((facts) => JSON.stringify(facts));
    if (ours !== theirs) say(`${id} should stand at ${ours}, but stands at ${theirs}`);
    for (const { spec, phase } of known(shadow, plan.held))
      if (phase === "ended" && !state.tasks.has(spec.task))
        complain("plan-records", `${id} is known, and the record of ${spec.task} is gone`);
  }
  for (const id of state.plans.keys()) if (!shadow.plans.has(id)) say(`${id} was never put`);
}
