/**
 * The log in memory, for tests and the simulator.
 *
 * What is durable lives in a `MemoryStore`; a log is only a handle on it. A test that "crashes" a node
 * drops the handle and opens another on the same store, and several nodes may share one store as they
 * would share one database. It stores the same rows as the other drivers and checks them the same way,
 * so a damaged store is noticed here too.
 *
 * There is no timer, no I/O and no chance in it: an append is applied in the very call, answers come as
 * microtasks, checkpoints are signed with a fixed key. Two runs are equal to the byte.
 */
import { createHash } from "node:crypto";
import { type Seq, seq } from "../../core/base/index.ts";
import { packedOf } from "../format/batch-builder.ts";
import { type BatchRow, checkAppend, checkSeq, recordBytes, unpackRow } from "../format/batch-row.ts";
import { GENESIS, toHex } from "../format/chain.ts";
import { collectPayloads } from "../format/payload-blocks.ts";
import { planAppend } from "../integrity/compare-and-set.ts";
import type { FetchPage, Page, RowPage, RowSource } from "../integrity/page.ts";
import { hashAt, readBatches, readPage } from "../integrity/page.ts";
import { createMemorySigner } from "../integrity/signing-key.ts";
import {
  checkpointSeal,
  checkSnapshotPlace,
  isReachable,
  SNAPSHOTS_KEPT,
  snapshotProblem,
} from "../integrity/snapshot-rules.ts";
import { afterPruning, verifyLog } from "../integrity/verify-log.ts";
import {
  type Anchor,
  type AppendResult,
  type Checkpoint,
  closedFailure,
  type Head,
  type Lead,
  type Log,
  type LogRecord,
  type PruneReport,
  type Snapshot,
  type SnapshotInput,
  soleLead,
  type VerifyProblem,
} from "../log.ts";

/** What survives a crash. */
export type MemoryStore = {
  head: Head;
  base: Anchor;
  rows: BatchRow[];
  readonly payloads: Map<Seq, Uint8Array>;
  checkpoints: Checkpoint[];
  readonly snapshots: Map<Seq, readonly Uint8Array[]>;
};

export function createMemoryStore(): MemoryStore {
  return {
    head: { ...GENESIS, epoch: 0, batchId: "" },
    base: GENESIS,
    rows: [],
    payloads: new Map(),
    checkpoints: [],
    snapshots: new Map(),
  };
}

/** A log in memory. */
export function createMemoryLog({ store = createMemoryStore() }: { readonly store?: MemoryStore } = {}): Log {
  let isClosed = false;
  /** Everything goes through here: a closed handle does nothing, and what throws rejects. */
  async function whileOpen<Answer>(work: () => Answer | Promise<Answer>): Promise<Answer> {
    if (isClosed) throw closedFailure();
    return work();
  }
  const pagesOf = (withPayloads: boolean): FetchPage => {
    return (cursor, bytesMax) =>
      whileOpen(() => pageOf(store, readPage(sourceOf(store), cursor, bytesMax), cursor.after, withPayloads));
  };
  const read: Log["read"] = (after, { payloads = true, bytesMax } = {}) =>
    readBatches(pagesOf(payloads), after, bytesMax);
  const close = async () => {
    isClosed = true;
  };
  return {
    directory: null,
    append: (...call) => whileOpen(() => append(store, call)),
    read,
    readRecord: (wanted) => whileOpen(() => readRecord(store, wanted)),
    head: () => whileOpen(() => store.head),
    bytes: () => whileOpen(() => bytesOf(store)),
    saveSnapshot: (snapshot) => whileOpen(() => saveSnapshot(store, snapshot)),
    loadSnapshot: (before) => whileOpen(() => loadSnapshot(store, before)),
    checkpoints: () => whileOpen(() => [...store.checkpoints]),
    acquireLead: () => whileOpen(() => acquireLead(store)),
    prune: (before, keep) => whileOpen(() => prune(store, before, new Set(keep))),
    verify: ({ expect } = {}) =>
      whileOpen(() =>
        afterPruning(async () => {
          const { head, base, checkpoints } = store;
          const seen = { head, base, checkpoints, batchEpoch: 0, signed: undefined, found: damagedSnapshots(store) };
          return verifyLog({ ...seen, batches: read(base.seq), verifier: signer, expect });
        }),
      ),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function bytesOf({ rows, payloads }: MemoryStore): number {
  let bytes = 0;
  for (const row of rows) bytes += row.bytes.length;
  for (const payload of payloads.values()) bytes += payload.length;
  return bytes;
}

const signer = createMemorySigner();

function append(store: MemoryStore, call: Parameters<Log["append"]>): AppendResult {
  const plan = planned(store, call);
  if (plan.type !== "store") return plan;
  keep(store, plan);
  return { type: "appended", head: plan.head };
}

/** What becomes of an append: the row to store, if it may be. */
export function planned(store: MemoryStore, call: Parameters<Log["append"]>): Exclude<Plan, { type: "store" }> | Kept {
  checkAppend(...call);
  const [after, epoch, batch, batchId] = call;
  const { count, bytes, payloads } = packedOf(batch);
  const plan = planAppend(sourceOf(store), { after, epoch, batchId, count, bytes: Uint8Array.from(bytes) });
  return plan.type === "store" ? { ...plan, payloads: Uint8Array.from(payloads) } : plan;
}
type Plan = ReturnType<typeof planAppend>;
type Kept = Extract<Plan, { type: "store" }> & { readonly payloads: Uint8Array };

/** Stores a row behind the last one. */
export function keep(store: MemoryStore, { row, head, payloads }: Omit<Kept, "type">): void {
  store.rows.push(row);
  for (const [at, payload] of collectPayloads([{ firstSeq: row.firstSeq, bytes: payloads }]))
    store.payloads.set(at, payload);
  store.head = head;
}

function acquireLead(store: MemoryStore): Lead {
  const epoch = store.head.epoch + 1;
  store.head = { ...store.head, epoch };
  return soleLead(epoch);
}

function sourceOf({ head, base, rows }: MemoryStore): RowSource {
  return {
    head,
    base,
    *rowsFrom(from) {
      const start = Math.max(0, rowsBefore(rows, seq(from + 1)) - 1);
      for (let index = start; index < rows.length; index++) yield rows[index] as BatchRow;
    },
    endBefore: (first) => {
      const row = rows[(first === null ? rows.length : rowsBefore(rows, first)) - 1];
      return row === undefined
        ? null
        : { seq: row.lastSeq, hash: row.postHash, batchId: row.batchId, epoch: row.epoch };
    },
  };
}

/** How many rows begin before `first`; they are in order. */
function rowsBefore(rows: readonly BatchRow[], first: Seq): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as BatchRow).firstSeq < first) low = middle + 1;
    else high = middle;
  }
  return low;
}

