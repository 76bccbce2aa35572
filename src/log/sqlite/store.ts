/**
 * The log's database: what the sqlite thread does for the log, one synchronous step at a time.
 *
 * One row per batch, and the one head record changed in the same transaction. WAL with `synchronous =
 * FULL`: when COMMIT returns, the batch has been fsynced. Big columns come last, so that reading a row's
 * end does not walk its blocks.
 *
 * An I/O error during an append leaves it unknown what reached the disk (an fsync that failed once may
 * succeed the next time without having written). From then on every append is refused until the log is
 * opened again and the disk itself has been read. A full disk is different: SQLite rolled back, nothing
 * was stored, and the next append may well succeed.
 */
import { invariant, type Seq } from "../../core/base/index.ts";
import { fillDeferredHashes } from "../format/batch-builder.ts";
import { cutBlocks, type PayloadBlock } from "../format/payload-blocks.ts";
import { type AppendAsk, planAppend } from "../integrity/compare-and-set.ts";
import type { KeptList } from "../integrity/kept-list.ts";
import { type Cursor, hashAt, type RowPage, readPage } from "../integrity/page.ts";
import { DEFAULT_SIGN_RULE, headSeal, type SignedHead } from "../integrity/signed-head.ts";
import type { Signer } from "../integrity/signing-key.ts";
import type { SealedBatch } from "../journal/journal.ts";
import {
  type Anchor,
  type AppendResult,
  type Checkpoint,
  type DeferredHashes,
  type Head,
  LogFailure,
  type SignRule,
  type VerifyProblem,
} from "../log.ts";
import { type Database, type DatabaseOptions, openDatabase } from "./database.ts";
import { checkKept, type KeptCheck } from "./kept-check.ts";
import { createPruning, type PruneAsk, type PruneStep } from "./prune.ts";
import { createRecordReader, type PackedRecords } from "./record-reader.ts";
import { createReload } from "./reload.ts";
import { type HashedBatch, hashesOf, type SealInput, type StoredBatch, seal, storeSealed } from "./sealed-batches.ts";
import type { KeptEntry, KeptRange } from "./signed-tables.ts";

/** The packed records and the packed payloads may be the caller's own: nothing is kept of them. */
type AppendInput = AppendAsk & {
  readonly payloads: Uint8Array;
  readonly deferred: DeferredHashes;
  readonly sign: SignRule | null;
};

type PageInput = { readonly cursor: Cursor; readonly payloads: boolean; readonly bytesMax?: number | undefined };
export type StoredPage = RowPage & { readonly blocks: readonly PayloadBlock[] };
type StoreState = {
  readonly head: Head;
  readonly base: Anchor;
  readonly checkpoints: readonly Checkpoint[];
  readonly signed: SignedHead | null;
  /** The epoch of the last batch; 0 if there is none. */
  readonly batchEpoch: number;
};

/** Each takes one argument and gives one answer, both plain enough to be posted between threads. */
export type SqliteStore = {
  append(input: AppendInput): AppendResult;
  page(input: PageInput): StoredPage;
  records(wanted: readonly Seq[]): PackedRecords;
  state(): StoreState;
  bytes(): number;
  hashAt(at: Seq): string | null;
  addCheckpoint(checkpoint: Checkpoint): null;
  sign(rule: SignRule): null;
  raiseEpoch(): number;
  beginPrune(ask: PruneAsk): null;
  stepPrune(): PruneStep;
  examine(): readonly VerifyProblem[];
  keptList(): KeptList | null;
  checkKept(range: KeptRange): KeptCheck;
  seal(input: SealInput): HashedBatch;
  hashesOf(entry: SealedBatch): Uint8Array;
  store(batches: readonly StoredBatch[]): Head;
  blocks(range: { readonly from: Seq; readonly to: Seq; readonly limit: number }): readonly PayloadBlock[];
  beginAnew(base: Anchor): null;
  addKept(kept: readonly KeptEntry[]): null;
  addBlock(block: PayloadBlock): null;
  endKept(): number;
};

