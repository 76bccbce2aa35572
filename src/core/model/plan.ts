/**
 * A plan, as the state keeps it: which tasks it has, how far they are, and whether it is paused (lifecycle/plans.ts).
 */

import type { AgentId, Instant, ProjectId, TaskId } from "../base/brand.ts";
import type { PhaseCounts } from "./phase.ts";

/** A task of a plan: its name there, and its id. */
export type PlanEntry = { readonly name: string; readonly id: TaskId };
/** Why a plan is paused: somebody asked for it, or one of its tasks failed and it fails fast. */
export type PauseCause = "asked" | "failed";

/** A plan that was put. Its tasks are those of its group that it names; the group may have what it had before, too. */
export type Plan = {
  readonly id: string;
  /** When it was first put. */
  readonly createdAt: Instant;
  /** The event that put it last, beside which its document lies, and when that was. */
  seq: number;
  putAt: Instant;
  /** The SHA-256 of its document; empty: a snapshot of an older version does not say. */
  documentHash: string;
  /** Who put it last; null: a log of an older version does not say. */
  agent: AgentId | null;
  /** The project of tasks that name none. */
  project: ProjectId;
  /** What paths in it start from; null: where its worker is. */
  directory: string | null;
  /** How often it was begun anew. */
  run: number;
  /** The first of its tasks that fails pauses it. */
  failsFast: boolean;
  paused: PauseCause | null;
  /** It fails fast and a task has failed: it is to be paused, as soon as it is not paused because somebody asked. */
  hasFailed: boolean;
  tasks: readonly PlanEntry[];
  members: ReadonlySet<TaskId>;
  /** Tasks of its document that were left out when it was put last, and that it has all the same. */
  others: ReadonlySet<TaskId>;
  /** How many of its tasks were done before they had a group. */
  adopted: number;
  /** How many of its tasks never came and will not, since it was cancelled: they count as cancelled. */
  dropped: number;
  /** Those of its tasks that are there, without the adopted ones. */
  counts: PhaseCounts;
  /** How many have not ended, or are not there yet. */
  open: number;
  /** When the last one ended; -1 while one has not. */
  endedAt: number;
  /** From when on its time is counted once it has ended: that end, or when it was put again after it. */
  keptSince: number;
};
