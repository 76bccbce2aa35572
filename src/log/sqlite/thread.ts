/**
 * The thread that owns the database.
 *
 * An fsync takes as long as the disk likes; on the event loop it would stop leases, timers and every
 * request. So the database lives here and is spoken to by messages: one request, one answer, in
 * order. Blocks of bytes are moved or shared, not copied. This file only carries; what is done is in
 * `store.ts`.
 */
import { parentPort, workerData } from "node:worker_threads";
import { BrokenInvariant, invariant } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";
import type { DatabaseOptions } from "./database.ts";
import type { PackedRecords } from "./record-reader.ts";
import { openSqliteStore, type StoredPage } from "./store.ts";
import { OPENING_ID, type PostedFailure, type Reply, type Request } from "./thread-client.ts";

function serve(): void {
  invariant(parentPort !== null, "this file runs as a thread");
  const port = parentPort;
  const reply = (id: number, work: () => unknown): void => {
    try {
      const value = work();
      port.postMessage({ id, ok: true, value } satisfies Reply, blocksOf(value));
    } catch (error) {
      port.postMessage({ id, ok: false, failure: posted(error) } satisfies Reply);
    }
  };
  reply(OPENING_ID, () => {
    const store = openSqliteStore(workerData as DatabaseOptions);
    port.on("message", ({ id, op, input }: Request) => {
      if (op !== "close") return reply(id, () => (store[op] as (input: unknown) => unknown)(input));
      reply(id, () => store.close());
      port.close();
    });
    return null;
  });
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
