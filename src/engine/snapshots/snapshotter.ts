/**
 * Snapshots without a pause.
 *
 * A snapshot is made every `log.snapshotEvery` events, and of a large state later, after three events for each of its
 * lines: so all snapshots together cost a constant part of what the events cost, and a restart replays at most three
 * events for each line it loads. Up to a size the engine writes what it holds: in one step of at most some fifty
 * milliseconds it notes what can change (core/snapshot/captured.ts), and the rest is written a little at a time. It is
 * stored once the events it rests on are. A larger state, or one with many ties, would hold up the engine for too long,
 * so of that one a thread does what a restart would do: it reads the last snapshot and the events behind it from the
 * log and writes the state it arrives at, and the engine's own thread only copies the finished file into its place.
 * That costs as much as it cost to apply those events, so it is put off for a while: what is much under a load may be
 * little behind it. A log that is only in memory is read in this thread.
 *
 * What is older than `log.retain` is then pruned, except payloads that live tasks still need.
 * One that fails is tried again after as many events more, not at the next commit: it would fail again.
 */
import { createReadStream, readdirSync, rmSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Seq, seq } from "../../core/base/index.ts";
import type { Config } from "../../core/config/index.ts";
import type { State } from "../../core/model/index.ts";
import { changingLines } from "../../core/snapshot/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import type { Log } from "../../log/index.ts";
import { capturedChunks, recover, snapshotChunks } from "../writer/recovery.ts";
import type { Writer } from "../writer/writer.ts";

/** What a snapshot is called while it is being written. */
export const fileInProgress = (at: number): string => `snapshot-in-progress-${at}.tmp`;
const IN_PROGRESS = /^snapshot-in-progress-\d+\.tmp$/;

/** What the engine writes at once, and what it only notes, at most: some ten milliseconds' worth, and some forty. */
const CHANGING_MAX = 10_000;
const NOTED_MAX = 250_000;
/** Events that are waited for, for each line that a snapshot will have, where it is no small one. */
const EVENTS_PER_LINE = 3;
/** A state that is large when a snapshot is due may be small soon: so many times as many events are waited for that. */
const LATE = 4;

type Made = { readonly seq: Seq; readonly keep: readonly Seq[] };
type Captured = { readonly made: Made; readonly chunks: Iterable<Uint8Array> };
/** What the thread answers; no file if there was nothing new. */
export type SnapshotDone = Made & { readonly hash: string; readonly file: string };
export type Snapshotter = {
  /** Makes one now; answers the number of the event it is of. */
  make(): Promise<Seq>;
  onCommitted(committed: Seq): void;
  /** Waits for one that a caller asked for, ends one that began by itself; none begins after that. */
  stop(): Promise<void>;
};

