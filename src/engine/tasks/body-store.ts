/**
 * Bodies and results: stored with the log, and the recent ones in memory.
 *
 * A body is needed when its task starts, so bodies are kept in memory up to a bound in bytes; those of the tasks that
 * ended last stay a little longer, and their results with them, for callers that ask what became of them: who waits for
 * a task asks in that very moment. Everything else is read back from the log
 * by the number of the event it is stored with, and checked against the hash in that event. What does not match, or
 * cannot be read, is damaged: that is one task's misfortune, and must stay so.
 */
import type { Seq } from "../../core/base/index.ts";
import { NumberTable } from "../../core/collections/index.ts";
import { decodeEvent, hashOfPayload, payloadHashOf } from "../../log/format/index.ts";
import { type Log, LogFailure, type LogRecord } from "../../log/index.ts";
import type { PlainBody, ShownBody } from "./task-body.ts";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const ENTRY_OVERHEAD = 200;
/** Bodies of ended tasks at hand, 2 to the power of this: more would only grow old and cost the garbage collector. */
const RELEASED_BITS = 10;
const RELEASED_MAX = 2 ** RELEASED_BITS;
/** A larger one of an ended task is not kept: to read it back costs little beside what it takes to send it. */
const RELEASED_SIZE_MAX = 16 * 1024;
/** Spreads numbers over the places whatever steps they come in: 2³² divided by the golden ratio. */
const SPREAD = 0x9e3779b1;
const placeOf = (seq: number): number => Math.imul(seq, SPREAD) >>> (32 - RELEASED_BITS);
const decoder = new TextDecoder();

/** A text, and what it says where that is known and no caller has it yet: one that has it may change it. */
export type KeptBody = { readonly text: string; plain: PlainBody | null; readonly shown: ShownBody | null };
export type BodyStore = {
  keep(seq: number, text: string, plain: PlainBody | null, shown?: ShownBody | null): void;
  /** The task has ended: its body is the first to go when room is needed. */
  release(seq: number): void;
  /** The result of a task that has just ended. */
  keepResult(seq: number, text: string): void;
  /** What is at hand of it. */
  peek(seq: Seq): KeptBody | undefined;
  /**
   * The text, from the log if need be: so to be asked once the event it is stored with is durable. Null if it was
   * pruned; rejects with a `DamagedBody` if it is not what was written. `hash` is what it must have, where that is
   * known.
   */
  read(seq: Seq, hash?: string | null): Promise<string | null>;
};

/** The payload of this event is not what was written there, or is not there any more. */
export class DamagedBody extends Error {
  override readonly name: string = "DamagedBody";
  readonly seq: Seq;

  constructor(seq: Seq) {
    super(`what is stored beside event ${seq} is damaged`);
    this.seq = seq;
  }
}

/** Why a task whose body cannot be read ends: no worker can run it, and another attempt would not find it either. */
export const damagedReason = (seq: number): string =>
  `its stored body is damaged (event ${seq}); submit it again under another id, and run drover verify`;

export function createBodyStore(log: Log): BodyStore {
  const kept = new NumberTable<KeptBody>();
  /** Those of ended tasks, each in the one place its number has: who ends later takes it. */
  const released: (KeptBody | undefined)[] = new Array(RELEASED_MAX).fill(undefined);
  const releasedSeqs = new Float64Array(RELEASED_MAX);
  /** An old one was not used for long: its size is read without touching it. */
  const releasedSizes = new Float64Array(RELEASED_MAX);
  let keptSize = 0;
  let releasedSize = 0;

  const sizeOf = ({ text }: KeptBody): number => text.length + ENTRY_OVERHEAD;
  const find = (seq: number): KeptBody | undefined =>
    kept.get(seq) ?? (releasedSeqs[placeOf(seq)] === seq ? released[placeOf(seq)] : undefined);

  /** Among those of ended tasks, in the one place that its number has. */
  function putReleased(seq: number, entry: KeptBody, size: number): void {
    if (size > RELEASED_SIZE_MAX) return;
    const place = placeOf(seq);
    releasedSize += size - (releasedSizes[place] as number);
    released[place] = entry;
    releasedSeqs[place] = seq;
    releasedSizes[place] = size;
  }

  function dropReleased(): void {
    released.fill(undefined);
    releasedSizes.fill(0);
    releasedSize = 0;
  }

  return {
    keep(seq, text, plain, shown = null) {
      const entry = { text, plain, shown };
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
      putReleased(seq, entry, size);
    },
    keepResult(seq, text) {
      const entry = { text, plain: null, shown: null };
      const size = sizeOf(entry);
      if (keptSize + releasedSize + size <= KEPT_BYTES_MAX) putReleased(seq, entry, size);
    },
    peek: find,
    async read(seq, hash = null) {
      const text = find(seq)?.text;
      if (text !== undefined) return text;
      const payload = await soundPayload(log, seq, hash);
      return payload === null ? null : decoder.decode(payload);
    },
  };
}

const NOTHING: LogRecord = { bytes: new Uint8Array(0) };

/** The payload of an event, if it is what was written there; null if it was pruned. */
async function soundPayload(log: Log, seq: Seq, hash: string | null): Promise<Uint8Array | null> {
  try {
    const record = await log.readRecord(seq);
    return checkedPayload(record ?? NOTHING, seq, hash);
  } catch (error) {
    if (error instanceof LogFailure && error.code === "corrupt") throw new DamagedBody(seq);
    throw error;
  }
}

/** The payload of an event, checked against the hash in it, or what is known of that. */
export function checkedPayload(record: LogRecord, seq: Seq, hash: string | null = null): Uint8Array | null {
  const { bytes, payload = null, payloadHash = null } = record;
  const written = bytes.length === 0 ? payloadHash : payloadHashOf(decodeEvent(bytes, seq).event);
  const expected = hash ?? written;
  if (expected !== null && (payload === null || hashOfPayload(payload) !== expected)) throw new DamagedBody(seq);
  return payload;
}