function pageOf(store: MemoryStore, { rows, ...page }: RowPage, after: Seq, withPayloads: boolean): Page {
  return { ...page, batches: rows.map((row) => unpackRow(row, after, withPayloads ? store.payloads : undefined)) };
}

function readRecord(store: MemoryStore, wanted: Seq): LogRecord | null {
  checkSeq(wanted);
  const payload = store.payloads.get(wanted);
  const row = store.rows[rowsBefore(store.rows, seq(wanted + 1)) - 1];
  const isStored = row !== undefined && wanted <= row.lastSeq;
  if (!isStored && payload === undefined) return null;
  const bytes = isStored ? recordBytes(row, wanted) : new Uint8Array(0);
  return payload === undefined ? { bytes } : { bytes, payload };
}

async function saveSnapshot(store: MemoryStore, { seq: at, hash, chunks }: SnapshotInput): Promise<Checkpoint> {
  checkSnapshotPlace({ seq: at, hash }, hashAt(sourceOf(store), at), store.checkpoints);
  const kept: Uint8Array[] = [];
  for await (const chunk of chunks) kept.push(Uint8Array.from(chunk));
  const checkpoint = checkpointSeal.sign(signer, { seq: at, hash, snapshotHash: hashOfChunks(kept) });
  store.snapshots.set(at, kept);
  store.checkpoints = [...store.checkpoints.filter(({ seq }) => seq !== at), checkpoint];
  const files = [...store.snapshots.keys()].sort((left, right) => left - right);
  for (const old of files.slice(0, -SNAPSHOTS_KEPT)) store.snapshots.delete(old);
  return checkpoint;
}

function loadSnapshot(store: MemoryStore, before?: Seq): Snapshot | null {
  const checkpoint = wholeSnapshot(store, before);
  if (checkpoint === undefined) return null;
  const chunks = store.snapshots.get(checkpoint.seq) ?? [];
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  return { seq: checkpoint.seq, hash: checkpoint.hash, chunks: stream() };
}

/** The newest checkpoint whose snapshot is there, signed and undamaged. */
function wholeSnapshot(store: MemoryStore, before = Number.POSITIVE_INFINITY): Checkpoint | undefined {
  const source = sourceOf(store);
  return store.checkpoints.findLast((checkpoint) => {
    const chunks = store.snapshots.get(checkpoint.seq);
    if (chunks === undefined || checkpoint.seq >= before || !checkpointSeal.holds(signer, checkpoint)) return false;
    if (!isReachable(checkpoint, { ...source, found: hashAt(source, checkpoint.seq) })) return false;
    return hashOfChunks(chunks) === checkpoint.snapshotHash;
  });
}

function damagedSnapshots({ checkpoints, snapshots }: MemoryStore): VerifyProblem[] {
  return checkpoints.slice(-SNAPSHOTS_KEPT).flatMap((checkpoint) => {
    const chunks = snapshots.get(checkpoint.seq);
    return snapshotProblem(checkpoint, chunks === undefined ? null : hashOfChunks(chunks)) ?? [];
  });
}

function hashOfChunks(chunks: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

function prune(store: MemoryStore, before: Seq, keep: ReadonlySet<Seq>): PruneReport {
  checkSeq(before);
  const limit = Math.min(before, wholeSnapshot(store)?.seq ?? 0);
  const dropped = store.rows.filter(({ lastSeq }) => lastSeq <= limit);
  const last = dropped.at(-1);
  if (last !== undefined) {
    store.base = { seq: last.lastSeq, hash: toHex(last.postHash) };
    store.rows = store.rows.slice(dropped.length);
    store.checkpoints = store.checkpoints.filter(({ seq }) => seq >= store.base.seq);
  }
  for (const at of store.payloads.keys()) if (at <= store.base.seq && !keep.has(at)) store.payloads.delete(at);
  return { base: store.base, droppedBatches: dropped.length };
}
