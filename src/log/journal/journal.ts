/**
 * The journal: the order of batches that several nodes share, and what every driver of it promises.
 *
 * A cluster has one journal (etcd, PostgreSQL; in tests: memory) and on each node a replica, which is an ordinary data
 * directory. The journal decides what comes next, by comparing and setting one head record in the transaction that
 * stores the batch; replicas copy what it has decided. `shared/` makes a `Log` of the two. A journal keeps batches as
 * they were sealed and looks into none of them: their bytes, the epoch and the id of each are in the hash chain
 * (`format/chain.ts`), so whoever takes one into a replica can check it.
 *
 * **Append** has the three answers of a log. It compares the head alone: its seq and hash with what the batch is linked
 * to, its epoch with that of the batch, which may be higher and never lower. A batch that is the head already (same id,
 * last seq and hash) is a repeat, and `appended`, whoever leads by now. Where the answer was lost it is `unknown`.
 *
 * **A lead** is a lease. Safety never rests on it: whoever writes under a lower epoch than the head's is refused.
 * It is there so that one node decides at a time, and the others know when that one is gone.
 *
 * **Failures.** A journal that cannot be reached, or answers nothing in time, rejects with `unreachable`; one that is
 * full and takes nothing more, with `journal-full`. Both may pass, so asking again may help. `refused` does not pass:
 * credentials, a table of another product, a newer version; a person must act, and the message says how. No message
 * ever has a password in it. `follow` waits by itself and tells `onNotice` every few seconds; it ends only with what
 * does not pass.
 */
import type { Duration, Seq } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";
import type { BatchRow } from "../format/batch-row.ts";
import type { Anchor, AppendResult, Head, Lead } from "../log.ts";

/** A batch as it is linked into the chain, and what lies beside it. The hashes of its events follow from the rest. */
export type SealedBatch = Omit<BatchRow, "hashes"> & {
  /** As `format/payload-blocks.ts` frames it. */
  readonly payloads: Uint8Array;
  /** All of it as one block, where that was made already (`entry.ts`). */
  readonly packed?: Uint8Array;
};

/** What a node tells of itself, every few seconds. */
export type NodeAnnouncement = {
  readonly node: string;
  /** Where other nodes and clients reach it. */
  readonly url: string;
  /** The last event it has applied, and the chain's hash there. */
  readonly seq: Seq;
  readonly hash: string;
  /** The epoch it knows of. */
  readonly epoch: number;
  /** The last event that its replica has for sure on disk: what a majority has, may be pruned here. */
  readonly stored: Seq;
  /** The public key of what it signs: ed25519, SPKI in base64. */
  readonly key?: string;
  /** For how long it had not had all of the journal; 0 if it had. */
  readonly behindMs?: number;
  /** Which start of the node tells it: of two, the later by the journal's count is the greater as text. */
  readonly start?: string;
  /** What its clock showed then, in milliseconds since 1970. */
  readonly now?: number;
  /** It has ended in order: this is its last word. */
  readonly isStopped?: true;
  /** What it finds wrong with itself, in sentences. */
  readonly warnings?: readonly string[];
  /** Its signature under seq and hash, in hex: it vouches for the history up to there. */
  readonly signature?: string;
};

/** `ageMs`: how long ago it was told, by one clock for all: the journal's. */
export type NodeSeen = NodeAnnouncement & { readonly ageMs: number };

/** Who leads as far as the journal knows: null if the lead is free, or was not renewed. */
export type LeadSeen = { readonly node: string; readonly epoch: number };
export type NodesSeen = {
  readonly lead: LeadSeen | null;
  readonly nodes: readonly NodeSeen[];
  /** Of the journal's own count, which every word of a node moves on: a later look has seen more. */
  readonly count: number;
};

/** An entry of a node that is silent for so long is forgotten. */
export const NODE_KEPT_MS: number = 60 * 60 * 1000;

export type JournalKind = "memory" | "etcd" | "postgres";

/** The journal's own health, for people and GET /cluster. */
export type JournalHealth = {
  readonly kind: JournalKind;
  /** Where it is: no user, no password, no options. */
  readonly address: string;
  /** Of the product that keeps it; null if there is none. */
  readonly version: string | null;
  readonly head: Head;
  /** Where it begins: the last event that was pruned. */
  readonly base: Anchor;
  /** How many bytes it takes there, if that is known. */
  readonly bytes: number | null;
  /** Sentences on what is not as it should be: an fsync that is off, a member that is gone, no room. */
  readonly warnings: readonly string[];
  /** The servers it runs on, where it knows of several. */
  readonly members: readonly JournalMember[];
};
export type JournalMember = { readonly name: string; readonly address: string; readonly isUp: boolean };

/** What every driver is opened with, beside its own. */
export type JournalOptions = {
  readonly clock?: Clock;
  /** Gets a line when the journal has to be waited for, again every few seconds, and when it is back. */
  readonly onNotice?: (line: string) => void;
};

/** One node's handle on the journal. */
export interface Journal extends AsyncDisposable {
  readonly kind: JournalKind;
  describe(): Promise<JournalHealth>;
  /** Appends a sealed batch behind what it is linked to. The caller leaves its bytes alone until the answer. */
  append(entry: SealedBatch): Promise<AppendResult>;
  /**
   * Whole batches, from the one that holds the event behind `after` up to the head at the first step. Nothing is
   * checked here: whoever takes them in does so. `pruned`, with the seq at which it begins, if it begins later.
   */
  read(after: Seq): AsyncIterable<SealedBatch>;
  /**
   * The same, and then every batch as it is committed, until the signal ends it. A connection that is lost is made
   * again; `pruned` if what comes next was pruned meanwhile.
   */
  follow(after: Seq, signal: AbortSignal): AsyncIterable<SealedBatch>;
  head(): Promise<Head>;
  /**
   * Waits until the lead is free, was not renewed, or is this node's own of an earlier life; then takes it and raises
   * the head's epoch, durably. A handle has one lead: asking again gives up the one it had. Where the journal is out
   * of reach it goes on waiting. Rejects with the signal's reason, or with what does not pass.
   */
  acquireLead(node: string, ttl: Duration, signal?: AbortSignal): Promise<Lead>;
  /** Tells of this node; forgotten `NODE_KEPT_MS` after the last word. */
  announce(node: NodeAnnouncement): Promise<void>;
  nodes(): Promise<NodesSeen>;
  /**
   * A secret that all nodes share and nobody else knows who cannot read the journal: 64 hex digits, made by whoever
   * asks first. It lies beside the batches and is part of none, so no replica, copy or backup of a node has it.
   */
  secret(): Promise<string>;
  /**
   * Lets a journal that is empty begin behind an event, for a log whose beginning was pruned. Answers where it begins:
   * elsewhere, if it was not empty.
   */
  begin(base: Anchor): Promise<Anchor>;
  /** Drops whole batches that end at or before `before`; the head stays. Answers where it begins now. */
  prune(before: Seq): Promise<Anchor>;
  /**
   * Where else in the same etcd or database a history of Drover lies: some addresses, without credentials. For people
   * who may have meant one of them; what this user may not see is left out.
   */
  beside(): Promise<readonly string[]>;
  /** Gives up the lead, ends what is under way with `closed`, lets go of everything. May be called twice. */
  close(): Promise<void>;
}
