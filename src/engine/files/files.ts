/**
 * The files that tasks leave, kept by content beside the log.
 *
 * The log has their names, hashes and sizes; here are their bytes, once for each content. A content that some readable
 * task lists stays. One that none lists goes an hour after it came, so that an attempt has time to report it; one that
 * was put for an attempt that still runs stays as long. All together are bounded: what does not fit is refused, and
 * the attempt that wanted to leave it comes back later.
 *
 * Nothing is believed of the disk: a content is compared with its hash before a byte of it is handed out. One that
 * differs is dropped, so that it may be put again, and who asks hears that it is damaged.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { invariant, isKeptForOthers, isSha256, sizeText } from "../../core/base/index.ts";
import type { FileRules } from "../../core/config/index.ts";
import type { FileRef, State } from "../../core/model/index.ts";
import type { Log } from "../../log/index.ts";
import type { FileContent, StoredFile } from "../../protocol/index.ts";
import { isSafePath } from "../../std/index.ts";
import { badInput, DroverError } from "../base/drover-error.ts";
import { recover } from "../writer/recovery.ts";
import {
  countedSize,
  createContents,
  type FileTotals,
  type ForAttempt,
  type OfLife,
  type Parts,
  projectOf,
} from "./contents.ts";
import { type ArrivingContent, directoryMedium, type FileMedium } from "./medium.ts";
import { takeIn } from "./take-in.ts";

/** What may be kept, also as it comes, once. */
type Given = FileContent | AsyncIterable<Uint8Array>;

/** A content, checked, as it is read. */
export type OpenFile = {
  /** In bytes. */
  readonly size: number;
  /** The content. */
  readonly bytes: AsyncIterable<Uint8Array>;
};
/** Whose files. */
export type OpenFileOptions = {
  /** Of this task, or of one that it needs: then also their results. Absent: of any task. */
  readonly task?: string;
  /** Whether the files of a task may be read. */
  readonly mayRead?: (task: { readonly agentId: string; readonly project: string }) => boolean;
};

/** The files of tasks, for the program that embeds Drover. */
export type Files = {
  /** Keeps a content; a task lists it when an attempt reports it. With a hash, the content must have that one. */
  put(content: Given, options?: { readonly hash?: string } & Partial<ForAttempt>): Promise<StoredFile>;
  /** The content with this hash. */
  get(hash: string): Promise<Buffer>;
  /** The same as it is read, checked before; with options, for a caller that may not read all of it. */
  open(hash: string, options?: OpenFileOptions): Promise<OpenFile>;
  /** Whether the content with this hash is here. */
  has(hash: string): boolean;
  /** How much is kept; of what was there at the start, as much as is counted. */
  totals(): FileTotals;
  /** Resolves when all that was there at the start is counted. */
  counted(): Promise<void>;
};
/** What is wrong with the files of a report: another attempt may mend that a content is missing, and nothing else. */
export type FilesFault = { readonly isMissing: boolean; readonly why: string };
export type FileRoom = Omit<Files, "open"> & {
  open(hash: string): Promise<OpenFile>;
  faultOf(files: readonly FileRef[]): FilesFault | null;
  /** Goes by the state of this life from now on. The first time it begins to count what there is. */
  serve(life: OfLife): void;
  stop(): Promise<void>;
};

/** Where contents lie, in a data directory. */
export const FILES_DIRECTORY = "files";

