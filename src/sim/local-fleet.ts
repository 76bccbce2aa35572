/**
 * Workers in the engine's own process: functions that the program which embeds it hands over, and hands over again to
 * the next engine.
 */
import type { LocalWorker, WorkerOptions } from "../engine/workers/index.ts";
import type { Callers } from "./callers.ts";
import type { SimContext } from "./context.ts";
import type { Step } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";
import { localHandler } from "./workers.ts";

export type LocalFleet = {
  join(engine: SimEngine, id: string, options: WorkerOptions, sober: boolean): void;
  /** A worker leaves or drains. */
  end(engine: SimEngine, step: Extract<Step, { do: "leave" | "drain" }>): void;
  /** A new engine is there: all workers join it. */
  joinAll(engine: SimEngine): void;
  closeAll(): void;
};

export function createLocalFleet(context: SimContext, { expect }: Callers): LocalFleet {
  const hired = new Map<string, WorkerOptions>();
  let workers = new Map<string, LocalWorker>();

  function join(engine: SimEngine, id: string, options: WorkerOptions, sober: boolean): void {
    if (engine.drover === null) return;
    hired.set(id, options);
    // One that has joined an engine which is gone since must not stand for its successor.
    const ofThisEngine = workers;
    const handler = localHandler(context.surroundings, context.life(), sober);
    expect(engine.drover.worker(options, handler), (worker) => ofThisEngine.set(worker.id, worker));
  }

  return {
    join,
    end(engine, step) {
      const worker = workers.get(step.id);
      if (worker === undefined || engine.drover === null) return;
      hired.delete(step.id);
      expect(step.do === "leave" ? worker.close() : worker.drain());
    },
    joinAll(engine) {
      workers = new Map();
      for (const [id, options] of hired) join(engine, id, options, false);
    },
    closeAll() {
      for (const worker of workers.values()) expect(worker.close());
    },
  };
}
