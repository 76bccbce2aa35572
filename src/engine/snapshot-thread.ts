/**
 * The thread that makes one snapshot and ends: recover from the log, write the state to a file, say where.
 */
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parentPort, workerData } from "node:worker_threads";
import { seq } from "../core/brand.ts";
import { openSqliteLog } from "../log/sqlite-log.ts";
import { recover, snapshotChunks } from "./recovery.ts";
import { fileInProgress, neededBeside, type SnapshotDone } from "./snapshotter.ts";

const { directory, before } = workerData as { readonly directory: string; readonly before: number };
const log = await openSqliteLog({ directory, readOnly: true });
const { state, hash, snapshotSeq } = await recover(log);
const isNew = state.seq > snapshotSeq;
const file = isNew ? join(directory, fileInProgress(state.seq)) : "";
if (isNew) await pipeline(Readable.from(snapshotChunks(state)), createWriteStream(file));
await log.close();
const done: SnapshotDone = { seq: seq(state.seq), hash, file, keep: neededBeside(state, before) };
parentPort?.postMessage(done);
