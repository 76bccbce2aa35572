/**
 * Types of the wire: those of shapes/plans.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { TaskState } from "../wire/task-state.ts";
import type { UsageView } from "./usage.ts";

/** Tasks of a plan were cancelled, or run again. */
export type PlanChanged = {
  /** Its id. */
  readonly id: string;
  /** The group of its tasks, with all that it had before. */
  readonly groupId: string;
  /** Of tasks that name none. */
  readonly project: string;
  /** Paused only while something of it has not ended. */
  readonly state: PlanState;
  /** Its tasks by their state. */
  readonly counts: Readonly<Record<string, number>>;
  /** How many there are in all. */
  readonly total: number;
  /** When it was first put. */
  readonly createdAt: string;
  /** When it was last put. */
  readonly putAt: string;
  /** When the last of them ended; absent while one has not. */
  readonly endedAt?: string;
  /** Why it is paused: somebody asked, or it fails fast. */
  readonly pausedBy?: "asked" | "failed";
  /** What the attempts of its tasks used in all. */
  readonly usage?: UsageView;
  /** What paths in it start from. */
  readonly directory?: string;
  /** How many tasks were cancelled or run again. */
  readonly count: number;
};

/** A page of plans. */
export type PlanPage = {
  /** The one that was put last comes first. */
  readonly plans: readonly PlanSummary[];
  /** Of this page. */
  readonly count: number;
  /** Where to go on. Absent on the last page, and only there. */
  readonly nextCursor?: string;
};

/** What putting a plan came to. */
export type PlanPut = {
  /** Its id. */
  readonly id: string;
  /** The group of its tasks, with all that it had before. */
  readonly groupId: string;
  /** Of tasks that name none. */
  readonly project: string;
  /** Paused only while something of it has not ended. */
  readonly state: PlanState;
  /** Its tasks by their state. */
  readonly counts: Readonly<Record<string, number>>;
  /** How many there are in all. */
  readonly total: number;
  /** When it was first put. */
  readonly createdAt: string;
  /** When it was last put. */
  readonly putAt: string;
  /** When the last of them ended; absent while one has not. */
  readonly endedAt?: string;
  /** Why it is paused: somebody asked, or it fails fast. */
  readonly pausedBy?: "asked" | "failed";
  /** What the attempts of its tasks used in all. */
  readonly usage?: UsageView;
  /** What paths in it start from. */
  readonly directory?: string;
  /** The last event that this is as of: those behind it say what has changed. */
  readonly seq: number;
  /** Each behind all that it needs. */
  readonly tasks: readonly PlanTaskView[];
  /** What was put last, if it was asked for and the log has it still. */
  readonly document?: Readonly<Record<string, unknown>>;
  /** How many tasks are new. */
  readonly submitted: number;
  /** How many had not ended well and run again. */
  readonly retried: number;
  /** How many stay as they are: done, under way, or left as they ended. */
  readonly kept: number;
  /** How many were live and are no part of it any more. */
  readonly cancelled: number;
  /** What the caller should know, in sentences. */
  readonly warnings: readonly string[];
};

/** What else is told of a plan. */
export type PlanQuery = {
  /** Whether the answer has the document that was put. Default: false. */
  readonly document?: boolean;
};

/** A plan was forgotten. */
export type PlanStatus = {
  /** How it stands now. */
  readonly status: "removed";
  /** Its id. */
  readonly id: string;
};

/** A plan as it is listed. */
export type PlanSummary = {
  /** Its id. */
  readonly id: string;
  /** The group of its tasks, with all that it had before. */
  readonly groupId: string;
  /** Of tasks that name none. */
  readonly project: string;
  /** Paused only while something of it has not ended. */
  readonly state: PlanState;
  /** Its tasks by their state. */
  readonly counts: Readonly<Record<string, number>>;
  /** How many there are in all. */
  readonly total: number;
  /** When it was first put. */
  readonly createdAt: string;
  /** When it was last put. */
  readonly putAt: string;
  /** When the last of them ended; absent while one has not. */
  readonly endedAt?: string;
  /** Why it is paused: somebody asked, or it fails fast. */
  readonly pausedBy?: "asked" | "failed";
  /** What the attempts of its tasks used in all. */
  readonly usage?: UsageView;
  /** What paths in it start from. */
  readonly directory?: string;
};

/** A task of a plan. */
export type PlanTaskView = {
  /** In the plan. */
  readonly name: string;
  /** The id of the task. */
  readonly taskId: string;
  /** The names of those it waits for. */
  readonly needs: readonly string[];
  /** Where the task stands. */
  readonly state: TaskState;
  /** The number of the last attempt; 0 before the first. */
  readonly attempt: number;
  /** When its attempt began; absent while it waits for another one. */
  readonly startedAt?: string;
  /** When it ended. */
  readonly endedAt?: string;
  /** Why it did not go well, or what it asks. */
  readonly reason?: string;
  /** What its attempts used in all, as they said at their ends. */
  readonly usage?: UsageView;
  /** Of a loop: which round it is in, of how many. */
  readonly round?: {
    /** Which round. */
    readonly number: number;
    /** How many there may be. */
    readonly max: number;
  };
  /** How many tasks name it as their parent. */
  readonly children?: number;
};

/** A plan as Drover shows it. */
export type PlanView = {
  /** Its id. */
  readonly id: string;
  /** The group of its tasks, with all that it had before. */
  readonly groupId: string;
  /** Of tasks that name none. */
  readonly project: string;
  /** Paused only while something of it has not ended. */
  readonly state: PlanState;
  /** Its tasks by their state. */
  readonly counts: Readonly<Record<string, number>>;
  /** How many there are in all. */
  readonly total: number;
  /** When it was first put. */
  readonly createdAt: string;
  /** When it was last put. */
  readonly putAt: string;
  /** When the last of them ended; absent while one has not. */
  readonly endedAt?: string;
  /** Why it is paused: somebody asked, or it fails fast. */
  readonly pausedBy?: "asked" | "failed";
  /** What the attempts of its tasks used in all. */
  readonly usage?: UsageView;
  /** What paths in it start from. */
  readonly directory?: string;
  /** The last event that this is as of: those behind it say what has changed. */
  readonly seq: number;
  /** Each behind all that it needs. */
  readonly tasks: readonly PlanTaskView[];
  /** What was put last, if it was asked for and the log has it still. */
  readonly document?: Readonly<Record<string, unknown>>;
};

/** Which page of plans. */
export type PlansQuery = {
  /** How many at most. Default: 100. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
};

/** How a plan is put. */
export type PutPlanQuery = {
  /**
   * Only these tasks and what they need, as in only=build,test; a task with for stands for all its
   * values.
   */
  readonly only?: readonly string[];
  /** Whether what failed or was skipped is run again. Default: true. */
  readonly retryFailed?: boolean;
  /** The first task that fails pauses the plan. Default: false. */
  readonly failFast?: boolean;
  /** Nothing counts as done: all of it is run again. Default: false. */
  readonly fresh?: boolean;
  /** The absolute path that paths in it start from; absent: the directory of the worker that runs a task. */
  readonly directory?: string;
};

/** Paused only while something of it has not ended. */
export type PlanState = "running" | "paused" | "done" | "failed" | "cancelled";
