/**
 * The thread that makes one snapshot and ends: recover from the log, write the state to a file, say where.
 *
 * It does again what the engine has done, at the same cost, so it gives way to it: under a load that leaves no core
 * idle a snapshot takes longer, and the tasks do not.
 */
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parentPort, workerData } from "node:worker_threads";
import { seq } from "../../core/base/index.ts";
import { openSqliteLog } from "../../log/sqlite/index.ts";
import { OWN_FILE_MODE } from "../../std/index.ts";
import { recover, snapshotChunks } from "../writer/recovery.ts";
import { fileInProgress, neededPayloads, type SnapshotDone } from "./snapshotter.ts";
import { giveWay } from "./thread-priority.ts";

giveWay();
const { directory, before } = workerData as { readonly directory: string; readonly before: number };
const log = await openSqliteLog({ directory, readOnly: true });
const { state, hash, snapshotSeq } = await recover(log);
const isNew = state.seq > snapshotSeq;
const file = isNew ? join(directory, fileInProgress(state.seq)) : "";
if (isNew) await pipeline(Readable.from(snapshotChunks(state)), createWriteStream(file, { mode: OWN_FILE_MODE }));
await log.close();
const done: SnapshotDone = { seq: seq(state.seq), hash, file, keep: neededPayloads(state, before) };
parentPort?.postMessage(done);