export function openSqliteStore(options: DatabaseOptions): SqliteStore & { close(): void } {
  const database = openDatabase(options);
  const { signer } = database;
  const signing = createSigning(database, signer);
  const reader = createRecordReader(database);
  const pruning = createPruning(database, signer);
  let broken: LogFailure | null = null;

  /** One that failed leaves it unknown what was signed; one whose fsync failed, what was stored. */
  function storing<Answer>(doing: string, work: () => Answer): Answer {
    if (broken !== null) throw broken;
    try {
      return database.write(doing, work);
    } catch (error) {
      signing.forget();
      if (error instanceof LogFailure && error.code === "io") broken = error;
      throw error;
    }
  }
  const append = ({ sign, ...input }: AppendInput): AppendResult =>
    storing("append a batch", () => {
      const result = storeBatch(database, input);
      if (result.type === "appended") signing.onAppended(result.head, sign);
      return result;
    });
  /** Another process may prune what this one only reads. */
  function records(wanted: readonly Seq[]): PackedRecords {
    if (options.readOnly) reader.forget();
    return reader.records(wanted);
  }
  function close(): void {
    try {
      if (!options.readOnly && broken === null) signing.close();
    } finally {
      database.close();
    }
  }
  return {
    append,
    page: (input) => database.look("read", () => readStored(database, input)),
    records: (wanted) => database.look("read events", () => records(wanted)),
    state: () =>
      database.look("read the head", () => {
        const { head, base, endBefore } = database.source();
        const batchEpoch = endBefore(null)?.epoch ?? 0;
        return { head, base, checkpoints: database.checkpoints(), signed: database.signedHead(), batchEpoch };
      }),
    bytes: () => database.look("measure the log", () => database.bytes()),
    hashAt: (at) => database.look("read a hash", () => hashAt(database.source(), at)),
    addCheckpoint: (checkpoint) => database.write("store a checkpoint", () => database.putCheckpoint(checkpoint)),
    sign: (rule) => signing.sign(rule),
    raiseEpoch: () => database.write("raise the epoch", () => raiseEpoch(database, signing)),
    beginPrune: pruning.beginPrune,
    stepPrune: () => {
      reader.forget();
      return pruning.stepPrune();
    },
    examine: () => database.examine(),
    keptList: () => database.look("read the list of kept payloads", () => database.keptList()),
    checkKept: (range) => database.look("read kept payloads", () => checkKept(database, range)),
    seal,
    hashesOf,
    store: (batches) =>
      storing("store batches", () => {
        const head = storeSealed(database, batches);
        signing.onStored(head, batches.findLast(({ sign }) => sign !== null)?.sign ?? null);
        return head;
      }),
    blocks: (range) => database.look("read payloads", () => database.blocks(range)),
    ...createReload(database, signer, (head) => {
      signing.onRaised(head);
      signing.forget();
    }),
    close,
  };
}

function storeBatch(database: Database, { payloads, deferred, ...input }: Omit<AppendInput, "sign">): AppendResult {
  fillDeferredHashes({ bytes: input.bytes, payloads, deferred });
  const plan = planAppend(database.source(), input);
  if (plan.type !== "store") return plan;
  database.putRow(plan.row);
  for (const block of cutBlocks(payloads)) database.putBlock(block);
  database.putHead(plan.head);
  return { type: "appended", head: plan.head };
}

function readStored(database: Database, { cursor, payloads, bytesMax }: PageInput): StoredPage {
  const page = readPage(database.source(), cursor, bytesMax);
  const first = page.rows[0];
  const last = page.rows.at(-1);
  const blocks = payloads && first && last ? database.blocks({ from: first.firstSeq, to: last.lastSeq }) : [];
  return { ...page, blocks };
}

function raiseEpoch(database: Database, signing: ReturnType<typeof createSigning>): number {
  const { head } = database.source();
  const raised = { ...head, epoch: head.epoch + 1 };
  invariant(Number.isSafeInteger(raised.epoch), "there is a next epoch");
  database.putHead(raised);
  signing.onRaised(raised);
  return raised.epoch;
}

/**
 * When the head is signed: with the first batch of a life, when enough is unsigned, when a caller asks, and at the end.
 *
 * A signature is written in the transaction of the batch it is for, so it costs no fsync of its own, and a log never
 * has a batch behind its close that is not signed. It takes some 50 µs, once in thousands of events, in the thread
 * of the log. A replica signs with every transaction, of which it makes some twenty a second at most: batches that come
 * from elsewhere bring no rule.
 */
function createSigning(database: Database, signer: Signer) {
  let rule = database.look("read the signed head", () => database.signedHead())?.rule ?? DEFAULT_SIGN_RULE;
  /** What this life signed last. */
  let last: SignedHead | null = null;
  /** One that only looked leaves all as it found it. */
  let hasWritten = false;

  function put(head: Head, isClosed: boolean): SignedHead {
    hasWritten = true;
    const signed = headSeal.sign(signer, { ...head, rule, isClosed });
    database.putSignedHead(signed);
    return signed;
  }
  function signNow(isClosed: boolean): SignedHead {
    return database.write("sign the head", () => put(database.source().head, isClosed));
  }
  return {
    /**
     * In the transaction of a batch. With a rule, the head is signed now and under that rule from now on: so is what is
     * due by the clock (engine/writer/head-signing.ts). What is due by the count of events is decided here.
     */
    onAppended: (head: Head, given: SignRule | null): void => {
      rule = given ?? rule;
      if (given !== null || last === null || head.seq - last.seq >= rule.events) last = put(head, false);
    },
    /** In the transaction of batches that were sealed before, by whoever leads or in another log. */
    onStored: (head: Head, given: SignRule | null): void => {
      rule = given ?? rule;
      last = put(head, false);
    },
    /** In the transaction that raised the epoch. */
    onRaised: (head: Head): void => void put(head, false),
    /** The transaction was undone: what was signed last is to be looked up again. */
    forget: (): void => {
      last = null;
    },
    sign: (given: SignRule): null => {
      rule = given;
      last = signNow(false);
      return null;
    },
    /** Signs the head as the end of this life. */
    close: (): void => {
      if (!hasWritten) return;
      try {
        signNow(true);
      } catch (error) {
        // A disk that is full, or gone, has been told of. The log is as after a crash: its last events are unsigned.
        if (!(error instanceof LogFailure)) throw error;
      }
    },
  };
}
