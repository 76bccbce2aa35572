/**
 * The log: a durable order of bytes, and what every driver of it promises.
 *
 * A record is an encoded event and, lying beside it, the payload it speaks of. The log does not know
 * what an event is. It numbers records from 1 without gaps, links each one to the one before
 * (`format/chain.ts`), and hands them back in that order for ever, or until they are pruned.
 *
 * **One head record** `{seq, hash, epoch, batchId}` is compared and set in the same transaction as a
 * batch. Nothing ever depends on a key being absent, so a stale writer is refused on a pruned log as on
 * a young one. An append has three answers:
 *
 * - `appended`: the batch is on disk; it survives a crash of this machine's power.
 * - `conflict`: somebody else wrote, or leads with a higher epoch. Nothing was stored. The caller was
 *   deposed: it throws its state away and rebuilds.
 * - `unknown`: the answer was lost. The caller repeats the append with the same `batchId`; if it had
 *   landed, the head still carries that id and the answer is `appended`, once.
 *
 * What cannot work (disk full, read-only, damaged, closed) rejects with a `LogFailure`, and nothing is
 * half-applied. What no correct caller asks for (an empty batch, a gap in the numbers) rejects with a
 * `BrokenInvariant`. Bytes are copied before `append` returns its promise: the caller may reuse its buffers at once,
 * unless it gave an `unhashed` batch. Bytes that are read belong to the log: look, do not write.
 *
 * **Reading checks.** Every batch read is hashed again and compared; a damaged, missing or reordered
 * record stops the reader with code `corrupt` and the seq at which the chain breaks. Nothing repairs by
 * itself. What the chain cannot see is a log cut off cleanly at its end: for that, compare it with an
 * anchor kept elsewhere, `verify({expect})`. Nor that all of it was hashed again: for that its head is signed
 * (`integrity/signed-head.ts`). The bytes beside are not in the chain; the event holds their hash, and the caller
 * checks it.
 *
 * **Snapshots** let a reader start late and let `prune` forget the past. Each is named by a signed
 * checkpoint (`integrity/snapshot-rules.ts`). The last two are kept: if the newest is damaged the one before serves,
 * provided the caller pruned no further than that one's seq.
 */
import type { Duration, Seq } from "../core/base/index.ts";

export type LogRecord = {
  /** The encoded event; hashed into the chain. Empty if the event was pruned and only `payload` was kept. */
  readonly bytes: Uint8Array;
  /** The payload of the event. Its hash is inside `bytes`. */
  readonly payload?: Uint8Array;
  /** That hash, where the event was pruned and only `payload` was kept. */
  readonly payloadHash?: string;
};

export type Batch = {
  readonly firstSeq: Seq;
  readonly records: readonly LogRecord[];
  /** The same records as they are stored, where the caller has them so: a driver of blocks need not pack them again. */
  readonly packed?: PackedBatch;
  /**
   * The same without some hashes, for a driver that fills them in where that holds nobody up: see
   * `format/batch-builder.ts`.
   */
  readonly unhashed?: UnhashedBatch;
  /**
   * Whether the head is to be signed with this batch, and by which rule from now on. The engine asks for it by the time
   * of the rule; a log that signs counts the events of the rule by itself.
   */
  readonly sign?: SignRule;
};

/** `bytes` as `format/batch-row.ts` frames records, `payloads` as `format/payload-blocks.ts` frames them. */
export type PackedBatch = { readonly count: number; readonly bytes: Uint8Array; readonly payloads: Uint8Array };

/**
 * A packed batch, and where hashes are still to be written into its `bytes` before anything else is done with them.
 * Unlike other bytes these are left alone by the caller until the append has been answered: where they are shared
 * (a SharedArrayBuffer), a driver's own thread may read them as they are. What else a batch of the engine shows,
 * `packed` and `records`, lies in the same memory.
 */
export type UnhashedBatch = PackedBatch & { readonly deferred: DeferredHashes };

