/**
 * A file of bounded size that keeps the beginning and the end of what is written to it.
 *
 * The beginning says what was started and how, the end says how it went; of a long run the middle is what one can do
 * without. The first half of the room is the file itself. After that lines go to a second file, and when that has a
 * quarter of the room it becomes the older one and a third begins, so between one and two quarters of the latest
 * lines are always there. On close they are put together into one file with a line that says what is missing.
 *
 * Writing never holds up the writer: one write is under way, what comes meanwhile gathers, and if the disk is so slow
 * that too much gathers, lines are dropped and counted. A disk that refuses (full, read-only) ends the keeping, not the
 * run. The last lines are read from the end backwards, over the parts of which the file consists while it is being
 * written (or after a crash left it so), and begin with a whole line.
 */
import { type FileHandle, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { OWN_FILE_MODE } from "../../std/index.ts";

type CappedFile = {
  /** A whole line, with its newline. */
  write(line: string): void;
  /** Resolves when all that was written so far is in the file. */
  flushed(): Promise<void>;
  close(): Promise<void>;
  readonly failure: Error | null;
};

const GATHERED_BYTES_MAX = 8 * 1024 * 1024;

const olderPart = (path: string): string => `${path}.older`;
const newerPart = (path: string): string => `${path}.newer`;

export function createCappedFile(path: string, bytesMax: number): CappedFile {
  const store = createStore(path, bytesMax);
  const gathered = { lines: [] as string[], bytes: 0, droppedBytes: 0 };
  let failure: Error | null = null;
  let work: Promise<void> | null = null;

  function write(line: string): void {
    if (failure !== null) return;
    gathered.lines.push(line);
    gathered.bytes += Buffer.byteLength(line);
    if (gathered.bytes > GATHERED_BYTES_MAX) thin();
    work ??= drain();
  }

  /** Here too the middle goes: what may belong to the beginning stays, and of the rest the later half. */
  function thin(): void {
    const sizes = gathered.lines.map((text) => Buffer.byteLength(text));
    const first = countWithin(sizes, GATHERED_BYTES_MAX / 4);
    const count = Math.ceil((sizes.length - first) / 2);
    gathered.lines.splice(first, count);
    const dropped = sizes.slice(first, first + count).reduce((sum, size) => sum + size, 0);
    gathered.bytes -= dropped;
    gathered.droppedBytes += dropped;
  }

  function take(): string[] {
    gathered.bytes = 0;
    return gathered.lines.splice(0);
  }

  async function drain(): Promise<void> {
    try {
      await Promise.resolve(); // What is written in the same turn goes out together.
      while (gathered.lines.length > 0) await store.keep(take());
    } catch (error) {
      failure = error as Error;
      take();
    } finally {
      work = null;
    }
  }

  async function flushed(): Promise<void> {
    while (work !== null) await work;
  }

  async function close(): Promise<void> {
    await flushed();
    try {
      await store.close(gathered.droppedBytes);
    } catch (error) {
      failure ??= error as Error;
    }
  }

  return {
    write,
    flushed,
    close,
    get failure() {
      return failure;
    },
  };
}

/** How many of the first ones make up no more than the limit. */
function countWithin(sizes: readonly number[], limit: number): number {
  let sum = 0;
  const over = sizes.findIndex((size) => {
    sum += size;
    return sum > limit;
  });
  return over < 0 ? sizes.length : over;
}

type Part = { readonly handle: FileHandle; bytes: number };
type Store = { keep(lines: readonly string[]): Promise<void>; close(droppedBytes: number): Promise<void> };

function createStore(path: string, bytesMax: number): Store {
  const [headMax, partMax] = [Math.floor(bytesMax / 2), Math.floor(bytesMax / 4)];
  const size = { older: 0, lost: 0 };
  let head: Part | null = null;
  let newer: Part | null = null;

  async function keep(lines: readonly string[]): Promise<void> {
    head ??= await openNew(path);
    const first = newer === null ? await keepInHead(head, lines) : 0;
    if (first < lines.length) await keepInParts(lines.slice(first));
  }

  /** Answers how many lines it could still take. */
  async function keepInHead(part: Part, lines: readonly string[]): Promise<number> {
    const sizes = lines.map((line) => Buffer.byteLength(line));
    const count = countWithin(sizes, headMax - part.bytes);
    part.bytes += sizes.slice(0, count).reduce((sum, bytes) => sum + bytes, 0);
    await part.handle.appendFile(lines.slice(0, count).join(""));
    return count;
  }

  async function keepInParts(lines: readonly string[]): Promise<void> {
    newer ??= await openNew(newerPart(path));
    const hopeless = await passOver(lines);
    let batch: string[] = [];
    for (const line of lines.slice(hopeless)) {
      const bytes = Buffer.byteLength(line);
      if (newer.bytes > 0 && newer.bytes + bytes > partMax) {
        await newer.handle.appendFile(batch.join(""));
        batch = [];
        newer = await turnOver(newer);
      }
      batch.push(line);
      newer.bytes += bytes;
    }
    await newer.handle.appendFile(batch.join(""));
  }

  /**
   * Of more lines than two parts can hold the first would be written only to be thrown away, and all that is there
   * with them. Answers how many those are, having let go of what is there.
   */
  async function passOver(lines: readonly string[]): Promise<number> {
    const sizes = lines.map((line) => Buffer.byteLength(line)).reverse();
    const count = lines.length - Math.max(1, countWithin(sizes, partMax * 2));
    if (newer === null || count === 0) return 0;
    size.lost += sizes.slice(lines.length - count).reduce((sum, bytes) => sum + bytes, size.older + newer.bytes);
    size.older = 0;
    await newer.handle.close();
    await rm(olderPart(path), { force: true });
    newer = await openNew(newerPart(path));
    return count;
  }

  async function turnOver(full: Part): Promise<Part> {
    await full.handle.close();
    size.lost += size.older;
    size.older = full.bytes;
    await rename(newerPart(path), olderPart(path));
    return await openNew(newerPart(path));
  }

  async function close(droppedBytes: number): Promise<void> {
    const parts = [head, newer];
    head = newer = null;
    for (const part of parts) await part?.handle.close();
    const lost = size.lost + droppedBytes;
    if (parts[1] !== null || lost > 0) await putTogether(path, lost);
  }

  return { keep, close };
}

async function openNew(path: string): Promise<Part> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return { handle: await open(path, "w", OWN_FILE_MODE), bytes: 0 };
}

