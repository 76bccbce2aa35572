/**
 * graphile-worker at its best: the local queue and the batched completion its own performance page recommends.
 *
 * Every submit notifies, and PostgreSQL commits transactions that notify one at a time; that bounds single
 * submits, there is no setting against it, and more than a few calls in flight only fight for the lock: four carry
 * twice as many jobs as a hundred. A completed job is deleted, so an empty table means all are done.
 */

import { loadPeer } from "../load-peer.ts";
import type { Server } from "./server-process.ts";
import { type Mode, type Session, until } from "./workload.ts";

const CALLS = { singles: { perCall: 1, inFlight: 4 }, batches: { perCall: 1000, inFlight: 2 } };
const SETTINGS = {
  concurrentJobs: 24,
  maxPoolSize: 26,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const UNFINISHED = "SELECT 1 FROM graphile_worker._private_jobs LIMIT 1";

type JobSpec = { readonly identifier: string; readonly payload: unknown };
type WorkerUtils = {
  addJob(identifier: string, payload: unknown): Promise<unknown>;
  addJobs(specs: readonly JobSpec[]): Promise<unknown>;
  release(): Promise<void>;
};
type GraphileWorker = {
  readonly run: (options: object) => Promise<{ stop(): Promise<void> }>;
  readonly makeWorkerUtils: (options: object) => Promise<WorkerUtils>;
  readonly Logger: new (factory: () => () => void) => object;
};
type Client = {
  connect(): Promise<unknown>;
  query(text: string): Promise<{ readonly rows: readonly unknown[] }>;
  end(): Promise<void>;
};
type Pg = { readonly default: { readonly Client: new (connectionString: string) => Client } };

export async function openGraphileWorker({ port }: Server, mode: Mode): Promise<Session> {
  const { run, makeWorkerUtils, Logger } = await loadPeer<GraphileWorker>("graphile-worker");
  const pg = await loadPeer<Pg>("pg");
  const connectionString = `postgres://bench@127.0.0.1:${port}/postgres`;
  const preset = { worker: { connectionString, logger: new Logger(() => () => {}), ...SETTINGS } };
  let ran = 0;
  const noop = (): void => {
    ran += 1;
  };
  const runner = await run({ preset, noHandleSignals: true, taskList: { noop } });
  const producer = await makeWorkerUtils({ preset });
  const observer = new pg.default.Client(connectionString);
  await observer.connect();
  return {
    ...CALLS[mode],
    submit: (count) => {
      if (mode === "singles") return producer.addJob("noop", {});
      return producer.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: {} })));
    },
    ran: () => ran,
    completed: () => until(async () => (await observer.query(UNFINISHED)).rows.length === 0),
    [Symbol.asyncDispose]: async () => {
      await producer.release();
      await runner.stop();
      await observer.end();
    },
  };
}
