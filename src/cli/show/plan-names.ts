/**
 * Tasks of plans by the names they have there: `release/ship` says more than an id, and every verb takes it.
 *
 * The plan says which of its tasks has which name now. What an earlier run of it has left keeps its id: by that name
 * another is meant.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { TaskView, WhyAnswer } from "../../protocol/index.ts";

/** From ids to PLAN/TASK. */
export type TaskNames = ReadonlyMap<string, string>;
type Asked = { readonly plans: Pick<Client["plans"], "get"> };

/** Of more plans than these a list has the ids. */
const PLANS_MAX = 8;
const GROUP_OF_PLAN = /^plan:(.+)$/;
/** As plans make them: a name, a hash of the work and one of the rules. */
const ID_OF_PLAN = /[\w.[\],=@%+-]+\.[0-9a-f]{12}\.[0-9a-f]{8}/g;

export const namesIn = (plan: string, tasks: readonly { readonly name: string; readonly id: string }[]): TaskNames =>
  new Map(tasks.map(({ name, id }) => [id, `${plan}/${name}`]));

/** Of the plans that these tasks are of. */
export async function namesFor(calls: Asked, tasks: readonly Pick<TaskView, "group">[]): Promise<TaskNames> {
  const plans = new Set(tasks.flatMap(({ group = "" }) => GROUP_OF_PLAN.exec(group)?.[1] ?? []));
  const found = await Promise.all([...plans].slice(0, PLANS_MAX).map((plan) => namesOf(calls, plan)));
  return new Map(found.flatMap((names) => [...names]));
}

/** Of the plan that a task is of, which is asked for only where its id looks like one. */
export async function namesAround(calls: Asked & Pick<Client, "task">, id: string): Promise<TaskNames> {
  if (id.replace(ID_OF_PLAN, "") !== "") return new Map();
  const task = await unlessRefused(() => calls.task(id, { retries: 0 }));
  return task === null ? new Map() : await namesFor(calls, [task]);
}

/** A plan that is gone, or may not be read, has no names. */
async function namesOf({ plans }: Asked, plan: string): Promise<TaskNames> {
  const view = await unlessRefused(() => plans.get(plan, { retries: 0 }));
  return namesIn(plan, view?.tasks.map(({ name, taskId }) => ({ name, id: taskId })) ?? []);
}

async function unlessRefused<Value>(ask: () => Promise<Value>): Promise<Value | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ClientError) return null;
    throw error;
  }
}

/** A sentence with names in the place of the ids in it. */
export const byName = (text: string, names: TaskNames): string =>
  names.size === 0 ? text : text.replaceAll(ID_OF_PLAN, (id) => names.get(id) ?? id);

/** A task for people. */
export function taskByName(task: TaskView, names: TaskNames): TaskView {
  const { taskId, parent, error } = task;
  return {
    ...task,
    taskId: byName(taskId, names),
    ...(parent === undefined ? {} : { parent: byName(parent, names) }),
    ...(error === undefined ? {} : { error: byName(error, names) }),
  };
}

/** Why a task does not run, for people. */
export function whyByName(why: WhyAnswer, names: TaskNames): WhyAnswer {
  const named = (text: string): string => byName(text, names);
  return {
    ...why,
    task: named(why.task),
    summary: named(why.summary),
    conditions: why.conditions.map(({ numbers, ...one }) => ({
      ...one,
      detail: named(one.detail),
      numbers: Object.fromEntries(
        Object.entries(numbers).map(([key, value]) => [key, typeof value === "string" ? named(value) : value]),
      ),
    })),
    ahead: { ...why.ahead, next: why.ahead.next.map((one) => ({ ...one, task: named(one.task) })) },
  };
}
