/**
 * pg-boss at its best: fetching in large batches for as long as batches come back full.
 *
 * Batches gain from NOTIFY, which wakes the worker at once. Single submits lose by it: PostgreSQL commits
 * transactions that notify one at a time, so no two share an fsync. There the worker polls, twice a second, and
 * finds its batches full.
 */

import { loadPeer } from "../load-peer.ts";
import type { Server } from "./server-process.ts";
import { type Mode, type Runner, type Session, type Submitter, sessionOf } from "./workload.ts";

const QUEUE = "bench";
const CONNECTIONS = 20;
export const PG_BOSS_CALLS = { singles: { perCall: 1, inFlight: 100 }, batches: { perCall: 1000, inFlight: 2 } };
const FETCHING = {
  batchSize: 1000,
  localConcurrency: 4,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
};
const UNFINISHED = `SELECT 1 FROM pgboss.job WHERE name = '${QUEUE}' AND state < 'completed' LIMIT 1`;

type Boss = {
  on(event: "error", listener: (error: unknown) => void): unknown;
  start(): Promise<unknown>;
  createQueue(name: string, options: object): Promise<unknown>;
  send(name: string, data: object): Promise<string | null>;
  insert(name: string, jobs: readonly object[], options: object): Promise<unknown>;
  work(name: string, options: object, handler: (jobs: readonly unknown[]) => Promise<void>): Promise<string>;
  getDb(): { executeSql(text: string): Promise<{ rows: readonly unknown[] }> };
  stop(options: object): Promise<void>;
};
type PgBoss = { readonly PgBoss: new (options: object) => Boss };

async function startBoss(port: number, mode: Mode): Promise<Boss> {
  const { PgBoss } = await loadPeer<PgBoss>("pg-boss");
  const connectionString = `postgres://bench@127.0.0.1:${port}/postgres`;
  const notify = mode === "batches";
  const quiet = { schedule: false, supervise: false };
  const boss = new PgBoss({ connectionString, max: CONNECTIONS, useListenNotify: notify, ...quiet });
  boss.on("error", (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(QUEUE, { notify });
  return boss;
}

const stopped = (boss: Boss): Promise<void> => boss.stop({ graceful: true, close: true });

export async function pgBossSubmitter(port: number, mode: Mode): Promise<Submitter> {
  const boss = await startBoss(port, mode);
  const db = boss.getDb();
  return {
    submit: (count) => {
      if (mode === "singles") return boss.send(QUEUE, {});
      return boss.insert(
        QUEUE,
        Array.from({ length: count }, () => ({ data: {} })),
        { returnId: false },
      );
    },
    isDone: async () => (await db.executeSql(UNFINISHED)).rows.length === 0,
    close: () => stopped(boss),
  };
}

export async function pgBossRunner(port: number, mode: Mode, onRan: (count: number) => void): Promise<Runner> {
  const boss = await startBoss(port, mode);
  await boss.work(QUEUE, FETCHING, async (jobs) => onRan(jobs.length));
  return { close: () => stopped(boss) };
}

export async function openPgBoss({ port }: Server, mode: Mode): Promise<Session> {
  const submitter = await pgBossSubmitter(port, mode);
  let ran = 0;
  const runner = await pgBossRunner(port, mode, (count) => {
    ran += count;
  });
  return sessionOf(PG_BOSS_CALLS[mode], submitter, runner, () => ran);
}
