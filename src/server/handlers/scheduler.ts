/**
 * The calls about the scheduler as a whole: its numbers, its queue, its rules, its pauses.
 *
 * A token that is scoped to projects or an agent finds its own in the lists, and the totals of all beside them.
 */
import { DroverError } from "../../engine/writer/index.ts";
import { ServerRefusal } from "../../http/index.ts";
import type { SchedulerConfig } from "../../protocol/index.ts";
import { ownQueue, ownStats } from "../access/scoped-views.ts";
import type { Deps, Handlers } from "./handler.ts";

type SchedulerNames = "stats" | "queue" | "config" | "patchConfig" | "reload" | "pause" | "resume";
export function schedulerHandlers(deps: Deps): Handlers<SchedulerNames> {
  const { drover } = deps;
  const rules = (): SchedulerConfig => drover.effectiveConfig().scheduler;
  return {
    stats: async (_, { caller }) => ownStats(drover.state, caller, await drover.stats()),
    queue: async (_, { caller }) => ownQueue(drover.state, caller, await drover.queue()),
    config: rules,
    patchConfig: async ({ body }) => (await drover.patchConfig(body)).scheduler,
    reload: async () => {
      await reload(deps.onReload);
      return rules();
    },
    pause: ({ body }) => drover.pause(body),
    resume: ({ body }) => drover.resume(body),
  };
}

/** A file that cannot be read or is wrong is the caller's news: it names the line. */
async function reload(onReload: Deps["onReload"]): Promise<void> {
  try {
    await onReload();
  } catch (error) {
    const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
    if (error instanceof DroverError || isBug || !(error instanceof Error)) throw error;
    throw new ServerRefusal("bad_request", error.message);
  }
}
