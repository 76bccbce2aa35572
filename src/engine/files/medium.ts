/**
 * Where the contents of files lie: in a directory, or in memory.
 *
 * In a directory a content lies under its own hash, `ab/cdef…`. It is written under a name that means nothing, made
 * durable, and then renamed: whatever stands under a hash was once whole. What a crash leaves half written lies in
 * `tmp` and goes at the next start. Only its owner may read any of it.
 */
import { randomUUID } from "node:crypto";
import { type Stats, statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { OWN_FILE_MODE } from "../../std/index.ts";

/** A content that is kept. */
export type KeptContent = {
  /** Its SHA-256, as 64 hex digits. */
  readonly hash: string;
  /** In bytes. */
  readonly size: number;
  /** When it came, or came again, in milliseconds since 1970. */
  readonly at: number;
};
/** A content on its way in. */
export type ArrivingContent = {
  /** The next bytes of it. */
  write(chunk: Uint8Array): Promise<void>;
  /** It is whole, and durable under its hash when this resolves. */
  keep(hash: string): Promise<void>;
  /** It is not wanted after all. */
  drop(): Promise<void>;
};
/** Where the contents of files lie. */
export type FileMedium = {
  /** Removes what was half written. */
  sweep(): Promise<void>;
  /** All there is; less, if the signal fires meanwhile. */
  list(signal?: AbortSignal): Promise<KeptContent[]>;
  /** One of them, at once; null if it is not there. */
  look(hash: string): KeptContent | null;
  /** Takes a content in. */
  receive(): Promise<ArrivingContent>;
  /** The bytes of a content; fails with ENOENT if it is not there. */
  read(hash: string): AsyncIterable<Uint8Array>;
  /** It was put again. */
  touch(hash: string, at: number): Promise<void>;
  /** It goes. */
  remove(hash: string): Promise<void>;
};

const OWN_DIRECTORY = { recursive: true, mode: 0o700 } as const;
const PREFIX = /^[0-9a-f]{2}$/;
const REST = /^[0-9a-f]{62}$/;
const CHUNK_BYTES = 256 * 1024;

export function directoryMedium(root: string): FileMedium {
  const temp = join(root, "tmp");
  const pathOf = (hash: string): string => join(root, hash.slice(0, 2), hash.slice(2));

  async function listPart(prefix: string): Promise<KeptContent[]> {
    const names = (await readdir(join(root, prefix))).filter((name) => REST.test(name));
    const found = await Promise.all(
      names.map(async (name): Promise<KeptContent[]> => {
        const found = keptAs(prefix + name, await stat(join(root, prefix, name)).catch(orGone));
        return found === null ? [] : [found];
      }),
    );
    return found.flat();
  }

  return {
    sweep: () => rm(temp, { recursive: true, force: true }),
    look: (hash) => keptAs(hash, statSync(pathOf(hash), { throwIfNoEntry: false })),
    async list(signal) {
      const prefixes = (await orNone(readdir(root))).filter((name) => PREFIX.test(name));
      const all: KeptContent[] = [];
      for (const prefix of prefixes) if (signal?.aborted !== true) all.push(...(await listPart(prefix)));
      return all;
    },
    async receive() {
      await mkdir(temp, OWN_DIRECTORY);
      const path = join(temp, randomUUID());
      const file = await open(path, "wx", OWN_FILE_MODE);
      return {
        async write(chunk) {
          for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
        },
        async keep(hash) {
          await file.sync();
          await file.close();
          await mkdir(join(root, hash.slice(0, 2)), OWN_DIRECTORY);
          await rename(path, pathOf(hash));
          await syncDirectory(join(root, hash.slice(0, 2)));
        },
        async drop() {
          await file.close().catch(() => {});
          await rm(path, { force: true });
        },
      };
    },
    async *read(hash) {
      const file = await open(pathOf(hash), "r");
      try {
        for (;;) {
          const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, null);
          if (bytesRead === 0) return;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await file.close();
      }
    },
    touch: (hash, at) => utimes(pathOf(hash), at / 1000, at / 1000),
    remove: (hash) => rm(pathOf(hash), { force: true }),
  };
}

const keptAs = (hash: string, seen: Stats | undefined): KeptContent | null =>
  seen?.isFile() === true ? { hash, size: seen.size, at: seen.mtimeMs } : null;

/** It may go while all are looked at. */
function orGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

async function orNone(reading: Promise<string[]>): Promise<string[]> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** A rename is durable when its directory is; where directories cannot be synced the system sees to it. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r").catch(() => null);
  await directory?.sync().catch(() => {});
  await directory?.close();
}

export function memoryMedium(): FileMedium {
  const contents = new Map<string, Buffer>();
  return {
    sweep: async () => {},
    list: async () => [],
    look: () => null,
    async receive() {
      const chunks: Uint8Array[] = [];
      return {
        async write(chunk) {
          chunks.push(Uint8Array.from(chunk));
        },
        async keep(hash) {
          contents.set(hash, Buffer.concat(chunks));
        },
        async drop() {},
      };
    },
    async *read(hash) {
      const content = contents.get(hash);
      if (content === undefined) throw Object.assign(new Error("no such content"), { code: "ENOENT" });
      yield content;
    },
    async touch() {},
    async remove(hash) {
      contents.delete(hash);
    },
  };
}
