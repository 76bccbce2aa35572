/**
 * The task that an argument names: an id, or PLAN/TASK. What looks for plans is loaded only where one is named.
 */
import type { Client } from "../../client/index.ts";
import type { NamedTask } from "../run/past-run.ts";
import { clientFor } from "../shell/connection.ts";
import type { Call } from "../shell/verb.ts";

export const TASK_ARGUMENT = "the task: its id, or PLAN/TASK";

/** Also of a plan that has run alone and is over. */
export async function named(call: Call<unknown>, word: string): Promise<NamedTask> {
  if (!word.includes("/")) return { calls: clientFor(call), id: word };
  return await (await import("../run/named-task.ts")).namedTask(call, word);
}

/** Only where it may still change. */
export async function namedLive(call: Call<unknown>, word: string): Promise<NamedTask<Client>> {
  if (!word.includes("/")) return { calls: clientFor(call), id: word };
  return await (await import("../run/named-task.ts")).liveTask(call, word);
}
