/**
 * Bodies and results: beside the log, and the recent ones at hand.
 *
 * A body is needed when its task starts, so bodies are kept in memory up to a bound in bytes; those of the tasks that
 * ended last stay a little longer, for whoever asks what became of them. Everything else is read back from the log by
 * the number of the event it lies beside, and checked against the hash in that event.
 */
import { hash } from "node:crypto";
import type { Seq } from "../core/brand.ts";
import { fifo, lengthOf, push, shift } from "../core/fifo.ts";
import { NumberTable } from "../core/number-table.ts";
import { decodeEvent } from "../log/codec.ts";
import { corruptAt, type Log } from "../log/log.ts";
import type { PlainBody } from "./task-body.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const ENTRY_OVERHEAD = 200;
/** Bodies of ended tasks at hand: more would only grow old and cost the garbage collector. */
const RELEASED_MAX = 1000;
const decoder = new TextDecoder();

/** A text, and what it says where nobody has been handed that yet. */
type Kept = { readonly text: string; plain: PlainBody | null };
export type BodyStore = {
  keep(seq: number, text: string, plain: PlainBody | null): void;
  /** The task has ended: its body is the first to go when room is needed. */
  release(seq: number): void;
  /** The text, if it is at hand. */
  peek(seq: Seq): string | undefined;
  /** What the text says, if that is at hand: once, since whoever is handed it may change it. */
  takePlain(seq: Seq): PlainBody | null;
  /** The text, from the log if need be: so to be asked once the event it lies beside is durable. */
  read(seq: Seq): Promise<string | null>;
};

export function createBodyStore(log: Log): BodyStore {
  const kept = new NumberTable<Kept>();
  const released = fifo<number>();
  let size = 0;

  function drop(seq: number): void {
    const found = kept.get(seq);
    if (found === undefined) return;
    kept.delete(seq);
    size -= found.text.length + ENTRY_OVERHEAD;
  }

  return {
    keep(seq, text, plain) {
      kept.set(seq, { text, plain });
      size += text.length + ENTRY_OVERHEAD;
      while (size > KEPT_BYTES_MAX) {
        // With none released the newest goes: what was submitted first is started first.
        drop(shift(released) ?? seq);
      }
    },
    release(seq) {
      if (kept.get(seq) === undefined) return;
      push(released, seq);
      if (lengthOf(released) > RELEASED_MAX) drop(shift(released) as number);
    },
    peek: (seq) => kept.get(seq)?.text,
    takePlain(seq) {
      const found = kept.get(seq);
      if (found === undefined) return null;
      const { plain } = found;
      found.plain = null;
      return plain;
    },
    async read(seq) {
      const text = kept.get(seq)?.text;
      if (text !== undefined) return text;
      const record = await log.readRecord(seq);
      if (record?.beside === undefined) return null;
      if (record.bytes.length > 0) checkHash(record.bytes, record.beside, seq);
      return decoder.decode(record.beside);
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
