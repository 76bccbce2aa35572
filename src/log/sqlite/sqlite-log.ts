/**
 * The log in one SQLite file: what Drover uses unless told otherwise.
 *
 * A data directory holds
 *
 *     drover.db               batches, payloads, the head record, checkpoints (WAL, synchronous FULL)
 *     snapshot-<seq>.bin   the last two snapshots
 *     signing-key.pem      signs heads and checkpoints; signing-key.pub.pem checks them
 *     owner.db, owner.pid  who writes here
 *
 * This side does as little as it can: it hands a batch, in bytes that both can see, to the thread that
 * owns the database (`thread.ts`), which hashes, stores and fsyncs while the event loop goes on.
 * One open may write; any number may read at the same time with `readOnly`, which takes no lock and
 * refuses everything that would change the log.
 */
import { resolve } from "node:path";
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { unhashedOf } from "../format/batch-builder.ts";
import { checkAppend, checkSeq, unpackRow } from "../format/batch-row.ts";
import { collectStored } from "../format/payload-blocks.ts";
import { type FetchPage, readBatches } from "../integrity/page.ts";
import { openKey, openVerifier, type Signer } from "../integrity/signing-key.ts";
import { checkpointSeal, checkSnapshotPlace, isReachable, SNAPSHOTS_KEPT } from "../integrity/snapshot-rules.ts";
import { afterPruning, verifyLog } from "../integrity/verify-log.ts";
import type {
  AppendResult,
  Batch,
  Checkpoint,
  Log,
  PruneReport,
  ReadBatch,
  Snapshot,
  SnapshotInput,
  UnhashedBatch,
  VerifyReport,
} from "../log.ts";
import { LogFailure, soleLead } from "../log.ts";
import { createRecordAsks } from "./record-asks.ts";
import { hashSnapshot, readSnapshot, sweepSnapshots, writeSnapshot } from "./snapshot-files.ts";
import { storageFailure } from "./storage-failure.ts";
import { type StoreThread, startStoreThread } from "./thread-client.ts";
import { beside, findProblems, type Session } from "./verify.ts";

/** Of a small page: unpacking it keeps nobody waiting. */
const VERIFY_PAGE_BYTES: number = 128 * 1024;

export type SqliteLogOptions = {
  readonly directory: string;
  /** Takes no lock and changes nothing. */
  readonly readOnly?: boolean;
  /** The most the database may grow to; then an append fails with `disk-full`. Unlimited by default. */
  readonly maxBytes?: number;
};

export async function openSqliteLog({ directory, readOnly = false, maxBytes }: SqliteLogOptions): Promise<Log> {
  invariant(directory !== "", "a log has a data directory");
  invariant(maxBytes === undefined || maxBytes > 0, `maxBytes is a number above 0, got ${maxBytes}`);
  const home = resolve(directory);
  const thread = await startStoreThread({ directory: home, readOnly, maxBytes: maxBytes ?? null });
  try {
    return createSqliteLog({ directory: home, readOnly, thread });
  } catch (error) {
    await thread.close();
    throw error;
  }
}

/** The log over a database that is open already, be it in another thread or in this one. */
export function createSqliteLog(ground: Omit<Session, "signer">): Log {
  const { directory, readOnly } = ground;
  try {
    return createHandle({ ...ground, signer: signerOf(directory, readOnly) });
  } catch (error) {
    throw storageFailure(error, { doing: `open the signing key in ${directory}` });
  }
}

/** Batches, and after each how many events have been read by now. */
async function* told(
  batches: AsyncIterable<ReadBatch>,
  total: number,
  tell: (done: number, total: number) => void = () => {},
): AsyncGenerator<ReadBatch> {
  let done = 0;
  for await (const batch of batches) {
    yield batch;
    done += batch.hashes.length;
    tell(done, total);
  }
}

