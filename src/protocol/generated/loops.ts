/**
 * Types of the wire: those of shapes/loops.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { RoundUsage } from "./usage.ts";

/** Where a loop is. */
export type CurrentRound = {
  /** Which round this is, from 1. */
  readonly number: number;
  /** How many there may be. */
  readonly max: number;
  /** What the round before left for this one. */
  readonly note?: string;
};

/** How often a task may run again, and until when. */
export type Loop = {
  /**
   * For exec workers: a shell line that is run in the workspace when the command has ended with 0. With
   * exit code 0 the task is done; otherwise what it printed is the note for the next round.
   */
  readonly until?: string;
  /** How many rounds there may be; the task fails when the last was not enough. */
  readonly max: number;
};

/** A round of a loop that has ended. */
export type Round = {
  /** The iteration of the task that it was. */
  readonly iteration: number;
  /** How the attempt ended. */
  readonly outcome: "again" | "done";
  /** What it left for the next; cut short once there is a later one. */
  readonly note?: string;
  /** What it used, as far as its worker said; absent if that is unknown. */
  readonly usage?: RoundUsage;
};