/** The parts go behind the beginning, and are parts no more. */
async function putTogether(path: string, lostBytes: number): Promise<void> {
  const parts = [olderPart(path), newerPart(path)];
  const whole = await open(path, "a", OWN_FILE_MODE);
  try {
    if (lostBytes > 0) await whole.appendFile(`[… ${lostBytes} bytes are left out here …]\n`);
    for (const part of parts) await whole.appendFile(await readFile(part).catch(orNothing));
  } finally {
    await whole.close();
  }
  for (const part of parts) await rm(part, { force: true });
}

function orNothing(error: NodeJS.ErrnoException): Buffer {
  if (error.code === "ENOENT") return Buffer.alloc(0);
  throw error;
}

export type TailSize = {
  readonly bytes?: number;
  readonly lines?: number;
  /** Its task was submitted so long ago: what was last written before is of another that had the same id. */
  readonly taskAgeMs?: number;
};
export type Tail = {
  readonly text: string;
  /** Whether something stands before it that is not shown. */
  readonly isCut: boolean;
};

const TAIL_BYTES_DEFAULT: number = 64 * 1024;
const TAIL_BYTES_MAX: number = 1024 * 1024;

/** A file's time and the span have come different ways. */
const AGE_SLACK_MS = 60_000;

/** Null if there is no such file, or none so young. */
export async function readTail(path: string, size: TailSize): Promise<Tail | null> {
  const wanted = Math.min(
    TAIL_BYTES_MAX,
    size.bytes ?? (size.lines === undefined ? TAIL_BYTES_DEFAULT : TAIL_BYTES_MAX),
  );
  const pieces: Buffer[] = [];
  let room = wanted;
  let [isCut, writtenAt] = [false, Number.NEGATIVE_INFINITY];
  for (const part of [newerPart(path), olderPart(path), path]) {
    const piece = await readEnd(part, room);
    if (piece === null) continue;
    writtenAt = Math.max(writtenAt, piece.writtenAt);
    isCut ||= piece.isCut;
    pieces.unshift(piece.bytes);
    room -= piece.bytes.length;
  }
  const oldest = size.taskAgeMs === undefined ? 0 : Date.now() - size.taskAgeMs - AGE_SLACK_MS;
  return writtenAt < oldest ? null : lastLines(Buffer.concat(pieces), isCut, size.lines);
}

type Piece = { readonly bytes: Buffer; readonly isCut: boolean; readonly writtenAt: number };

async function readEnd(path: string, room: number): Promise<Piece | null> {
  try {
    const file = await open(path, "r");
    try {
      const { size, mtimeMs: writtenAt } = await file.stat();
      const length = Math.min(size, room);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return { bytes: buffer.subarray(0, bytesRead), isCut: length < size, writtenAt };
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function lastLines(bytes: Buffer, isCut: boolean, linesMax: number | undefined): Tail {
  const firstWhole = isCut ? bytes.indexOf("\n") + 1 : 0;
  const text = bytes.toString("utf8", firstWhole);
  return linesMax === undefined ? { text, isCut } : takeLines(text, linesMax, isCut);
}

export function takeLines(text: string, linesMax: number, isCut: boolean): Tail {
  const lines = text.split("\n");
  const count = text.endsWith("\n") ? lines.length - 1 : lines.length;
  if (count <= linesMax) return { text, isCut };
  return { text: lines.slice(count - linesMax).join("\n"), isCut: true };
}
