/**
 * Whether the newest snapshot is the state that the events lead to.
 *
 * The hash of a snapshot shows that it is what was written, not that what was written was right. So its state is made
 * again from the events: from the first, or, where that was pruned or is far away, from the snapshot before. Both are
 * written down by this version and compared line by line, so a snapshot of an older format can be compared too.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { emptyState, evolve } from "../../core/index.ts";
import type { MutableState, State } from "../../core/model/index.ts";
import { SnapshotUnreadable, snapshotLines } from "../../core/snapshot/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import { type Log, LogFailure } from "../../log/index.ts";
import { fingerprintOf } from "../../log/shared/index.ts";
import { recoverFrom, stateOf } from "../writer/recovery.ts";

const EVENTS_MAX = 5_000_000;
const SHOWN_CHARS = 120;

/** How the newest snapshot compares with its events. */
export type Replayed = {
  /** The event that it is of. */
  readonly seq: number;
  /** Behind which event the replay began; null if there was none. */
  readonly from: number | null;
  /** What differs, or why there was no replay; null if it is what the events lead to. */
  readonly message: string | null;
};

/** What a log leads to. */
export type WholeLog = {
  /** Null if its newest snapshot cannot be read. */
  readonly state: State | null;
  /** Null if it has none. */
  readonly snapshot: Replayed | null;
};

/**
 * Reads a log as a start does, and compares its newest snapshot on the way. A server may write meanwhile. How far it is
 * may be told, in events.
 */
export async function readWhole(log: Log, onProgress: OnProgress = () => {}): Promise<WholeLog> {
  const newest = await log.loadSnapshot();
  const { seq: end } = await log.head();
  const tell = (at: Seq): void => onProgress(at, end);
  if (newest === null) return { state: (await recoverFrom(log, null, emptyState(), tell)).state, snapshot: null };
  const stored = await unlessUnreadable(stateOf(newest));
  const snapshot = await replayed(log, newest.seq, stored, tell);
  if (typeof stored === "string") return { state: null, snapshot };
  return { state: (await recoverFrom(log, newest, stored, tell)).state, snapshot };
}
type OnProgress = (done: number, total: number) => void;

/** The nodes of a cluster that the log knows of, and the sha256 of the key of each. */
export const nodeKeys = ({ cluster }: State): { readonly node: string; readonly key: string }[] =>
  [...cluster.nodes].map(([node, { key }]) => ({ node, key: fingerprintOf(key) }));

async function replayed(log: Log, at: Seq, state: MutableState | string, tell: (at: Seq) => void): Promise<Replayed> {
  const begun = await beginning(log, at);
  if (typeof begun === "string") return { seq: at, from: null, message: begun };
  const from = begun.seq;
  try {
    await replay(log, begun, at, tell);
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "pruned") throw error;
    return { seq: at, from: null, message: "its events were pruned meanwhile" };
  }
  return { seq: at, from, message: typeof state === "string" ? state : difference(begun, state) };
}

/** What is made of a snapshot, or why that cannot be read. */
async function unlessUnreadable<Value>(made: Promise<Value>): Promise<Value | string> {
  try {
    return await made;
  } catch (error) {
    if (!(error instanceof SnapshotUnreadable)) throw error;
    return `it cannot be read: ${error.message}`;
  }
}

/** The state to go on from, or why there is none. */
async function beginning(log: Log, at: Seq): Promise<MutableState | string> {
  if (at <= EVENTS_MAX && (await hasFirst(log))) return emptyState();
  const before = await log.loadSnapshot(at);
  if (before === null) return "the events that led to it were pruned, and there is no snapshot before it";
  return at - before.seq > EVENTS_MAX ? `more than ${EVENTS_MAX} events led to it` : unlessUnreadable(stateOf(before));
}

async function hasFirst(log: Log): Promise<boolean> {
  const record = await log.readRecord(seq(1));
  return record !== null && record.bytes.length > 0;
}

async function replay(log: Log, state: MutableState, to: Seq, tell: (at: Seq) => void): Promise<void> {
  for await (const { records } of log.read(seq(state.seq), { payloads: false })) {
    for (const { bytes } of records) {
      if (state.seq === to) return;
      evolve(state, decodeEvent(bytes, seq(state.seq + 1)).event);
    }
    tell(seq(state.seq));
  }
}

function difference(replayed: MutableState, stored: MutableState): string | null {
  const found = snapshotLines(stored);
  for (const should of snapshotLines(replayed)) {
    const { value: is = "nothing" } = found.next();
    if (is === should) continue;
    return `it says ${cut(is)} where its events lead to ${cut(should)}`;
  }
  return found.next().done === true ? null : "it says more than its events lead to";
}

const cut = (line: string): string => (line.length <= SHOWN_CHARS ? line : `${line.slice(0, SHOWN_CHARS)}…`);
