/**
 * The near end of the sqlite thread: questions go out, answers come back in order.
 *
 * The thread keeps the program alive only while a question is open; an idle log does not. If the thread
 * ends by itself, every open question is rejected with a failure that `isLostAnswer` knows: the log turns
 * that into "unknown" for an append, since nobody can say whether it was stored. A question asked after
 * that never left, and is plainly refused.
 */
import { Worker } from "node:worker_threads";
import { BrokenInvariant, seq } from "../../core/base/index.ts";
import { closedFailure, LogFailure, type LogFailureCode } from "../log.ts";
import type { DatabaseOptions } from "./database.ts";
import type { SqliteStore } from "./store.ts";

type Operation = keyof SqliteStore;
type Question<Op extends Operation> = Parameters<SqliteStore[Op]>[0];
type Answer<Op extends Operation> = ReturnType<SqliteStore[Op]>;

export type Request = { readonly id: number; readonly op: Operation | "close"; readonly input: unknown };

/** A failure as plain data; `code` is null for a bug of the caller. */
export type PostedFailure = {
  readonly code: LogFailureCode | null;
  readonly message: string;
  readonly seq: number | null;
};

/** The answer with id 0 tells how opening went. */
export type Reply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly failure: PostedFailure };

export const OPENING_ID = 0;

export type StoreThread = {
  ask<Op extends Operation>(op: Op, input: Question<Op>, moved?: readonly ArrayBuffer[]): Promise<Answer<Op>>;
  /** Whether the thread ended between a question and its answer. */
  isLostAnswer(error: unknown): boolean;
  close(): Promise<void>;
};

type Waiting = { resolve(value: unknown): void; reject(failure: Error): void };

export async function startStoreThread(options: DatabaseOptions): Promise<StoreThread> {
  const worker = new Worker(threadFile(), { workerData: options, execArgv: [] });
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  const line = createLine(worker);
  worker.on("message", (reply: Reply) => line.settle(reply));
  worker.on("error", (error) => line.lose(error.message));
  worker.on("exit", () => line.lose("it ended by itself"));
  try {
    await line.wait(OPENING_ID);
  } catch (error) {
    await worker.terminate();
    throw error;
  }
  let closing: Promise<void> | null = null;

  async function close(): Promise<void> {
    if (!line.isGone()) await line.send("close", null, []);
    worker.ref();
    await ended;
  }
  return {
    isLostAnswer: line.isLostAnswer,
    ask: (op, input, moved = []) =>
      closing === null ? (line.send(op, input, moved) as Promise<Answer<typeof op>>) : Promise.reject(closedFailure()),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** The open questions of one thread. */
function createLine(worker: Worker) {
  const waiting = new Map<number, Waiting>();
  let lastId = OPENING_ID;
  let lost: LogFailure | null = null; // The one object that open questions were rejected with.

  function wait(id: number): Promise<unknown> {
    worker.ref();
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }
  function send(op: Operation | "close", input: unknown, moved: readonly ArrayBuffer[]): Promise<unknown> {
    if (lost !== null) return Promise.reject(new LogFailure(lost.code, lost.message));
    const request: Request = { id: ++lastId, op, input };
    worker.postMessage(request, moved);
    return wait(request.id);
  }
  function settle(reply: Reply): void {
    const question = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if (reply.ok) question?.resolve(reply.value);
    else question?.reject(received(reply.failure));
  }
  function lose(cause: string): void {
    lost ??= new LogFailure("io", `the log's thread is gone: ${cause}. Open the log again.`);
    for (const { reject } of waiting.values()) reject(lost);
    waiting.clear();
  }
  const isLostAnswer = (error: unknown): boolean => lost !== null && error === lost;
  return { wait, send, settle, lose, isLostAnswer, isGone: () => lost !== null };
}

function received({ code, message, seq: at }: PostedFailure): Error {
  if (code === null) return new BrokenInvariant(message);
  return new LogFailure(code, message, at === null ? undefined : seq(at));
}

/** Beside this file, and of its kind: .ts in the sources, .js when compiled. */
function threadFile(): URL {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  return new URL(`./thread${extension}`, import.meta.url);
}
