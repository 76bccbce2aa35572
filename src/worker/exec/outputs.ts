/**
 * What a command leaves for others: the files of its workspace that its task names.
 *
 * Nothing outside the workspace is ever read: no path leads out of it, and what is a symbolic link, or lies behind one,
 * is left alone, wherever it points. Only plain files count, so that no pipe or device holds up the worker, and of each
 * just as many bytes are read as it had when it was opened, however it grows. A name that is meant exactly and cannot
 * be kept is an error; of a pattern what cannot be kept is passed over, with a note in the log.
 *
 * The names are of whoever submits, who may be let to use one program and nothing else here. So where a worker does not
 * run lines of tasks, only what has changed since the command began counts, by a time that no command can set; and
 * what Drover itself keeps in the workspace never does: keys, logs, what other tasks were given.
 */
import { createHash } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { type FileHandle, lstat, open, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { FILE_BYTES_MAX, FILES_MAX } from "../../core/config/index.ts";
import type { FileSource } from "../../protocol/index.ts";
import { isSafePath, patternTest } from "../../std/index.ts";

/** What keeps the outputs of a task from being kept, in words; `permanent`: another attempt would not mend it. */
export class OutputTrouble extends Error {
  override readonly name: string = "OutputTrouble";
  readonly permanent: boolean;
  constructor(message: string, permanent: boolean = true) {
    super(message);
    this.permanent = permanent;
  }
}

type Keep = (path: string, source: FileSource) => Promise<unknown>;
/** Where files are looked for, and which count. */
type Place = {
  readonly root: string;
  /** Only what has changed since then; null: all. */
  readonly since: number | null;
  /** Drover's own directory, if it lies in there. */
  readonly own: string | null;
};

/** However many files a directory has, no more of it is looked at for one task. */
const LOOKED_AT_MAX = 100_000;
/** Not work; and in a worktree .git is a file that leads elsewhere. */
const NEVER: readonly string[] = [".git", ".drover"];
const CHUNK_BYTES = 256 * 1024;
const READ_ITSELF = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

export type CollectOptions = {
  readonly keep: Keep;
  readonly note: (text: string) => void;
  readonly since?: number | null;
  /** The data directory of the worker, which may lie in the workspace. */
  readonly data?: string | null;
};

/** Keeps every file that the patterns name, each once, in the order of their paths. */
export async function collectOutputs(
  patterns: readonly string[],
  workspace: string,
  { keep, note, since = null, data = null }: CollectOptions,
): Promise<void> {
  const root = await realpath(workspace);
  const own = data === null ? null : await realpath(data).catch(() => null);
  const place: Place = { root, since, own: own?.startsWith(`${root}${sep}`) === true ? own : null };
  const found = new Map<string, { readonly isExact: boolean }>();
  for (const pattern of patterns) {
    if (!isSafePath(pattern)) throw new OutputTrouble(`the output ${pattern} is no path inside the workspace`);
    const paths = isExact(pattern) ? [pattern] : await matching(place, pattern);
    for (const path of paths) found.set(path, { isExact: isExact(pattern) || found.get(path)?.isExact === true });
    if (found.size > FILES_MAX)
      throw new OutputTrouble(`the output ${pattern} names over ${FILES_MAX} files, and no task may leave so many`);
  }
  for (const path of [...found.keys()].sort()) {
    const refusal = await keepOne(place, path, keep);
    if (refusal === null) continue;
    if (found.get(path)?.isExact === true && refusal !== ABSENT)
      throw new OutputTrouble(`the output ${path} ${refusal}`);
    note(`the output ${path} ${refusal}`);
  }
}

const isExact = (pattern: string): boolean => !/[*?]/.test(pattern);

const ABSENT = "is not there";
const UNCHANGED =
  "was there before the command began, which has not changed it; a worker hands out such files only if it runs " +
  "lines of tasks too (--allow-until)";

const isOwn = ({ own }: Place, path: string): boolean => own !== null && `${path}${sep}`.startsWith(`${own}${sep}`);

/** Null if it is kept; else why not. */
async function keepOne(place: Place, path: string, keep: Keep): Promise<string | null> {
  const full = join(place.root, ...path.split("/"));
  if (path.split("/").some((part) => NEVER.includes(part)) || isOwn(place, full)) return "is git's own, or Drover's";
  if (!isSafePath(path)) return "has a name that is not safe on every machine";
  const seen = await lstat(full).catch(() => null);
  if (seen === null) return ABSENT;
  if ((await realpath(full).catch(() => null)) !== full) return "is a symbolic link, or lies behind one";
  if (!seen.isFile()) return "is not a plain file";
  if (place.since !== null && seen.ctimeMs < place.since) return UNCHANGED;
  const file = await open(full, READ_ITSELF);
  try {
    const opened = await file.stat();
    if (!opened.isFile() || opened.ino !== seen.ino || opened.dev !== seen.dev) return "was changed while it was read";
    if (opened.size > FILE_BYTES_MAX)
      throw new OutputTrouble(`the output ${path} has ${opened.size} bytes, and at most ${FILE_BYTES_MAX} are kept`);
    await keep(path, await sourceOf(file, opened.size));
    return null;
  } finally {
    await file.close();
  }
}

async function sourceOf(file: FileHandle, size: number): Promise<FileSource> {
  const digest = createHash("sha256");
  for await (const chunk of bytesOf(file, size)) digest.update(chunk);
  return { hash: digest.digest("hex"), size, bytes: () => bytesOf(file, size) };
}

/** Its first bytes, so many. */
async function* bytesOf(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const room = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
    const { bytesRead } = await file.read(room, 0, room.length, at);
    if (bytesRead === 0) throw new OutputTrouble("an output became shorter while it was read", false);
    at += bytesRead;
    yield room.subarray(0, bytesRead);
  }
}

/** The paths that a pattern names, below the part of it that names a directory exactly. */
async function matching(place: Place, pattern: string): Promise<string[]> {
  const parts = pattern.split("/");
  const start = parts.slice(
    0,
    parts.findIndex((part) => !isExact(part)),
  );
  const depthMax = parts.includes("**") ? Number.POSITIVE_INFINITY : parts.length;
  const isMeant = patternTest(pattern);
  const found: string[] = [];
  const directories = [start];
  let looked = 0;
  for (let at = directories.pop(); at !== undefined; at = directories.pop()) {
    for (const entry of await entriesOf(join(place.root, ...at))) {
      if (++looked > LOOKED_AT_MAX)
        throw new OutputTrouble(`the output ${pattern} takes a look at over ${LOOKED_AT_MAX} files; name less`);
      const path = [...at, entry.name];
      if (NEVER.includes(entry.name) || isOwn(place, join(place.root, ...path))) continue;
      // A link to a directory is not one.
      if (entry.isDirectory() && path.length < depthMax) directories.push(path);
      else if (!entry.isDirectory() && isMeant(path.join("/"))) found.push(path.join("/"));
    }
  }
  return found;
}

async function entriesOf(directory: string): Promise<Dirent[]> {
  // One that is a link, or is not there, has nothing to look at.
  if ((await realpath(directory).catch(() => null)) !== directory) return [];
  return readdir(directory, { withFileTypes: true }).catch(() => []);
}
