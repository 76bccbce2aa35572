/**
 * Types of the wire: those of shapes/groups.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { UsageView } from "./usage.ts";

/** What lived of a group was cancelled. */
export type GroupCancelled = {
  /** How it stands now. */
  readonly status: "cancelled";
  /** The id of the group. */
  readonly groupId: string;
  /** How many tasks. */
  readonly count: number;
};

/** What did not go well of a group runs again. */
export type GroupRetried = {
  /** How it stands now. */
  readonly status: "submitted";
  /** The id of the group. */
  readonly groupId: string;
  /** How many tasks run again. */
  readonly count: number;
  /** How many cannot, since a task they need did not go well and does not run again. */
  readonly refused: number;
};

/** A group as Drover shows it. */
export type GroupView = {
  /** Its id. */
  readonly id: string;
  /** Those its tasks are in, as far as the caller may see them. */
  readonly projects: readonly string[];
  /** Its tasks by their state, also those whose records are gone. */
  readonly counts: {
    /** How many wait for other tasks, an artifact or an instant. */
    readonly waiting: number;
    /** How many wait for their turn. */
    readonly queued: number;
    /** How many a worker has and has not begun. */
    readonly assigned: number;
    /** How many run. */
    readonly running: number;
    /** How many are parked: they wait for somebody's word, or for their children. */
    readonly parked: number;
    /** How many are done. */
    readonly done: number;
    /** How many failed. */
    readonly failed: number;
    /** How many were cancelled. */
    readonly cancelled: number;
    /** How many were skipped. */
    readonly skipped: number;
  };
  /** How many there are in all. */
  readonly total: number;
  /** What the attempts of its tasks used in all. */
  readonly usage?: UsageView;
  /** When it was submitted. */
  readonly createdAt: string;
  /** When the last of them ended; absent while one has not. */
  readonly endedAt?: string;
};
