/**
 * The last lines of an attempt's output, from its files.
 *
 * They are read from the end backwards, over the parts of which the file consists while it is being written (or after
 * a crash left it so), and begin with a whole line.
 */
import { open } from "node:fs/promises";
import { newerPart, olderPart } from "./capped-file.ts";

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

export const TAIL_BYTES_DEFAULT: number = 64 * 1024;
export const TAIL_BYTES_MAX: number = 1024 * 1024;

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
