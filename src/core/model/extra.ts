/**
 * What few tasks have: the rounds of a loop, an approval. A task without has no such object (`TaskExtra` in state.ts).
 * And how a task ended, and what submits tasks.
 */

import type { Instant, ScheduleId, TaskId } from "../base/brand.ts";
import type { FileRef, TaskSubmitted, UsageTotals } from "./events.ts";

/** A task that runs again until its work is good, so often at most. */
export type Loop = {
  readonly max: number;
  /** Those that have ended since it was submitted or last retried. */
  rounds: Round[];
};
/** One go of a loop that has ended. */
export type Round = {
  readonly iteration: number;
  readonly attempt: number;
  readonly outcome: "again" | "done";
  /** What it left for the next; cut short once there is a later one. */
  note: string | null;
  /** Tokens it used; null if that is unknown. */
  readonly tokens: number | null;
  /** The same in detail; null if its worker did not say. */
  readonly usage: UsageTotals | null;
};

/** What one attempt used, as its worker said at its end. */
export type AttemptUsage = { readonly attempt: number; readonly worker: string; readonly usage: UsageTotals };

/** What somebody is asked about a task, or has said. */
export type Approval = {
  /** As it was submitted, until it is given. */
  required: TaskSubmitted["approval"];
  question: string | null;
  /** -1: there is time for ever */
  until: number;
  given: { readonly note: string | null; readonly at: Instant } | null;
  /** The attempt that asked; 0: none did, or a snapshot of an older version does not say. */
  askedBy: number;
};

/** How a task ended. */
export type End = {
  readonly at: Instant;
  /** The event that ended it. */
  readonly seq: number;
  readonly error: string | null;
  readonly resultHash: string | null;
  readonly resultSize: number;
  readonly resultSeq: number | null;
};

/** What few tasks had when they ended. */
export type EndedExtra = {
  readonly usage: UsageTotals | null;
  readonly attempts: readonly AttemptUsage[] | null;
  readonly loop: { readonly max: number; readonly rounds: readonly Readonly<Round>[] } | null;
  readonly files: readonly FileRef[] | null;
  readonly approval: Readonly<Approval> | null;
  readonly group: { readonly group: { readonly id: string } } | null;
};

/** What submits a task at each of its instants. */
export type Schedule = {
  readonly id: ScheduleId;
  body: string;
  /** null: none is left. */
  nextAt: Instant | null;
  lastAt: Instant | null;
  lastTask: TaskId | null;
};
