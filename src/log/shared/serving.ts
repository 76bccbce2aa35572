/**
 * What a data directory gives to another node, or to a copy: its history behind an event, or all that a node needs to
 * begin where this one begins. It is read beside the writer, and takes no lock.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { packEntry } from "../journal/entry.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { LogFailure } from "../log.ts";
import { createSqliteLog } from "../sqlite/sqlite-log.ts";
import { type StoreThread, startStoreThread } from "../sqlite/thread-client.ts";
import { frame, jsonFrame, KIND } from "./frames.ts";

const ENTRIES_PER_FRAME = 256;
const BLOCKS_PER_ASK = 16;
const NUMBER_BYTES = 8;

/** Where it begins and ends, then the batches behind an event, which is the end of one; none if that was pruned. */
export async function* historyFrames(directory: string, after: Seq | null): AsyncGenerator<Buffer> {
  await using reader = await openReader(directory);
  const { base, head } = await reader.thread.ask("state", undefined);
  yield jsonFrame(KIND.facts, { base, head: { seq: head.seq, hash: head.hash } });
  if (after !== null && after >= base.seq && after < head.seq)
    for await (const entry of storedBehind(reader.thread, after)) {
      if (entry.firstSeq > head.seq) break;
      yield frame(KIND.batch, await packEntry(entry));
    }
  yield frame(KIND.end);
}

/** Where this log begins, what outlived the events before that, and its newest snapshot. */
export async function* replicaFrames(directory: string): AsyncGenerator<Buffer> {
  await using reader = await openReader(directory);
  const { thread } = reader;
  const { base, checkpoints } = await thread.ask("state", undefined);
  const list = await thread.ask("keptList", undefined);
  const snapshot = await createSqliteLog({ directory, readOnly: true, thread }).loadSnapshot();
  const checkpoint = checkpoints.find(({ seq: at }) => at === snapshot?.seq) ?? null;
  yield jsonFrame(KIND.facts, { base, checkpoint, list });
  yield* keptFrames(thread, list?.run ?? 0);
  for (let after = seq(0); ; ) {
    const blocks = await thread.ask("blocks", { from: seq(after + 1), to: base.seq, limit: BLOCKS_PER_ASK });
    for (const { firstSeq, bytes } of blocks) yield frame(KIND.block, numbered(firstSeq, bytes));
    const last = blocks.at(-1);
    if (last === undefined) break;
    after = last.firstSeq;
  }
  for await (const chunk of snapshot?.chunks ?? []) yield frame(KIND.snapshot, chunk);
  const now = await thread.ask("keptList", undefined);
  if (now?.run !== list?.run) throw new LogFailure("io", `${directory} was pruned while it was read; ask again`);
  yield frame(KIND.end);
}

async function* keptFrames(thread: StoreThread, run: number): AsyncGenerator<Buffer> {
  for (let after = seq(0); ; ) {
    const { kept, problems } = await thread.ask("checkKept", { run, after, limit: ENTRIES_PER_FRAME });
    if (problems[0] !== undefined) throw new LogFailure("corrupt", problems[0].message, problems[0].seq);
    const last = kept.at(-1);
    if (last === undefined) return;
    yield jsonFrame(KIND.kept, kept);
    after = last.seq;
  }
}

function numbered(first: number, bytes: Uint8Array): Buffer {
  const number = Buffer.alloc(NUMBER_BYTES);
  number.writeBigUInt64BE(BigInt(first));
  return Buffer.concat([number, bytes]);
}

/** The rows of a directory with all that lies beside them. */
export async function* storedBehind(thread: StoreThread, after: Seq): AsyncGenerator<SealedBatch> {
  for (let cursor: { after: Seq; prior: Uint8Array | null } = { after, prior: null }; ; ) {
    const { rows, blocks, break: broken } = await thread.ask("page", { cursor, payloads: true });
    for (const { hashes: _, ...row } of rows) {
      const own = blocks.filter(({ firstSeq }) => firstSeq >= row.firstSeq && firstSeq <= row.lastSeq);
      yield { ...row, payloads: Buffer.concat(own.map(({ bytes }) => bytes)) };
    }
    if (broken !== null) throw new LogFailure("corrupt", broken.message, broken.seq);
    const last = rows.at(-1);
    if (last === undefined) return;
    cursor = { after: last.lastSeq, prior: last.postHash };
  }
}

async function openReader(directory: string): Promise<AsyncDisposable & { readonly thread: StoreThread }> {
  const thread = await startStoreThread({ directory, readOnly: true, maxBytes: null });
  return { thread, [Symbol.asyncDispose]: () => thread.close() };
}
