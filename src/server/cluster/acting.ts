/**
 * What acts outside for the engine: webhooks, and the drivers of push workers.
 *
 * A server alone has them from its start to its end. A node of a cluster has them in each life in which it leads: they
 * begin with it, from what the log says is due, and are cut off with it. The next leader goes on from the log, so what
 * was on its way then goes out again, under the same delivery id or as the next attempt.
 */
import { DroverError, isStop } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode, NodeLife } from "../../engine/node/index.ts";
import type { WebhookSettings } from "../../protocol/index.ts";
import type { PushDriver } from "../push/drivers.ts";
import type { WebhookEngine, Webhooks } from "../webhooks/dispatcher.ts";

export type Actors = { readonly webhooks: Webhooks; readonly push: PushDriver };
export type Acting = {
  readonly push: Pick<PushDriver, "join" | "giveBack" | "left" | "stop">;
  readonly webhooks: Pick<Webhooks, "rejected" | "change" | "stop"> & { due(): number };
  /** Takes up what the log knows. */
  begin(): Promise<void>;
};
export type ActingDeps = {
  readonly drover: Drover;
  readonly node: Pick<DroverNode, "onLife"> | undefined;
  readonly settings: WebhookSettings;
  /** Starts them over an engine. */
  readonly start: (engine: Drover & WebhookEngine, settings: WebhookSettings) => Actors;
  readonly onProblem: (error: unknown) => void;
};

export function createActing({ drover, node, start, onProblem, ...deps }: ActingDeps): Acting {
  let { settings } = deps;
  let isStopped = false;
  let present: Actors | null = node === undefined ? start(drover as Drover & WebhookEngine, settings) : null;
  let stopLives = (): void => {};

  function lead(life: NodeLife): void {
    if (life.role !== "leader" || life.signal.aborted || isStopped) return;
    const actors = start(whileLeading(life), settings);
    present = actors;
    life.signal.addEventListener("abort", () => {
      if (present === actors) present = null;
      Promise.all([actors.webhooks.stop(), actors.push.stop()]).catch(onProblem);
    });
    actors.push.resume().catch((error: unknown) => (isStop(error) ? undefined : onProblem(error)));
  }

  return {
    async begin() {
      if (node === undefined) await present?.push.resume();
      else stopLives = node.onLife(lead);
    },
    push: {
      join(body) {
        if (present === null) throw notLeading();
        return present.push.join(body);
      },
      giveBack: (workerId) => present?.push.giveBack(workerId),
      left: (workerId) => present?.push.left(workerId),
      async stop(options) {
        isStopped = true;
        stopLives();
        await present?.push.stop(options);
      },
    },
    webhooks: {
      rejected: (task) => present?.webhooks.rejected(task),
      change(next) {
        settings = next;
        present?.webhooks.change(next);
      },
      due: () => present?.webhooks.standing().due ?? 0,
      async stop(options) {
        await present?.webhooks.stop(options);
      },
    },
  };
}

/** Its engine, which hands out nothing to deliver once the lead is not sure: the lease is asked before each try. */
function whileLeading({ drover, leads }: NodeLife): Drover & WebhookEngine {
  const { callbacks } = drover;
  const snapshot: typeof callbacks.snapshot = async (seq) => {
    if (!leads()) throw notLeading();
    return callbacks.snapshot(seq);
  };
  return { ...drover, callbacks: { ...callbacks, snapshot } } as Drover & WebhookEngine;
}

const notLeading = (): DroverError => new DroverError("no_leader", "this node does not lead; try again in a moment");
