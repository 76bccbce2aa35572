/**
 * Taking the files of tasks along when a log was copied into a directory.
 *
 * What the tasks of the copied log list, and what is not in the directory yet, is fetched one by one from wherever the
 * log came from. Each content is compared with its hash before it stands under it, so a copy that was broken off goes
 * on with what is missing. None may have more bytes than its task says.
 */
import { join } from "node:path";
import { openSqliteLog } from "../../log/sqlite/index.ts";
import type { StoredFile } from "../../protocol/index.ts";
import { FILES_DIRECTORY, listedIn, type MissingFile } from "./files.ts";
import { directoryMedium, type FileMedium } from "./medium.ts";
import { takeIn } from "./take-in.ts";

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

type Wanted = StoredFile & { readonly content: AsyncIterable<Uint8Array>; readonly signal: AbortSignal };

function take(medium: FileMedium, { hash, size: wanted, content, signal }: Wanted): Promise<void> {
  const another = (): Error => new Error("what came is another content");
  return takeIn(medium, {
    content,
    admit(_, size) {
      signal.throwIfAborted();
      if (size > wanted) throw another();
    },
    async end(came, sink) {
      if (came.size !== wanted || came.hash !== hash) throw another();
      await sink.keep(hash);
    },
  });
}
