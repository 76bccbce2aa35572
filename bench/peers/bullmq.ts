/**
 * BullMQ at its best: one queue, workers with high concurrency, completed jobs removed.
 *
 * A completed event comes after the script that moved the job has answered; with `appendfsync always` Redis
 * answers only after its fsync.
 */

import { loadPeer } from "../load-peer.ts";
import type { Server } from "./server-process.ts";
import { type Mode, type Runner, type Session, type Submitter, until } from "./workload.ts";

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

const connectionTo = (port: number): object => ({ host: "127.0.0.1", port });

/** A completed job is counted by the worker that ran it: see above. */
export async function bullMqSubmitter(port: number, mode: Mode): Promise<Submitter> {
  const { Queue } = await loadPeer<BullMq>("bullmq");
  const queue = new Queue(QUEUE, { connection: connectionTo(port), defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  return {
    submit: (count) => {
      if (mode === "singles") return queue.add("noop", {});
      return queue.addBulk(Array.from({ length: count }, () => ({ name: "noop", data: {} })));
    },
    isDone: async () => true,
    close: () => queue.close(),
  };
}

export async function bullMqWorker(port: number, concurrency: number, onRan: (count: number) => void): Promise<Runner> {
  const { Worker } = await loadPeer<BullMq>("bullmq");
  const worker = new Worker(QUEUE, async () => {}, { connection: connectionTo(port), concurrency });
  worker.on("completed", () => onRan(1));
  await worker.waitUntilReady();
  return worker;
}

export async function openBullMq({ port }: Server, mode: Mode): Promise<Session> {
  const submitter = await bullMqSubmitter(port, mode);
  let submitted = 0;
  let completed = 0;
  const onRan = (count: number): void => {
    completed += count;
  };
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => bullMqWorker(port, CONCURRENCY, onRan)));
  return {
    ...CALLS[mode],
    submit: (count) => {
      submitted += count;
      return submitter.submit(count);
    },
    ran: () => completed,
    completed: () => until(() => completed >= submitted),
    [Symbol.asyncDispose]: async () => {
      for (const end of [...workers, submitter]) await end.close();
    },
  };
}
