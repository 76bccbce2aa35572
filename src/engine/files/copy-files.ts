/**
 * Taking the files of tasks along when a log was copied into a directory.
 *
 * What the tasks of the copied log list, and what is not in the directory yet, is fetched one by one from wherever the
 * log came from. Each content is compared with its hash before it stands under it, so a copy that was broken off goes
 * on with what is missing. None may have more bytes than its task says.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { openSqliteLog } from "../../log/sqlite/index.ts";
import { FILES_DIRECTORY, listedIn, type MissingFile } from "./files.ts";
import { directoryMedium, type FileMedium } from "./medium.ts";

/** What became of the files. */
export type FilesCopied = {
  /** How many came over this time, and their bytes. */
  readonly files: number;
  readonly fileBytes: number;
  /** Those that a task lists and that could not be had, or were something else. */
  readonly missing: readonly (MissingFile & { readonly why: string })[];
};
type FileCopyOptions = {
  /** The content with this hash, where the log came from. */
  readonly open: (hash: string) => AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  /** So many files are there, of so many that will be. */
  readonly onProgress: (done: number, total: number) => void;
};

/** Fetches what the log in a directory lists and the directory has not. Nobody else may use it meanwhile. */
export async function copyFiles(directory: string, options: FileCopyOptions): Promise<FilesCopied> {
  const { open, signal, onProgress } = options;
  await using log = await openSqliteLog({ directory });
  const medium = directoryMedium(join(directory, FILES_DIRECTORY));
  const listed = await listedIn(log);
  if (listed.size === 0) return { files: 0, fileBytes: 0, missing: [] };
  await medium.sweep();
  const there = new Set((await medium.list()).map(({ hash }) => hash));
  const wanted = [...listed].filter(([hash]) => !there.has(hash));
  const missing: FilesCopied["missing"][number][] = [];
  let fileBytes = 0;
  for (const [index, [hash, { size, ...by }]] of wanted.entries()) {
    signal.throwIfAborted();
    try {
      await take(medium, { hash, size, content: open(hash), signal });
      fileBytes += size;
    } catch (error) {
      signal.throwIfAborted();
      missing.push({ hash, ...by, why: error instanceof Error ? error.message : String(error) });
    }
    onProgress(index + 1, wanted.length);
  }
  return { files: wanted.length - missing.length, fileBytes, missing };
}

type Arriving = {
  readonly hash: string;
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
};
async function take(medium: FileMedium, { hash, size, content, signal }: Arriving): Promise<void> {
  const sink = await medium.receive();
  const digest = createHash("sha256");
  let got = 0;
  try {
    for await (const chunk of content) {
      signal.throwIfAborted();
      got += chunk.length;
      if (got > size) break;
      digest.update(chunk);
      await sink.write(chunk);
    }
    if (got !== size || digest.digest("hex") !== hash) throw new Error("what came is another content");
    await sink.keep(hash);
  } catch (error) {
    await sink.drop();
    throw error;
  }
}
