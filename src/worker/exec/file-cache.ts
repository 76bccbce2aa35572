/**
 * Files of other tasks on this machine: fetched once, and laid where a command is to find them.
 *
 * They are kept by content, so that ten tasks that need the same file cost one download. What lies here is no more
 * believed than what comes over the wire: it is compared with its hash each time it is laid, and fetched again if it
 * differs. The command gets a copy of its own. The cache is bounded; what was not used for longest goes first.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isSha256 } from "../../core/base/index.ts";
import { OWN_FILE_MODE } from "../../std/index.ts";

export type WantedFile = { readonly hash: string; readonly size: number };
export type FileCache = {
  /** Lays the content under this path, which must be free; `fetch` is asked for it if it is not here. */
  lay(file: WantedFile, path: string, fetch: (hash: string) => AsyncIterable<Uint8Array>): Promise<void>;
};

/** What is kept for tasks to come. */
const BYTES_MAX = 1024 * 1024 * 1024;
const OWN_DIRECTORY = { recursive: true, mode: 0o700 } as const;

export function createFileCache(directory: string, bytesMax: number = BYTES_MAX): FileCache {
  const pathOf = (hash: string): string => join(directory, hash);

  async function fetched(hash: string, fetch: (hash: string) => AsyncIterable<Uint8Array>): Promise<void> {
    await mkdir(directory, OWN_DIRECTORY);
    const temp = join(directory, `${randomUUID()}.new`);
    try {
      const got = await write(temp, fetch(hash));
      if (got !== hash) throw new Error(`the file ${hash} did not come as it was kept`);
      await rename(temp, pathOf(hash));
    } finally {
      await rm(temp, { force: true });
    }
    await trim(hash);
  }

  /** Whether a sound one was here. */
  async function copied(hash: string, path: string): Promise<boolean> {
    try {
      if ((await write(path, createReadStream(pathOf(hash)))) === hash) {
        const now = new Date();
        await utimes(pathOf(hash), now, now).catch(() => {});
        return true;
      }
      await rm(pathOf(hash), { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    await rm(path, { force: true });
    return false;
  }

  async function trim(newest: string): Promise<void> {
    const names = (await readdir(directory)).filter((name) => isSha256(name) && name !== newest);
    const seen = await Promise.all(
      names.map(async (name) => ({ name, at: await stat(pathOf(name)).catch(() => null) })),
    );
    const all = seen.flatMap(({ name, at }) => (at === null ? [] : [{ name, size: at.size, usedAt: at.mtimeMs }]));
    let bytes = all.reduce((sum, { size }) => sum + size, (await stat(pathOf(newest)).catch(() => null))?.size ?? 0);
    for (const { name, size } of all.sort((left, right) => left.usedAt - right.usedAt)) {
      if (bytes <= bytesMax) return;
      await rm(pathOf(name), { force: true });
      bytes -= size;
    }
  }

  return {
    async lay({ hash }, path, fetch) {
      if (!isSha256(hash)) throw new Error(`${hash} is no hash of a file`);
      await mkdir(dirname(path), OWN_DIRECTORY);
      if (await copied(hash, path)) return;
      await fetched(hash, fetch);
      if (!(await copied(hash, path))) throw new Error(`the file ${hash} could not be laid`);
    },
  };
}

/** Writes a file that is not there yet; answers the hash of what was written. */
async function write(path: string, content: AsyncIterable<Uint8Array>): Promise<string> {
  const digest = createHash("sha256");
  const chunks = content[Symbol.asyncIterator]();
  const first = await chunks.next();
  const file = await open(path, "wx", OWN_FILE_MODE);
  try {
    for (let next = first; next.done !== true; next = await chunks.next()) {
      digest.update(next.value);
      await file.writeFile(next.value);
    }
  } finally {
    await chunks.return?.();
    await file.close();
  }
  return digest.digest("hex");
}