/** Pairs: where in `bytes` the hash of a payload goes, and where in `payloads` that payload's entry begins. */
export type DeferredHashes = readonly number[] | Uint32Array;

export type ReadBatch = Batch & {
  readonly epoch: number;
  readonly batchId: string;
  /** The hash of the event before `firstSeq`: 32 bytes. */
  readonly priorHash: Uint8Array;
  /** One post hash for each record: 32 bytes each. */
  readonly hashes: readonly Uint8Array[];
};

/** A point in the chain: the hash, in 64 hex digits, after the event with this number. */
export type Anchor = { readonly seq: Seq; readonly hash: string };

/** A signed word that the chain had this hash at this event, and that this snapshot is the state there. */
export type Checkpoint = Anchor & {
  /** sha256 of the snapshot's bytes, in hex. */
  readonly snapshotHash: string;
  /** ed25519 over seq, hash and snapshotHash, in hex. */
  readonly signature: string;
};

/** How much may be unsigned: so many events, and so many milliseconds from the first of them to the last. */
export type SignRule = { readonly events: number; readonly time: number };

export type Head = Anchor & {
  readonly epoch: number;
  /** The batch that was appended last; empty in an empty log. */
  readonly batchId: string;
};

export type Appended = { readonly type: "appended"; readonly head: Head };
export type Conflict = { readonly type: "conflict"; readonly head: Head };
type Unknown = { readonly type: "unknown"; readonly cause: string };
export type AppendResult = Appended | Conflict | Unknown;

type ReadOptions = {
  /** Whether payloads are read too (default true). A recovery needs none and reads faster without. */
  readonly payloads?: boolean;
  /** Ends with the batch that brings the bytes of events to about so many; a mebibyte at most. Absent: reads on. */
  readonly bytesMax?: number;
};

export type SnapshotInput = Anchor & { readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> };
export type Snapshot = Anchor & { readonly chunks: AsyncIterable<Uint8Array> };

/** The right to decide, for as long as it is sure. Safety rests on append, never on this. */
export type Lead = {
  readonly epoch: number;
  /** Resolves when it is no longer sure: not renewed in time, taken by another, given up. */
  readonly lost: Promise<LeadLoss>;
  /** Whether it is still sure now, by a clock that cannot be set. */
  holds(): boolean;
  /** Gives the lead up early. Once or often, it is the same. */
  release(): Promise<void>;
};
export type LeadLoss = { readonly reason: "expired" | "taken" | "released"; readonly message: string };

export type PruneReport = {
  /** The log now begins after this event. */
  readonly base: Anchor;
  readonly droppedBatches: number;
};

/** `seq` is 0 where it is no single event's. */
export type VerifyProblem = { readonly seq: Seq; readonly message: string };

export type VerifyReport = {
  readonly ok: boolean;
  /** Where the log begins: zeros, or the last pruned event. */
  readonly base: Anchor;
  readonly head: Head;
  /** Events whose link was checked and holds. */
  readonly events: number;
  /** Checkpoints whose signature holds. */
  readonly checkpoints: number;
  /** Payloads that are what their events say. */
  readonly payloads: number;
  /** The events behind the last signature; null if there are none, or nothing is signed since it is in memory only. */
  readonly unsigned: { readonly from: Seq; readonly to: Seq } | null;
  /** The sha256 of the public key that the signatures were checked with, in hex. */
  readonly key: string | null;
  readonly problems: readonly VerifyProblem[];
};

/** The log: what every driver promises. */
export interface Log extends AsyncDisposable {
  /** Where another reader can open this log beside its writer; null if it is only in memory. */
  readonly directory: string | null;
  /** Appends a batch behind `after`, if the head is still there and no higher epoch leads. */
  append(after: Seq, epoch: number, batch: Batch, batchId: string): Promise<AppendResult>;
  /** Everything behind `after` up to the head at the first step, checked. */
  read(after: Seq, options?: ReadOptions): AsyncIterable<ReadBatch>;
  /** One record, or null if there is none. A pruned one whose payload was kept has empty `bytes`. */
  readRecord(seq: Seq): Promise<LogRecord | null>;
  /** Where the log ends. */
  head(): Promise<Head>;
  /** How many bytes it takes now; what was pruned and may be used again is not counted. */
  bytes(): Promise<number>;

