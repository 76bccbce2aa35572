/**
 * How a handler asks a person: its attempt ends, its task is parked, and the next attempt sees what was answered.
 */
import { isRecord } from "../core/base/index.ts";
import { spanOf } from "./retry-after.ts";

/** Thrown by `context.ask`: a handler lets it pass. */
export class TaskAsk extends Error {
  override readonly name: string = "TaskAsk";
  /** How long there is to answer; null: for ever. */
  readonly timeoutMs: number | null;
  constructor(question: string, { timeoutMs = null }: AskOptions = {}) {
    super(question);
    const read = timeoutMs === null ? null : spanOf(timeoutMs);
    if (timeoutMs !== null && (read === null || read < 1))
      throw Object.assign(new RangeError(`timeoutMs is ${timeoutMs}, and must be milliseconds from 1`), {
        permanent: true,
      });
    this.timeoutMs = read === null ? null : Math.ceil(read);
  }
}

/** How long there is to answer. */
export type AskOptions = {
  /** After so many milliseconds without an answer the task has failed; null or absent: never. */
  readonly timeoutMs?: number | null;
};
/** Asks a person: the attempt ends here, and the next one sees `task.approval`. */
export type Ask = (question: string, options?: AskOptions) => never;

export const ask: Ask = (question, options) => {
  throw new TaskAsk(String(question), options);
};

/** What a push worker answers to ask. What has anything else in it is a result. */
export function asked(value: unknown): { readonly question: string; readonly timeoutMs?: number } | null {
  if (!isRecord(value) || typeof value.ask !== "string") return null;
  const { ask: question, timeoutMs, ...rest } = value;
  if (Object.keys(rest).length > 0 || (timeoutMs !== undefined && !Number.isSafeInteger(timeoutMs))) return null;
  return typeof timeoutMs === "number" && timeoutMs > 0 ? { question, timeoutMs } : { question };
}
