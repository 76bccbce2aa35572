/**
 * What a push worker's answer means for the task.
 *
 * 2xx is done, with the body as the result: parsed where it is JSON, text where it is text, base64 with its content
 * type where it is neither, nothing where it is empty; `{"again": true, "note": …}` asks for another round of its loop,
 * `{"ask": …}` asks a person, and `{"files": [{"path", "hash", "size"}], "result": …}` lists files that the worker has
 * put by the token of its attempt. Anything else is a failure with the status and the beginning of the body. Whether
 * the task is tried again depends on whose fault it was:
 *
 * - 429 and 529: of neither. It goes back to the queue, which counts against nothing, and the gate of its provider is
 *   shut for as long as the answer says.
 * - 503 with a Retry-After: the worker did not take it. It goes back to the queue for so long, at no cost to its
 *   attempts.
 * - 408, 409, 421, 423 and 425: of a moment. Tried again, as long as the task has attempts left.
 * - any other 4xx: the same request would get the same answer. It fails for good, whatever attempts are left.
 * - 5xx, and a redirect, which is not followed: tried again. A task with a tab has one attempt unless it asked for
 *   more, so a click is not repeated.
 */
import { isRecord, sentence } from "../../core/base/index.ts";
import { canonical, DroverError } from "../../engine/base/index.ts";
import { type FileRef, readShape } from "../../protocol/index.ts";
import { fileRefs } from "../../protocol/shapes/index.ts";
import { asked, isAgain, present, RESULT_BYTES_MAX } from "../../std/index.ts";

const ERROR_CHARACTERS = 1000;
const RETRY_AFTER_MS_MAX = 60 * 60_000;
/** Client errors that are about when, not about what. */
const OF_A_MOMENT: ReadonlySet<number> = new Set([408, 409, 421, 423, 425]);
const RATE_LIMITED: ReadonlySet<number> = new Set([429, 529]);

/** As much of a body as can matter: a whole result and a little more, to know that it is too much. */
export const ANSWER_BYTES_MAX: number = RESULT_BYTES_MAX;

export type PushAnswer = {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  readonly bytes: Uint8Array;
  /** The body was longer than what was read. */
  readonly isWhole: boolean;
};
export type PushOutcome =
  | { readonly outcome: "done"; readonly result?: unknown; readonly files?: readonly FileRef[] }
  | { readonly outcome: "again"; readonly note?: string }
  | { readonly outcome: "ask"; readonly question: string; readonly timeoutMs?: number }
  | { readonly outcome: "failed"; readonly error: string; readonly permanent?: true }
  | { readonly outcome: "requeue"; readonly error: string; readonly retryAfterMs: number; readonly rateLimited?: true };

export function outcomeOf(answer: PushAnswer): PushOutcome {
  const { status, retryAfterMs, isWhole } = answer;
  if (status >= 200 && status <= 299) return isWhole ? resultOf(answer) : tooLarge();
  const error = errorOf(answer);
  const rest = Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX);
  if (RATE_LIMITED.has(status)) return { outcome: "requeue", error, retryAfterMs: rest, rateLimited: true };
  if (status === 503 && retryAfterMs !== null) return { outcome: "requeue", error, retryAfterMs: rest };
  const isPermanent = status >= 400 && status <= 499 && !OF_A_MOMENT.has(status);
  return { outcome: "failed", error, ...(isPermanent ? { permanent: true } : {}) };
}

/** To ask again would bring the same bytes. */
const tooLarge = (): PushOutcome => ({
  outcome: "failed",
  error: `its result is over ${RESULT_BYTES_MAX} bytes; write more to an artifact and answer with its name`,
  permanent: true,
});

function resultOf({ bytes, contentType }: PushAnswer): PushOutcome {
  if (bytes.length === 0) return { outcome: "done" };
  const body = readBody(bytes, contentType);
  const question = asked(body);
  if (question !== null) return { outcome: "ask", ...question };
  if (isAgain(body)) return { outcome: "again", ...present({ note: body.note }) };
  const left = isLeft(body) ? readShape(fileRefs(), body.files) : null;
  if (left?.ok === false)
    return { outcome: "failed", error: `its files cannot be kept: ${sentence(left.failure)}`, permanent: true };
  const result = isLeft(body) ? body.result : body;
  const files = left === null ? {} : { files: left.value };
  if (result === undefined) return { outcome: "done", ...files };
  try {
    if (Buffer.byteLength(canonical(result, "result")) > RESULT_BYTES_MAX) return tooLarge();
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    return { outcome: "failed", error: `its result cannot be kept: ${error.message}`, permanent: true };
  }
  return { outcome: "done", result, ...files };
}

/** Whether an answer lists files that were put. What has anything else in it is a result. */
function isLeft(body: unknown): body is { readonly files: readonly unknown[]; readonly result?: unknown } {
  if (!isRecord(body) || !Array.isArray(body.files) || body.files.length === 0) return false;
  const isFile = (file: unknown): boolean =>
    isRecord(file) && Object.keys(file).sort().join() === "hash,path,size" && typeof file.hash === "string";
  return Object.keys(body).every((key) => key === "files" || key === "result") && body.files.every(isFile);
}

function readBody(bytes: Uint8Array, contentType: string): unknown {
  const text = textOf(bytes);
  if (text === null) return { contentType: contentType || "application/octet-stream", base64: toBase64(bytes) };
  // Text that happens to look like JSON, such as 123, was meant as text.
  if (/^text\/(?!json)/i.test(contentType)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text;
  }
}

const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return null;
  }
}

function errorOf({ status, bytes }: PushAnswer): string {
  const text = new TextDecoder().decode(bytes.subarray(0, ERROR_CHARACTERS * 4)).trim();
  const cut = text.length > ERROR_CHARACTERS ? `${text.slice(0, ERROR_CHARACTERS).toWellFormed()}…` : text;
  return cut === "" ? `HTTP ${status}` : `HTTP ${status}: ${cut}`;
}
