/**
 * From the log to a state: the newest snapshot, then every event behind it.
 *
 * This is what a restart does, and what a snapshot thread does, so each snapshot is also a rehearsal of
 * recovery. Every link of the chain is checked on the way; damage stops it with the number of the event.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { emptyState, evolve } from "../../core/index.ts";
import type { MutableState, State } from "../../core/model/index.ts";
import { capturedLines, restore, restoring, snapshotLines } from "../../core/snapshot/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import { corruptAt, type Log, LogFailure, type ReadBatch, type Snapshot } from "../../log/index.ts";

const CHUNK_BYTES = 256 * 1024;
const CAPTURED_CHUNK_BYTES = 32 * 1024;
const START_HASH = "0".repeat(64);

type Recovered = {
  readonly state: MutableState;
  /** The chain's hash after the last event. */
  readonly hash: string;
  readonly snapshotSeq: Seq;
};

export async function recover(log: Log): Promise<Recovered> {
  const snapshot = await log.loadSnapshot();
  return recoverFrom(log, snapshot, snapshot === null ? emptyState() : await stateOf(snapshot));
}

/** From the newest snapshot and its state, or from the beginning, to the end. */
export async function recoverFrom(
  log: Log,
  snapshot: Snapshot | null,
  state: MutableState,
  onProgress: (at: Seq) => void = () => {},
): Promise<Recovered> {
  const snapshotSeq = snapshot?.seq ?? seq(0);
  let hash = snapshot?.hash ?? START_HASH;
  for await (const batch of eventsBehind(log, snapshotSeq)) {
    for (const { bytes } of batch.records) evolve(state, decodeEvent(bytes, seq(state.seq + 1)).event);
    hash = Buffer.from(batch.hashes[batch.hashes.length - 1] ?? batch.priorHash).toString("hex");
    onProgress(seq(state.seq));
  }
  return { state, hash, snapshotSeq };
}

/** A log that was pruned begins with a snapshot; if none of them is whole, it has lost its beginning. */
async function* eventsBehind(log: Log, after: Seq): AsyncGenerator<ReadBatch> {
  try {
    yield* log.read(after, { payloads: false });
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "pruned" || after > 0) throw error;
    throw corruptAt(seq(1), `events up to ${error.seq} were pruned, and no snapshot of what they led to is whole`);
  }
}

export const stateOf = async (snapshot: Snapshot): Promise<MutableState> =>
  checked(snapshot, restore(await readLines(snapshot.chunks)));

/** The same for an engine that has other things to do: after so many lines there is a turn for them. */
export async function stateInSlices(
  snapshot: Snapshot,
  { lines, nextTurn }: { readonly lines: number; readonly nextTurn: () => Promise<void> },
): Promise<MutableState> {
  const steps = restoring(await readLines(snapshot.chunks));
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return checked(snapshot, step.value);
    if (count % lines === 0) await nextTurn();
  }
}

function checked(snapshot: Snapshot, state: MutableState): MutableState {
  if (state.seq !== snapshot.seq) throw corruptAt(snapshot.seq, "its snapshot is of another event");
  return state;
}

/** The lines of a snapshot, as bytes in chunks of a comfortable size. */
function* toChunks(lines: Iterable<string>, bytes: number): Generator<Uint8Array> {
  let part: string[] = [];
  let length = 0;
  for (const line of lines) {
    part.push(line, "\n");
    length += line.length + 1;
    if (length < bytes) continue;
    yield Buffer.from(part.join(""));
    part = [];
    length = 0;
  }
  if (length > 0) yield Buffer.from(part.join(""));
}

export const snapshotChunks = (state: State): Generator<Uint8Array> => toChunks(snapshotLines(state), CHUNK_BYTES);
/** The same of a state that may change as soon as this returns, a few at a time: about half a millisecond's worth. */
export function capturedChunks(state: State, tiedMax: number): Generator<Uint8Array> | null {
  const lines = capturedLines(state, tiedMax);
  return lines === null ? null : toChunks(lines, CAPTURED_CHUNK_BYTES);
}

/** All lines of a snapshot. Chunks may cut a line, even a character, anywhere. */
async function readLines(chunks: AsyncIterable<Uint8Array>): Promise<string[]> {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) lines.push(line);
  }
  rest += decoder.decode();
  if (rest !== "") lines.push(rest);
  return lines;
}

/** The time of the last event, for a command that asks whether it is in the future; null if there is none to read. */
export async function lastEventAt(log: Log): Promise<number | null> {
  const { seq } = await log.head();
  const record = seq === 0 ? null : await log.readRecord(seq);
  return record === null ? null : decodeEvent(record.bytes, seq).event.at;
}
