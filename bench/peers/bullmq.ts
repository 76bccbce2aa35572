/**
 * BullMQ at its best: one queue, workers with high concurrency, completed jobs removed.
 *
 * A completed event comes after the script that moved the job has answered; with `appendfsync always` Redis
 * answers only after its fsync.
 */

import { loadPeer } from "../load-peer.ts";
import type { Server } from "./server-process.ts";
import { type Mode, type Session, until } from "./workload.ts";

const QUEUE = "bench";
const WORKERS = 2;
const CONCURRENCY = 200;
const CALLS = { singles: { perCall: 1, inFlight: 500 }, batches: { perCall: 500, inFlight: 4 } };

type Job = { readonly name: string; readonly data: unknown };
type Queue = {
  add(name: string, data: unknown): Promise<unknown>;
  addBulk(jobs: readonly Job[]): Promise<unknown>;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
};
type Worker = {
  on(event: "completed", listener: () => void): unknown;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
};
type BullMq = {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (name: string, handler: () => Promise<void>, options: object) => Worker;
};

export async function openBullMq({ port }: Server, mode: Mode): Promise<Session> {
  const { Queue, Worker } = await loadPeer<BullMq>("bullmq");
  const connection = { host: "127.0.0.1", port };
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
  const settings = { connection, concurrency: CONCURRENCY };
  const workers = Array.from({ length: WORKERS }, () => new Worker(QUEUE, async () => {}, settings));
  let submitted = 0;
  let completed = 0;
  for (const worker of workers)
    worker.on("completed", () => {
      completed += 1;
    });
  await Promise.all([queue, ...workers].map((end) => end.waitUntilReady()));
  return {
    ...CALLS[mode],
    submit: (count) => {
      submitted += count;
      if (mode === "singles") return queue.add("noop", {});
      return queue.addBulk(Array.from({ length: count }, () => ({ name: "noop", data: {} })));
    },
    ran: () => completed,
    completed: () => until(() => completed >= submitted),
    [Symbol.asyncDispose]: async () => {
      for (const end of [...workers, queue]) await end.close();
    },
  };
}
