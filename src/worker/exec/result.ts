/**
 * What a child has to say for itself, from the best place it said it.
 *
 * The result file first: it is written on purpose. Else the last `result` line, else the last line of stdout that is a
 * JSON object or list, else nothing but its output. A result is at most 256 KiB, as everywhere in Drover. A result
 * file that is no JSON, or too large, is an error in plain words: a child that went to the trouble of writing one
 * meant it, and its log line is no substitute.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { RESULT_BYTES_MAX } from "../../std/index.ts";

/** As deep as results may be everywhere in Drover. */
const DEPTH_MAX = 64;
/** A pipe put in the place of the file must not hold up the worker. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK;

export type Answer =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "none" }
  | { readonly kind: "bad"; readonly error: string; readonly permanent: boolean };

export async function readAnswer(said: {
  readonly file: string;
  readonly result: { readonly value: unknown } | null;
  readonly lastJson: { readonly value: unknown } | null;
}): Promise<Answer> {
  const inFile = await readResultFile(said.file);
  if (inFile.kind !== "none") return inFile;
  const value = said.result ?? said.lastJson;
  return value === null ? { kind: "none" } : bounded(value.value, "its result");
}

async function readResultFile(path: string): Promise<Answer> {
  const bytes = await readBounded(path);
  if (bytes === null) return { kind: "none" };
  if (typeof bytes === "string") return bad(bytes);
  if (bytes.length > RESULT_BYTES_MAX) return tooLarge("the result file", `over ${RESULT_BYTES_MAX}`);
  const text = bytes.toString("utf8");
  if (text.trim() === "") return bad("the result file is empty; it must hold JSON");
  try {
    return bounded(JSON.parse(text), "the result file");
  } catch (error) {
    return bad(`the result file is not JSON: ${(error as Error).message}`);
  }
}

/** At most one byte more than is allowed; a text that says what is wrong, or null if there is no file. */
async function readBounded(path: string): Promise<Buffer | string | null> {
  try {
    const file = await open(path, READ_WITHOUT_WAITING);
    try {
      if (!(await file.stat()).isFile()) return "the result file is not a plain file";
      const room = Buffer.alloc(RESULT_BYTES_MAX + 1);
      let size = 0;
      for (let read = -1; read !== 0 && size < room.length; size += read)
        read = (await file.read(room, size, room.length - size)).bytesRead;
      return room.subarray(0, size);
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? null : `the result file cannot be read: ${message}`;
  }
}

/** A value that JSON can carry back, and that is small enough. */
export function bounded(value: unknown, what: string): Answer {
  if (!isShallow(value)) return bad(`${what} is nested too deeply; at most ${DEPTH_MAX} levels are allowed`, true);
  const size = Buffer.byteLength(JSON.stringify(value) ?? "null");
  return size > RESULT_BYTES_MAX ? tooLarge(what, String(size)) : { kind: "value", value };
}

/** What is nested deeper can be read, and then not be written any more. */
export function isShallow(value: unknown, depth: number = 0): boolean {
  if (depth > DEPTH_MAX) return false;
  return (
    typeof value !== "object" || value === null || Object.values(value).every((item) => isShallow(item, depth + 1))
  );
}

const bad = (error: string, permanent = false): Answer => ({ kind: "bad", error, permanent });
const tooLarge = (what: string, size: string): Answer =>
  bad(
    `${what} has ${size} bytes; at most ${RESULT_BYTES_MAX} are allowed: write more to a file and return its name`,
    true,
  );