export function createSnapshotter(deps: {
  readonly log: Log;
  readonly writer: Pick<Writer, "state" | "settled" | "now">;
  readonly config: () => Config;
  readonly lastSeq: Seq;
  readonly onFailure: (error: unknown) => void;
  readonly onPruned: () => void;
  /** How many lines the engine writes at once. */
  readonly changingMax?: number;
}): Snapshotter {
  const { log, config, changingMax = CHANGING_MAX } = deps;
  const { state, settled, now } = deps.writer;
  const { directory } = log;
  if (directory !== null) sweep(directory);
  /** The event of the last snapshot, or the one at which making one failed. */
  let last: number = deps.lastSeq;
  let stored: number = deps.lastSeq;
  let seen: number = deps.lastSeq;
  /** More tasks than may be written at once had ties when they were last looked at. */
  let isTied = false;
  let busy: Promise<Seq> | null = null;
  let worker: Worker | null = null;
  /** Whether a caller asked for the one that is being made. */
  let wanted = false;
  let stopped = false;

  async function work(): Promise<Seq> {
    const before = await prunableSeq(log, now() - config().log.retain);
    const made = await madeOf(before);
    last = stored = made.seq;
    if (before > 0) {
      await log.prune(before, made.keep);
      deps.onPruned();
    }
    return made.seq;
  }

  function isSmall(): boolean {
    if (state.tasks.size <= changingMax) isTied = false;
    const { written, noted } = changingLines(state);
    return !isTied && written <= changingMax && noted <= NOTED_MAX;
  }

  /** How many events after the last a snapshot is due: what all of them cost stays in proportion to what happens. */
  function dueAfter(): number {
    const { written, noted } = changingLines(state);
    const { snapshotEvery } = config().log;
    return written + noted <= changingMax
      ? snapshotEvery
      : Math.max(snapshotEvery, EVENTS_PER_LINE * (written + noted));
  }

  function madeOf(before: Seq): Promise<Made> {
    const captured = isSmall() ? capture(before) : null;
    if (captured !== null) return ofOwn(captured);
    return directory === null ? byReplay(before) : inThread(directory, before);
  }

  /** Null if it would take too long, which is known only now. */
  function capture(before: Seq): Captured | null {
    const at = seq(state.seq);
    const chunks = at > stored ? capturedChunks(state, changingMax) : [];
    isTied = chunks === null;
    return chunks === null ? null : { made: { seq: at, keep: neededPayloads(state, before) }, chunks };
  }

  async function ofOwn({ made, chunks }: Captured): Promise<Made> {
    await settled();
    if (made.seq > stored) await log.saveSnapshot({ seq: made.seq, hash: await hashAt(log, made.seq), chunks });
    return made;
  }

  async function byReplay(before: Seq): Promise<Made> {
    const { state: replayed, hash, snapshotSeq } = await recover(log);
    const at = { seq: seq(replayed.seq), hash };
    if (at.seq > snapshotSeq) await log.saveSnapshot({ ...at, chunks: snapshotChunks(replayed) });
    return { seq: at.seq, keep: neededPayloads(replayed, before) };
  }

  async function inThread(home: string, before: Seq): Promise<Made> {
    // The process makes the threads for its files when it first needs them, with the priority of the thread that needs
    // them: that must not be a thread that gives way.
    await stat(home);
    if (stopped && !wanted) throw new Error("no snapshot is made of what is being closed");
    worker = startThread(home, before);
    const done = await answerOf(worker);
    try {
      if (done.file !== "")
        await log.saveSnapshot({ seq: done.seq, hash: done.hash, chunks: createReadStream(done.file) });
    } finally {
      if (done.file !== "") await rm(done.file, { force: true });
    }
    return done;
  }

  function begin(): Promise<Seq> {
    busy ??= work().finally(() => {
      busy = worker = null;
      wanted = false;
    });
    return busy;
  }

  function make(): Promise<Seq> {
    const made = begin();
    wanted = true;
    return made;
  }

  return {
    make,
    onCommitted(committed) {
      seen = committed;
      // Looked at again only once it may be due: this is asked for every batch.
      if (stopped || busy !== null || committed - last < config().log.snapshotEvery) return;
      const due = dueAfter();
      const late = Math.max(due, LATE * config().log.snapshotEvery);
      if (committed - last < due || (committed - last < late && !isSmall())) return;
      begin().catch((error) => {
        last = seen;
        if (!stopped) deps.onFailure(error);
      });
    },
    async stop() {
      stopped = true;
      // It may take long, since it gives way to others, and a restart does without it.
      if (!wanted) await worker?.terminate();
      await busy?.catch(() => {});
      if (directory !== null) sweep(directory);
    },
  };
}

function startThread(directory: string, before: Seq): Worker {
  const file = import.meta.url.endsWith(".ts") ? "./snapshot-thread.ts" : "./snapshot-thread.js";
  return new Worker(new URL(file, import.meta.url), {
    workerData: { directory, before },
    execArgv: [], // The program's own flags, such as --input-type, are not for this file.
  });
}

function answerOf(worker: Worker): Promise<SnapshotDone> {
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the snapshot thread ended with code ${code} and said nothing`)));
  });
}

/** Takes away what a crash left half written. Room is all it cost, so what cannot be taken away stays. */
function sweep(directory: string): void {
  try {
    for (const name of readdirSync(directory)) {
      if (IN_PROGRESS.test(name)) rmSync(join(directory, name), { force: true });
    }
  } catch {
    // A directory that cannot be read or changed is reported by the log, in better words.
  }
}

/** The chain's hash after an event that is in the log. */
export async function hashAt(log: Log, at: Seq): Promise<string> {
  for await (const { hashes } of log.read(seq(at - 1), { payloads: false, bytesMax: 1 }))
    return Buffer.from(hashes[0] as Uint8Array).toString("hex");
  throw new Error(`event ${at} is not in the log`);
}

/** The newest checkpoint older than `oldest`; the last two snapshots must keep the events behind them. */
async function prunableSeq(log: Log, oldest: number): Promise<Seq> {
  const checkpoints = await log.checkpoints();
  for (const { seq: at } of checkpoints.slice(0, -1).reverse()) {
    const record = await log.readRecord(at);
    if (record !== null && record.bytes.length > 0 && decodeEvent(record.bytes, at).event.at < oldest) return at;
  }
  return seq(0);
}

/** The events whose payloads are still needed: of tasks that are readable, or that a webhook is to get. */
export function neededPayloads(state: State, before: number): Seq[] {
  if (before === 0) return [];
  const needed: Seq[] = [];
  const need = (at: number | null | undefined): void => {
    if (at != null && at <= before) needed.push(seq(at));
  };
  state.tasks.each(({ seq: at, end, extra }) => {
    need(at);
    if (end !== null) need(end.resultSeq);
    if (extra !== null) need(extra.wait?.answer?.seq);
  });
  for (const { ended } of state.callbacks.due.values()) {
    // One that is readable was met already.
    if (ended === null || state.tasks.get(ended.id)?.seq === ended.seq) continue;
    need(ended.seq);
    need(ended.end.resultSeq);
  }
  for (const plan of state.plans.values()) need(plan.seq);
  return needed;
}