  /** Stores the state as of `seq`; `hash` must be the chain's hash there. */
  saveSnapshot(snapshot: SnapshotInput): Promise<Checkpoint>;
  /** The newest snapshot that is whole and signed, or null; with `before`, of those of earlier events. */
  loadSnapshot(before?: Seq): Promise<Snapshot | null>;
  /** Every checkpoint not yet pruned, oldest first. */
  checkpoints(): Promise<readonly Checkpoint[]>;

  /**
   * Raises the epoch durably, so that whoever led before is refused. A hint: safety rests on append. Where several
   * nodes share a log it waits until the lead is free, or the signal ends that.
   */
  acquireLead(node: string, ttl: Duration, signal?: AbortSignal): Promise<Lead>;
  /**
   * Drops whole batches that end at or before `beforeSeq` and the newest whole snapshot, whichever is
   * lower. Payloads of the seqs in `keepPayloads` stay readable; earlier kept ones not listed again go.
   */
  prune(beforeSeq: Seq, keepPayloads: Iterable<Seq>): Promise<PruneReport>;
  /** Signs the head now, and by this rule from now on. Absent where nothing is signed. */
  sign?(rule: SignRule): Promise<void>;
  /**
   * Checks every link, signature, payload and snapshot, and the files; against `expect`, also that nothing is missing
   * at the end. How far it is may be told meanwhile, in events.
   */
  verify(options?: {
    readonly expect?: Anchor;
    readonly onProgress?: (done: number, total: number) => void;
  }): Promise<VerifyReport>;
  /** Waits for what was asked before, then lets go of everything. May be called twice. */
  close(): Promise<void>;
}

export type LogFailureCode =
  | "disk-full"
  | "read-only"
  | "io"
  | "corrupt"
  | "locked"
  | "closed"
  | "unsupported-version"
  /** The events asked for were pruned: start from the snapshot. */
  | "pruned"
  /** The journal of a cluster cannot be reached, or answers nothing in time. It may come back: ask again. */
  | "unreachable"
  /** The journal takes nothing more until somebody makes room. Ask again. */
  | "journal-full"
  /** The journal does not let us in, or is not ours. A person must act. */
  | "refused"
  /** The replica has another history than the journal. */
  | "diverged";

/** The log cannot do what it promises. The message says what to do about it. */
export class LogFailure extends Error {
  override readonly name: string = "LogFailure";
  /** What went wrong, for programs. */
  readonly code: LogFailureCode;
  /** The event at which it went wrong, if it is known. */
  readonly seq?: Seq;

  constructor(code: LogFailureCode, message: string, seq?: Seq) {
    super(message);
    this.code = code;
    if (seq !== undefined) this.seq = seq;
  }
}

export const corruptAt = (seq: Seq, finding: string): LogFailure =>
  new LogFailure(
    "corrupt",
    `the log is damaged at event ${seq}: ${finding}. Nothing was repaired; restore the data directory from a backup.`,
    seq,
  );

export const closedFailure = (): LogFailure =>
  new LogFailure("closed", "the log is closed; open it again before using it");

/** The lead of a log that one process owns: nobody takes it, so it lasts until it is given up. */
export function soleLead(epoch: number): Lead {
  const lost = Promise.withResolvers<LeadLoss>();
  let isHeld = true;
  return {
    epoch,
    lost: lost.promise,
    holds: () => isHeld,
    release: async () => {
      isHeld = false;
      lost.resolve({ reason: "released", message: `the lead of epoch ${epoch} was given up` });
    },
  };
}
