/**
 * What is said between the log and its thread: one request, one reply, matched by id.
 *
 * Apart from both, because importing the thread's own file would start it.
 */

import type { LogFailureCode } from "../log.ts";
import type { SqliteStore } from "./store.ts";

export type Operation = keyof SqliteStore;
export type Question<Op extends Operation> = Parameters<SqliteStore[Op]>[0];
export type Answer<Op extends Operation> = ReturnType<SqliteStore[Op]>;

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
