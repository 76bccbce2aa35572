/**
 * Bodies and results: beside the log, and the recent ones at hand.
 *
 * A body is needed when its task starts, so bodies are kept in memory up to a bound in bytes; those of the tasks that
 * ended last stay a little longer, for whoever asks what became of them. Everything else is read back from the log by
 * the number of the event it lies beside, and checked against the hash in that event.
 */
import { hash } from "node:crypto";
import type { Seq } from "../core/brand.ts";
import { NumberTable } from "../core/number-table.ts";
import { decodeEvent } from "../log/codec.ts";
import { corruptAt, type Log } from "../log/log.ts";
import type { PlainBody } from "./task-body.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const ENTRY_OVERHEAD = 200;
/** Bodies of ended tasks at hand, 2 to the power of this: more would only grow old and cost the garbage collector. */
const RELEASED_BITS = 10;
const RELEASED_MAX = 2 ** RELEASED_BITS;
/** Spreads numbers over the places whatever steps they come in: 2³² divided by the golden ratio. */
const SPREAD = 0x9e3779b1;
const placeOf = (seq: number): number => Math.imul(seq, SPREAD) >>> (32 - RELEASED_BITS);
const decoder = new TextDecoder();

/** A text, and what it says where that is known and nobody has been handed it yet: whoever is may change it. */
export type Kept = { readonly text: string; plain: PlainBody | null };
export type BodyStore = {
  keep(seq: number, text: string, plain: PlainBody | null): void;
  /** The task has ended: its body is the first to go when room is needed. */
  release(seq: number): void;
  /** What is at hand of it. */
  peek(seq: Seq): Kept | undefined;
  /** The text, from the log if need be: so to be asked once the event it lies beside is durable. */
  read(seq: Seq): Promise<string | null>;
};

export function createBodyStore(log: Log): BodyStore {
  const kept = new NumberTable<Kept>();
  /** Those of ended tasks, each in the one place its number has: who ends later takes it. */
  const released: (Kept | undefined)[] = new Array(RELEASED_MAX).fill(undefined);
  const releasedSeqs = new Float64Array(RELEASED_MAX);
  /** Nobody has touched an old one for long: its size is read without touching it. */
  const releasedSizes = new Float64Array(RELEASED_MAX);
  let keptSize = 0;
  let releasedSize = 0;

  const sizeOf = ({ text }: Kept): number => text.length + ENTRY_OVERHEAD;
  const find = (seq: number): Kept | undefined =>
    kept.get(seq) ?? (releasedSeqs[placeOf(seq)] === seq ? released[placeOf(seq)] : undefined);

  function dropReleased(): void {
    released.fill(undefined);
    releasedSizes.fill(0);
    releasedSize = 0;
  }

  return {
    keep(seq, text, plain) {
      const entry = { text, plain };
      const size = sizeOf(entry);
      if (releasedSize > 0 && keptSize + releasedSize + size > KEPT_BYTES_MAX) dropReleased();
      // Too much all the same: this one is read back when its turn comes. What was submitted first is started first.
      if (keptSize + size > KEPT_BYTES_MAX) return;
      keptSize += size;
      kept.set(seq, entry);
    },
    release(seq) {
      const entry = kept.take(seq);
      if (entry === undefined) return;
      const size = sizeOf(entry);
      keptSize -= size;
      const place = placeOf(seq);
      releasedSize += size - (releasedSizes[place] as number);
      released[place] = entry;
      releasedSeqs[place] = seq;
      releasedSizes[place] = size;
    },
    peek: find,
    async read(seq) {
      const text = find(seq)?.text;
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