function createHandle(session: Session): Log {
  const { thread } = session;
  const inTurn = createTurns();
  const writable = (): Session => {
    if (session.readOnly) throw readOnlyFailure(session.directory);
    return session;
  };
  const state = () => thread.ask("state", undefined);
  const read: Log["read"] = (after, { payloads = true, bytesMax } = {}) =>
    readBatches(pagesOf(thread, payloads), after, bytesMax);

  const close = (): Promise<void> => inTurn(() => thread.close());
  return {
    directory: session.directory,
    append: async (...call) => append(writable(), call),
    read,
    readRecord: createRecordAsks(thread),
    head: async () => (await state()).head,
    bytes: () => thread.ask("bytes", undefined),
    saveSnapshot: (snapshot) => inTurn(async () => saveSnapshot(writable(), snapshot)),
    loadSnapshot: (before) => loadSnapshot(session, before),
    checkpoints: async () => (await state()).checkpoints,
    acquireLead: async () => soleLead(await writable().thread.ask("raiseEpoch", undefined)),
    prune: (before, keep) => inTurn(async () => prune(writable(), before, keep)),
    sign: async (rule) => {
      await writable().thread.ask("sign", rule);
    },
    verify: (options) => beside(session, (reader) => verify(reader, options)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function verify(reader: Session, { expect, onProgress }: VerifyOptions = {}): Promise<VerifyReport> {
  const found = await findProblems(reader);
  const fetch = pagesOf(reader.thread, true);
  return afterPruning(async () => {
    const seen = await reader.thread.ask("state", undefined);
    const batches = readBatches((cursor) => fetch(cursor, VERIFY_PAGE_BYTES), seen.base.seq);
    const heard = told(batches, seen.head.seq - seen.base.seq, onProgress);
    return verifyLog({ ...seen, batches: heard, verifier: reader.signer, expect, found });
  });
}
type VerifyOptions = Parameters<Log["verify"]>[0];

/** Snapshots and prunings, one at a time. */
function createTurns() {
  let last: Promise<unknown> = Promise.resolve();
  return function inTurn<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const turn = last.then(work);
    last = turn.catch(() => {}); // Its own caller hears of a failure; the next in line goes on.
    return turn;
  };
}

async function append({ thread }: Session, call: Parameters<Log["append"]>): Promise<AppendResult> {
  checkAppend(...call);
  const [after, epoch, batch, batchId] = call;
  const { packed, moved } = packedForThread(batch);
  const input = { after, epoch, batchId, ...packed, sign: batch.sign ?? null };
  try {
    return await thread.ask("append", input, moved);
  } catch (error) {
    if (!thread.isLostAnswer(error)) throw error;
    return { type: "unknown", cause: "the log's thread ended before it answered" };
  }
}

/** A batch in bytes that the log's thread can be given, and those of them that move there. */
export function packedForThread(batch: Batch): { packed: UnhashedBatch; moved: ArrayBuffer[] } {
  const { count, bytes, payloads, deferred } = unhashedOf(batch);
  const isLeftAlone = batch.unhashed !== undefined;
  const sent = [bytes, payloads].map(isLeftAlone ? readable : copyOf) as [Uint8Array, Uint8Array];
  const holes = new Uint32Array(deferred);
  const moved = [...sent, holes].map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer);
  return { packed: { count, bytes: sent[0], payloads: sent[1], deferred: holes }, moved };
}

/** Bytes that the log's thread can be given: shared ones as they are, others as a copy of just what they show. */
const readable = (bytes: Uint8Array): Uint8Array => (bytes.buffer instanceof SharedArrayBuffer ? bytes : copyOf(bytes));

function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return copy;
}

function pagesOf(thread: StoreThread, payloads: boolean): FetchPage {
  return async (cursor, bytesMax) => {
    const { rows, blocks, ...page } = await thread.ask("page", { cursor, payloads, bytesMax });
    const bySeq = collectStored(blocks);
    return { ...page, batches: rows.map((row) => unpackRow(row, cursor.after, bySeq)) };
  };
}

async function saveSnapshot(session: Session, { seq, hash, chunks }: SnapshotInput): Promise<Checkpoint> {
  const { directory, thread, signer } = session;
  checkSeq(seq);
  const { checkpoints } = await thread.ask("state", undefined);
  checkSnapshotPlace({ seq, hash }, await thread.ask("hashAt", seq), checkpoints);
  const snapshotHash = await writeSnapshot(directory, seq, chunks);
  const checkpoint = checkpointSeal.sign(signer, { seq, hash, snapshotHash });
  await thread.ask("addCheckpoint", checkpoint);
  const seqs = [...checkpoints.map((earlier) => earlier.seq).filter((earlier) => earlier !== seq), seq];
  await sweepSnapshots(directory, seqs.slice(-SNAPSHOTS_KEPT));
  return checkpoint;
}

async function loadSnapshot(session: Session, before?: Seq): Promise<Snapshot | null> {
  const checkpoint = await wholeSnapshot(session, before);
  if (checkpoint === null) return null;
  const { seq, hash } = checkpoint;
  return { seq, hash, chunks: readSnapshot(session.directory, seq) };
}

/** The newest checkpoint whose snapshot is there, signed and undamaged. */
async function wholeSnapshot({ directory, thread, signer }: Session, before?: Seq): Promise<Checkpoint | null> {
  const { head, base, checkpoints } = await thread.ask("state", undefined);
  for (const checkpoint of checkpoints.toReversed()) {
    if (before !== undefined && checkpoint.seq >= before) continue;
    if (!checkpointSeal.holds(signer, checkpoint)) continue;
    const found = await thread.ask("hashAt", checkpoint.seq);
    if (!isReachable(checkpoint, { head, base, found })) return null;
    if ((await hashSnapshot(directory, checkpoint.seq)) === checkpoint.snapshotHash) return checkpoint;
  }
  return null;
}

async function prune(session: Session, before: Seq, keep: Iterable<Seq>): Promise<PruneReport> {
  checkSeq(before);
  const { thread } = session;
  const newest = await wholeSnapshot(session);
  const { base } = await thread.ask("state", undefined);
  // What is pruned already stays so: a list of kept payloads is signed for a log that was pruned at least as far.
  const limit = seq(Math.max(base.seq, Math.min(before, newest?.seq ?? 0)));
  await thread.ask("beginPrune", { limit, keep: Float64Array.from(keep) });
  let droppedBatches = 0;
  for (;;) {
    const step = await thread.ask("stepPrune", undefined);
    droppedBatches += step.droppedBatches;
    if (step.isDone) return { base: step.base, droppedBatches };
  }
}

/** A reader may not be allowed to read the private key, and needs only the public one. */
function signerOf(directory: string, readOnly: boolean): Signer {
  if (!readOnly) return openKey(directory).signer;
  const refuse = (): never => {
    throw readOnlyFailure(directory);
  };
  return { ...openVerifier(directory), sign: refuse };
}

const readOnlyFailure = (directory: string): LogFailure =>
  new LogFailure("read-only", `the log in ${directory} was opened with readOnly; open it for writing to change it`);
