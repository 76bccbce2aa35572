/**
 * graphile-worker at its best: the local queue and the batched completion its own performance page recommends.
 *
 * Every submit notifies, and PostgreSQL commits transactions that notify one at a time; that bounds single
 * submits, there is no setting against it, and more than a few calls in flight only fight for the lock: four carry
 * twice as many jobs as a hundred. A completed job is deleted, so an empty table means all are done.
 */

import { loadPeer } from "../load-peer.ts";
import type { Server } from "./server-process.ts";
import { type Mode, type Runner, type Session, type Submitter, sessionOf } from "./workload.ts";

export const GRAPHILE_CALLS = { singles: { perCall: 1, inFlight: 4 }, batches: { perCall: 1000, inFlight: 2 } };
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
  migrate(): Promise<void>;
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

const addressOf = (port: number): string => `postgres://bench@127.0.0.1:${port}/postgres`;

function presetFor(port: number, { Logger }: GraphileWorker): object {
  return { worker: { connectionString: addressOf(port), logger: new Logger(() => () => {}), ...SETTINGS } };
}

export async function graphileSubmitter(port: number, mode: Mode): Promise<Submitter> {
  const library = await loadPeer<GraphileWorker>("graphile-worker");
  const pg = await loadPeer<Pg>("pg");
  const producer = await library.makeWorkerUtils({ preset: presetFor(port, library) });
  await producer.migrate();
  const observer = new pg.default.Client(addressOf(port));
  await observer.connect();
  return {
    submit: (count) => {
      if (mode === "singles") return producer.addJob("noop", {});
      return producer.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: {} })));
    },
    isDone: async () => (await observer.query(UNFINISHED)).rows.length === 0,
    async close() {
      await producer.release();
      await observer.end();
    },
  };
}

export async function graphileRunner(port: number, onRan: (count: number) => void): Promise<Runner> {
  const library = await loadPeer<GraphileWorker>("graphile-worker");
  const taskList = { noop: (): void => onRan(1) };
  const runner = await library.run({ preset: presetFor(port, library), noHandleSignals: true, taskList });
  return { close: () => runner.stop() };
}

export async function openGraphileWorker({ port }: Server, mode: Mode): Promise<Session> {
  const submitter = await graphileSubmitter(port, mode);
  let ran = 0;
  const runner = await graphileRunner(port, (count) => {
    ran += count;
  });
  return sessionOf(GRAPHILE_CALLS[mode], submitter, runner, () => ran);
}
