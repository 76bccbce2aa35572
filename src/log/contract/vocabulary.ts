/**
 * The words in which the log's contract is told: what a driver brings, and how a story fills, reads and
 * compares a log. Events are named after their numbers, so that a wrong order reads wrong.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { instant, type Seq, seq } from "../../core/base/index.ts";
import type { Event } from "../../core/model/index.ts";
import { createGathering, gather, gatheredBatch } from "../format/batch-builder.ts";
import type { Batch, Head, Log, LogFailureCode, LogRecord, ReadBatch } from "../log.ts";
import { LogFailure } from "../log.ts";

type Subject = {
  readonly log: Log;
  /** Lets go of the log (close, or crash) and opens the same data again. */
  reopen(): Promise<Log>;
  damageSnapshot(at: Seq): Promise<void>;
  dispose(): Promise<void>;
};

export type OpenSubject = () => Promise<Subject>;
/** What each claims, and how a driver shows it. */
export type Stories = Readonly<Record<string, (subject: Subject) => Promise<void>>>;

export const text = (content: string): Uint8Array => new TextEncoder().encode(content);

/** A batch of small events named after their numbers; every third has a payload. */
export function batchOf(first: number, count: number): Batch {
  const records = Array.from({ length: count }, (_, index): LogRecord => {
    const number = first + index;
    const bytes = text(`event ${number}`);
    return number % 3 === 0 ? { bytes, payload: text(`payload ${number}`) } : { bytes };
  });
  return { firstSeq: seq(first), records };
}

/** Appends batches of these sizes at the head; answers the new head. */
export async function fill(log: Log, sizes: readonly number[]): Promise<Head> {
  let head = await log.head();
  for (const size of sizes) {
    const batch = batchOf(head.seq + 1, size);
    const result = await log.append(head.seq, head.epoch, batch, `batch-${batch.firstSeq}`);
    assert.equal(result.type, "appended");
    if (result.type === "appended") head = result.head;
  }
  return head;
}

const HOUR_MS = 3_600_000;

/** Appends so many batches of one real event each, an hour apart: more than may be unsigned. */
export async function fillHours(log: Log, count: number): Promise<Head> {
  let head = await log.head();
  for (let left = count; left > 0; left--) {
    const gathering = createGathering();
    const next = seq(head.seq + 1);
    gather(gathering, next, { kind: "gate-opened", at: instant(next * HOUR_MS), gate: "g" } as Event, null, undefined);
    const result = await log.append(head.seq, head.epoch, gatheredBatch(gathering, next), `hour-${next}`);
    assert.equal(result.type, "appended");
    if (result.type === "appended") head = result.head;
  }
  return head;
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** One field of each. */
export const each = <Item, Key extends keyof Item>(items: readonly Item[], key: Key): Item[Key][] =>
  items.map((item) => item[key]);

export const eventsOf = (batches: readonly ReadBatch[]): string[] =>
  batches.flatMap(({ records }) => records.map(({ bytes }) => Buffer.from(bytes).toString()));

export const namesOf = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => `event ${first + index}`);

export const failsWith =
  (code: LogFailureCode, at?: number) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof LogFailure, `expected a LogFailure, got ${error}`);
    assert.equal(error.code, code, error.message);
    if (at !== undefined) assert.equal(error.seq, at, error.message);
    return true;
  };

export const isBug = { name: "BrokenInvariant" };

/** The chain after an event of a log that was filled with batches of these sizes, without any of our code. */
export function referenceHash(sizes: readonly number[], upTo: number): string {
  let prior = Buffer.alloc(32);
  const link = (content: string): void => {
    prior = createHash("sha256").update(prior).update(content).digest();
  };
  let number = 0;
  for (const size of sizes) {
    if (number === upTo) break;
    link(`drover batch 1 0 batch-${number + 1}`);
    for (let left = size; left > 0 && number < upTo; left--) link(`event ${++number}`);
  }
  return prior.toString("hex");
}

export async function payloadAt(log: Log, at: number): Promise<string | null> {
  const record = await log.readRecord(seq(at));
  return record?.payload === undefined ? null : Buffer.from(record.payload).toString();
}

export async function save(
  log: Log,
  { seq: at, hash }: { seq: Seq; hash: string },
  content = `state ${at}`,
): Promise<void> {
  await log.saveSnapshot({ seq: at, hash, chunks: [text(content.slice(0, 3)), text(content.slice(3))] });
}

export async function loaded(log: Log, before?: Seq): Promise<string | null> {
  const snapshot = await log.loadSnapshot(before);
  return snapshot === null ? null : `${snapshot.seq}: ${Buffer.concat(await collect(snapshot.chunks))}`;
}