export function createFiles(parts: Parts): FileRoom {
  const { medium, clock, onWarning } = parts;
  let life: OfLife | null = null;
  function present(): OfLife {
    invariant(life !== null, "files serve a life");
    return life;
  }
  const contents = createContents(parts, present);
  const rules = (): FileRules => present().state.config.files;
  /** What is on its way in and has room: of all, and of each project. */
  let arriving = 0;
  const arrivingOf = new Map<string | null, number>();
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(({ message, cause }: DroverError) => onWarning(`${message}: ${String(cause)}`));

  function serve(next: OfLife): void {
    const isFirst = life === null;
    life = next;
    if (isFirst) contents.load().then(ready.resolve, (cause: unknown) => ready.reject(uncounted(cause)));
  }

  async function put(content: Given, options: { hash?: string } & Partial<ForAttempt> = {}): Promise<StoredFile> {
    const { hash: wanted, task, attempt } = options;
    if (wanted !== undefined) checkHash(wanted);
    const by = task === undefined || attempt === undefined ? null : { task, attempt };
    const project = projectOf(present().state, by);
    // How much there may still be is known when all is counted.
    await ready.promise;
    let taken = 0;
    const take = async (bytes: number): Promise<void> => {
      if (isFull(project, bytes, taken)) await contents.prune();
      if (isFull(project, bytes, taken)) throw noRoom(project, bytes);
      taken += bytes;
      noteArriving(project, bytes);
    };
    const admit = (bytes: number, size: number): Promise<void> => {
      if (size > rules().maxFile) throw tooLarge(rules().maxFile);
      return take(bytes);
    };
    const end = async (came: StoredFile, sink: ArrivingContent): Promise<StoredFile> => {
      await take(countedSize(came.size) - came.size);
      if (wanted !== undefined && wanted !== came.hash)
        throw badInput("hash", wanted, `that of the content, which is ${came.hash}`);
      await keep(came, by, sink);
      return came;
    };
    try {
      return await takeIn(medium, { content: chunksOf(content), admit, end });
    } finally {
      noteArriving(project, -taken);
    }
  }

  async function keep({ hash, size }: StoredFile, by: ForAttempt | null, sink: ArrivingContent): Promise<void> {
    await contents.removed(hash);
    if (contents.find(hash) === undefined) {
      await sink.keep(hash);
      return contents.note(hash, size, by);
    }
    // At once: in a moment it may be so old that it goes.
    contents.note(hash, size, by);
    await sink.drop();
    await medium.touch(hash, clock.now()).catch(() => {});
  }

  function noteArriving(project: string | null, bytes: number): void {
    arriving += bytes;
    const sum = (arrivingOf.get(project) ?? 0) + bytes;
    if (sum > 0) arrivingOf.set(project, sum);
    else arrivingOf.delete(project);
  }

  /** The last tenth is kept for projects that have put little; what a content itself has taken does not count. */
  function isFull(project: string | null, more: number, taken: number): boolean {
    const [used, { maxTotal }] = [contents.counted() + arriving + more, rules()];
    if (used > maxTotal || project === null) return used > maxTotal;
    return isKeptForOthers(maxTotal, used, contents.countedOf(project) + (arrivingOf.get(project) ?? 0) - taken);
  }

  function noRoom(project: string | null, more: number): DroverError {
    const { maxTotal } = rules();
    const whose = contents.counted() + arriving + more > maxTotal ? "" : ` of project ${project}`;
    const bound = `all files together may have ${sizeText(maxTotal)} (files.maxTotal)`;
    const message = `${bound}, and there is no room for more${whose}`;
    return new DroverError("over_capacity", message, { details: { maxTotal, ...contents.totals() } });
  }

  async function open(hash: string): Promise<OpenFile> {
    checkHash(hash);
    const entry = contents.find(hash);
    if (entry === undefined) {
      if (present().state.files.has(hash)) throw damaged(hash, "is not there");
      throw unknownFile(hash);
    }
    const { size } = entry;
    if (await isSound(medium, hash)) return { size, bytes: medium.read(hash) };
    onWarning(`the file ${hash} is not what was stored; it is dropped`);
    // That it is damaged is the answer, whatever else fails.
    await ready.promise.catch(() => {});
    await contents.drop(hash).catch((error: unknown) => onWarning(`the file ${hash} stays: ${String(error)}`));
    throw damaged(hash, "is not what was stored");
  }

  async function get(hash: string): Promise<Buffer> {
    const { bytes } = await open(hash);
    return buffer(bytes);
  }

  function faultOf(files: readonly FileRef[]): FilesFault | null {
    const { maxTask, maxFilesPerTask } = rules();
    const fault = (why: string, isMissing = false): FilesFault => ({ isMissing, why });
    if (files.length > maxFilesPerTask)
      return fault(`it leaves ${files.length} files, and at most ${maxFilesPerTask} are kept (files.maxFilesPerTask)`);
    const sum = files.reduce((total, { size }) => total + size, 0);
    if (sum > maxTask) return fault(`its files have ${sum} bytes, and at most ${maxTask} are kept (files.maxTask)`);
    const clash = clashIn(files);
    if (clash !== null) return fault(`its file ${clash} cannot be kept: another has that path, or is a part of it`);
    const missing = files.find(({ hash, size }) => contents.find(hash)?.size !== size);
    return missing === undefined ? null : fault(`its file ${missing.path} was not put`, true);
  }

  const has = (hash: string): boolean => contents.find(hash) !== undefined;
  const counted = (): Promise<void> => ready.promise;
  return { serve, put, get, open, has, totals: contents.totals, counted, faultOf, stop: contents.stop };
}

