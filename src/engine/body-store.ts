/**
 * Bodies and results: beside the log, and the recent ones at hand.
 *
 * A body is needed when its task starts, so bodies are kept in memory up to a bound in bytes; those of ended
 * tasks make room first. Everything else is read back from the log by the number of the event it lies beside, and
 * checked against the hash in that event.
 */
import { hash } from "node:crypto";
import type { Seq } from "../core/brand.ts";
import { fifo, push, shift } from "../core/fifo.ts";
import { decodeEvent } from "../log/codec.ts";
import { corruptAt, type Log } from "../log/log.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const ENTRY_OVERHEAD = 100;

export type BodyStore = {
  keep(seq: number, bytes: Uint8Array): void;
  /** The task has ended: its body is the first to go when room is needed. */
  release(seq: number): void;
  read(seq: Seq): Promise<Uint8Array | null>;
};

export function createBodyStore(log: Log): BodyStore {
  const kept = new Map<number, Uint8Array>();
  const released = fifo<number>();
  let size = 0;

  function drop(seq: number): void {
    const bytes = kept.get(seq);
    if (bytes === undefined) return;
    kept.delete(seq);
    size -= bytes.length + ENTRY_OVERHEAD;
  }

  return {
    keep(seq, bytes) {
      kept.set(seq, bytes);
      size += bytes.length + ENTRY_OVERHEAD;
      while (size > KEPT_BYTES_MAX) {
        // With none released the newest goes: what was submitted first is started first.
        drop(shift(released) ?? seq);
      }
    },
    release(seq) {
      if (kept.has(seq)) push(released, seq);
    },
    async read(seq) {
      const bytes = kept.get(seq);
      if (bytes !== undefined) return bytes;
      const record = await log.readRecord(seq);
      if (record?.beside === undefined) return null;
      if (record.bytes.length > 0) checkHash(record.bytes, record.beside, seq);
      return record.beside;
    },
  };
}

function checkHash(bytes: Uint8Array, beside: Uint8Array, seq: Seq): void {
  const { event } = decodeEvent(bytes, seq);
  const expected =
    event.kind === "task-submitted" ? event.bodyHash : event.kind === "task-done" ? event.resultHash : null;
  if (expected !== null && hash("sha256", beside, "hex") !== expected) {
    throw corruptAt(seq, "the payload beside it does not match its hash");
  }
}
