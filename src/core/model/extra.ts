/**
 * What few tasks have: the rounds of a loop, an approval. A task without has no such object (`TaskExtra` in state.ts).
 */

import type { Instant } from "../base/brand.ts";
import type { TaskSubmitted } from "./events.ts";

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
};

/** What somebody is asked about a task, or has said. */
export type Approval = {
  /** As it was submitted, until it is given. */
  required: TaskSubmitted["approval"];
  question: string | null;
  /** -1: there is time for ever */
  until: number;
  given: { readonly note: string | null; readonly at: Instant } | null;
};
