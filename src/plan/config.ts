/**
 * The rules of a plan as a config of the engine.
 *
 * A plan's log is the memory of one piece of work, which may be gone on with weeks later, so nothing in it expires:
 * ended tasks stay known, and a budget that names no window counts all that was ever used. Limits that would only make
 * sense on a shared server (so many tasks per agent) are lifted up to the slots of this machine when the plan runs.
 */

import type { Note } from "./problem.ts";
import { LIMITS, type RawBudget, type RawPlan, TASKS_MAX } from "./schema.ts";

export type PlanConfig = Readonly<Record<string, unknown>> & {
  readonly scheduler: Readonly<Record<string, unknown>>;
  readonly projects: Readonly<Record<string, unknown>>;
};

/** As long as a plan can matter to anybody. */
const EVER = "3650d";
/** A command may run for hours, and holds its permit all the while. */
const PERMIT_TTL = "30d";

export function configOf(raw: RawPlan, note: Note): PlanConfig {
  const { limits, scheduler, gates, projects } = raw;
  for (const key of LIMITS)
    if (Object.hasOwn(limits ?? {}, key) && Object.hasOwn(scheduler ?? {}, key))
      note(`${key} stands in both limits and scheduler; say it once`, ["limits", key], "key");
  const { default: others, ...named } = mapped(projects, ({ budget, ...rest }) => ({
    ...rest,
    ...(budget === undefined ? {} : { budget: budgetOf(budget) }),
  }));
  return {
    scheduler: {
      resultTtl: EVER,
      failedTtl: EVER,
      failedMax: TASKS_MAX,
      planTtl: EVER,
      remember: EVER,
      maxPerAgent: TASKS_MAX,
      maxBatch: TASKS_MAX,
      ...scheduler,
      ...limits,
    },
    ...(raw.budget === undefined ? {} : { budget: budgetOf(raw.budget) }),
    projects: { autoCreate: true, ...(others === undefined ? {} : { default: others }), named },
    gates: gatesOf(gates),
    log: { retain: EVER },
  };
}

const budgetOf = (given: RawBudget): unknown =>
  typeof given === "object" && given !== null ? { window: EVER, ...given } : { limit: given, window: EVER };

function gatesOf(gates: RawPlan["gates"]): unknown {
  const { default: others, ...named } = mapped(gates, (settings) => settings);
  return { default: { permitTtl: PERMIT_TTL, ...others }, named };
}

const mapped = <Value extends object, Made>(
  table: Readonly<Record<string, Value | null>> | null | undefined,
  make: (value: Value) => Made,
): Record<string, Made> =>
  Object.fromEntries(Object.entries(table ?? {}).map(([name, value]) => [name, make(value ?? ({} as Value))]));