/** A content as it lies in a data directory, checked. Nothing there is touched. */
export async function readContent(data: string, hash: string): Promise<AsyncIterable<Uint8Array>> {
  const medium = directoryMedium(join(data, FILES_DIRECTORY));
  if (!(await isSound(medium, hash))) throw damaged(hash, "is not there, or not what was stored");
  return medium.read(hash);
}

/** Whether what lies there is what its name says. */
async function isSound(medium: FileMedium, hash: string): Promise<boolean> {
  const digest = createHash("sha256");
  try {
    for await (const chunk of medium.read(hash)) digest.update(chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return digest.digest("hex") === hash;
}

/** What is wrong with the files of a data directory. */
export type FilesReport = {
  /** How many contents there are. */
  readonly count: number;
  /** The hashes of those that are not what was stored. */
  readonly damaged: readonly string[];
  /** Those that a task lists and that are not there. */
  readonly missing: readonly MissingFile[];
};
export type MissingFile = { readonly hash: string; readonly task: string; readonly path: string };
type Listed = { readonly task: string; readonly path: string; readonly size: number };

/**
 * Looks at every content of a data directory, and at what tasks list in this state of its log; touches none. Without a
 * log there are no tasks. A server may run meanwhile.
 */
export async function verifyFiles(
  data: string,
  read: { readonly log: Log; readonly state: State } | null,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<FilesReport> {
  const medium = directoryMedium(join(data, FILES_DIRECTORY));
  const damaged: string[] = [];
  const listed = read === null ? new Map<string, Listed>() : listedBy(read.state);
  const all = await medium.list();
  for (const [index, { hash }] of all.entries()) {
    if (!(await isSound(medium, hash))) damaged.push(hash);
    onProgress(index + 1, all.length);
  }
  // One that was removed meanwhile is none, and one that no task lists any more may be gone.
  const left = new Set((await medium.list()).map(({ hash }) => hash));
  const absent = [...listed].filter(([hash]) => !left.has(hash));
  const still = absent.length === 0 || read === null ? listed : await listedIn(read.log);
  return {
    count: all.length,
    damaged: damaged.filter((hash) => left.has(hash)),
    missing: absent.filter(([hash]) => still.has(hash)).map(([hash, { task, path }]) => ({ hash, task, path })),
  };
}

/** Every content that a task lists, with one of these tasks, its name there and its size. */
export const listedIn = async (log: Log): Promise<Map<string, Listed>> => listedBy((await recover(log)).state);

function listedBy(state: State): Map<string, Listed> {
  const listed = new Map<string, Listed>();
  for (const [hash, [task]] of state.files) {
    const file = task?.extra?.files?.find((one) => one.hash === hash);
    if (task !== undefined && file !== undefined) listed.set(hash, { task: task.id, path: file.path, size: file.size });
  }
  return listed;
}

/** A path that is there twice, or that is a file and a directory. */
function clashIn(files: readonly FileRef[]): string | null {
  const paths = new Set<string>();
  for (const { path } of files) {
    if (!isSafePath(path) || paths.has(path)) return path;
    paths.add(path);
  }
  for (const { path } of files)
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1))
      if (paths.has(path.slice(0, at))) return path;
  return null;
}

async function* chunksOf(content: Given): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield Buffer.from(content);
  else if (content instanceof Uint8Array) yield content;
  else if (typeof content === "object" && content !== null && Symbol.asyncIterator in content) yield* content;
  else if (typeof content === "object" && content !== null && typeof content.bytes === "function")
    yield* content.bytes();
  else throw badInput("content", content, "text, bytes, or a source of bytes");
}

function checkHash(hash: string): void {
  if (!isSha256(hash)) throw badInput("hash", hash, "a SHA-256 as 64 hex digits");
}

export const unknownFile = (hash: string): DroverError =>
  new DroverError("not_found", `no file has the hash ${hash}`, { details: { hash } });
const tooLarge = (maxFile: number): DroverError =>
  new DroverError("too_large", `a file may have ${sizeText(maxFile)} (files.maxFile), and this one has more`, {
    details: { maxFile },
  });
/** Whoever asks is told the sentence, and not what the file system says of its paths. */
const uncounted = (cause: unknown): DroverError =>
  new DroverError("over_capacity", "the files of tasks could not be counted; until the next start none is taken in", {
    cause,
  });
const damaged = (hash: string, how: string): DroverError =>
  new DroverError("damaged", `the file ${hash} ${how}; run drover verify`, { details: { hash } });
