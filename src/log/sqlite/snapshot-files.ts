/**
 * Snapshots as files beside the database.
 *
 * A snapshot is written under another name, fsynced, and only then given its own: under its name a file
 * is whole, or it was damaged later. Its hash is in a signed checkpoint, so damage is found before anybody
 * starts from it. A state may be larger than memory is patient with, so it passes through in chunks and
 * is hashed on the way; nothing here blocks the event loop for longer than one chunk.
 */
import { createHash } from "node:crypto";
import { createReadStream, readdirSync } from "node:fs";
import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Seq } from "../../core/base/index.ts";
import { OWN_FILE_MODE } from "../../std/index.ts";
import type { SnapshotInput } from "../log.ts";
import { storageFailure } from "./storage-failure.ts";

const CHUNK_BYTES = 256 * 1024;
const WHOLE = /^snapshot-(\d+)\.bin$/;
const PARTIAL = /^snapshot-\d+\.new$/;

const snapshotPath = (directory: string, at: Seq): string => join(directory, `snapshot-${at}.bin`);

/** Writes the chunks durably and answers their sha256 in hex. */
export async function writeSnapshot(directory: string, at: Seq, chunks: SnapshotInput["chunks"]): Promise<string> {
  const partial = join(directory, `snapshot-${at}.new`);
  try {
    const hash = await writeChunks(partial, chunks);
    await rename(partial, snapshotPath(directory, at));
    await syncDirectory(directory);
    return hash;
  } catch (error) {
    await rm(partial, { force: true });
    throw storageFailure(error, { doing: `write ${partial}` });
  }
}

/** The sha256 of a stored snapshot in hex, or null if there is no such file. */
export async function hashSnapshot(directory: string, at: Seq): Promise<string | null> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of readChunks(snapshotPath(directory, at))) hash.update(chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw storageFailure(error, { doing: `read ${snapshotPath(directory, at)}` });
  }
  return hash.digest("hex");
}

export async function* readSnapshot(directory: string, at: Seq): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* readChunks(snapshotPath(directory, at));
  } catch (error) {
    throw storageFailure(error, { doing: `read ${snapshotPath(directory, at)}` });
  }
}

/** The highest event that a snapshot lies here of; 0 if there is none. */
export function newestSnapshot(directory: string): number {
  return Math.max(0, ...readdirSync(directory).map((name) => Number(WHOLE.exec(name)?.[1] ?? 0)));
}

/** Removes what a crash left half written, and every snapshot that is not kept. */
export async function sweepSnapshots(directory: string, kept: readonly Seq[]): Promise<void> {
  const names = new Set(kept.map((at) => `snapshot-${at}.bin`));
  for (const name of await readdir(directory)) {
    if (PARTIAL.test(name) || (WHOLE.test(name) && !names.has(name))) await rm(join(directory, name), { force: true });
  }
}

async function writeChunks(path: string, chunks: SnapshotInput["chunks"]): Promise<string> {
  const hash = createHash("sha256");
  await using file = await open(path, "w", OWN_FILE_MODE);
  for await (const chunk of chunks) {
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  await file.sync();
  return hash.digest("hex");
}

const readChunks = (path: string): AsyncIterable<Uint8Array> => createReadStream(path, { highWaterMark: CHUNK_BYTES });

/** The new name itself must survive a power cut. */
async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, "r");
  await handle.sync();
}
