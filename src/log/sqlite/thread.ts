/**
 * The thread that owns the database.
 *
 * An fsync takes as long as the disk likes; on the event loop it would stop leases, timers and every
 * request. So the database lives here and is spoken to by messages: one request, one answer, in
 * order. Blocks of bytes are moved or shared, not copied. This file only carries; what is done is in
 * `store.ts`.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { BrokenInvariant, invariant } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";
import type { DatabaseOptions } from "./database.ts";
import type { PackedRecords } from "./record-reader.ts";
import { type AppendInput, type OpenStore, openSqliteStore, type StoredPage } from "./store.ts";
import { APPENDS_TOGETHER_MAX, OPENING_ID, type PostedFailure, type Reply, type Request } from "./thread-client.ts";

function serve(): void {
  invariant(parentPort !== null, "this file runs as a thread");
  const port = parentPort;
  reply(port, OPENING_ID, () => {
    const store = openSqliteStore(workerData as DatabaseOptions);
    port.on("message", (request: Request) => {
      for (let next: Request | null = request; next !== null; ) next = answer(port, store, next);
    });
    return null;
  });
}

/** Answers a request, and with an append all that wait behind it. Gives back what it has taken in beyond those. */
function answer(port: MessagePort, store: OpenStore, { id, op, input }: Request): Request | null {
  if (op === "append") return appendWaiting(port, store, { id, op, input });
  if (op !== "close") reply(port, id, () => (store[op] as (input: unknown) => unknown)(input));
  else {
    reply(port, id, () => store.close());
    port.close();
  }
  return null;
}

/** What gathers while the disk is waited for is stored together then. */
function appendWaiting(port: MessagePort, store: OpenStore, first: Request): Request | null {
  const requests = [first];
  let next = waitingIn(port);
  for (; next?.op === "append" && requests.length < APPENDS_TOGETHER_MAX; next = waitingIn(port)) requests.push(next);
  for (const one of repliesTo(requests, store)) port.postMessage(one);
  return next;
}

function repliesTo(requests: readonly Request[], store: OpenStore): Reply[] {
  try {
    const results = store.appendAll(requests.map(({ input }) => input as AppendInput));
    return requests.map(({ id }, index) => ({ id, ok: true, value: results[index] }));
  } catch (error) {
    const failure = posted(error);
    return requests.map(({ id }) => ({ id, ok: false, failure }));
  }
}

const waitingIn = (port: MessagePort): Request | null =>
  (receiveMessageOnPort(port)?.message as Request | undefined) ?? null;

function reply(port: MessagePort, id: number, work: () => unknown): void {
  try {
    const value = work();
    port.postMessage({ id, ok: true, value } satisfies Reply, blocksOf(value));
  } catch (error) {
    port.postMessage({ id, ok: false, failure: posted(error) } satisfies Reply);
  }
}

/** The large blocks of a page or of single records; everything else is small enough to copy. */
function blocksOf(value: unknown): ArrayBuffer[] {
  if (typeof value !== "object" || value === null) return [];
  if ("ends" in value) return [(value as PackedRecords).bytes.buffer as ArrayBuffer];
  if (!("rows" in value)) return [];
  const { rows, blocks } = value as StoredPage;
  const views = [...rows.flatMap(({ bytes, hashes }) => [bytes, hashes]), ...blocks.map(({ bytes }) => bytes)];
  return views.map(({ buffer }) => buffer as ArrayBuffer);
}

/** A bug is posted as one; what is unknown ends the thread, and the log with it. */
function posted(error: unknown): PostedFailure {
  if (error instanceof LogFailure) return { code: error.code, message: error.message, seq: error.seq ?? null };
  if (error instanceof BrokenInvariant) return { code: null, message: error.message, seq: null };
  throw error;
}

serve();
