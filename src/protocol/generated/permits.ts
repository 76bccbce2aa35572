/**
 * Types of the wire: those of shapes/permits.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { PriorityName } from "./tasks.ts";
import type { Usage } from "./workers.ts";

/** Which session gives the permit up. */
export type DropQuery = {
  /**
   * The session that joining gave. A worker token must say it, and reaches the permits of that session
   * only.
   */
  readonly session?: string;
  /** Only if nobody has heard that it was granted: a call that is out stays out. */
  readonly unheard?: boolean;
};

/** What became of a gate. */
export type GateStatus = {
  /** How it stands now. */
  readonly status: "reset" | "removed";
  /** The gate it is about. */
  readonly gate: string;
};

/** A request for the right to make one call. */
export type PermitBody = {
  /** The provider account, such as anthropic/default. */
  readonly gate: string;
  /** Chosen by the caller, and not of the form p and a number. The same id again is the same ticket. */
  readonly id?: string;
  /** The project it is of. */
  readonly project?: string;
  /** Absent: by the task, else as the gate says. At most what the project's maxPriority allows. */
  readonly class?: PriorityName;
  /** What the call is expected to use. */
  readonly tokens?: number;
  /** The task on whose reservation it draws, with attempt. */
  readonly taskId?: string;
  /** The number of the attempt. */
  readonly attempt?: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /** How long to wait for the grant. Default: 0. */
  readonly waitMs?: number;
  /**
   * The permit of the same call that was settled as rateLimited: this one takes its position in the
   * queue.
   */
  readonly again?: string;
  /**
   * The session that joining gave. A worker token must say it, and reaches the permits of that session
   * only.
   */
  readonly session?: string;
};

/** What became of a permit. */
export type PermitStatus = {
  /** How it stands now. */
  readonly status: "settled" | "dropped";
  /** The id of the permit. */
  readonly permitId: string;
};

/** A permit, or the place of one that waits. */
export type PermitView = {
  /** The id of the permit. */
  readonly permitId: string;
  /** The gate it is about. */
  readonly gate: string;
  /**
   * queued: others go first; rate-limited: a window or a block is in its way. It keeps its position
   * either way: ask again with the same id, within some seconds, or drop it.
   */
  readonly status: "granted" | "queued" | "rate-limited";
  /** A permit that is not settled returns by itself then. */
  readonly expiresAt?: string;
  /** Its position in the queue. */
  readonly position?: number;
  /** queued: position × the mean time calls took (30 s until known) ÷ maxConcurrent. */
  readonly estimatedWaitMs?: number;
  /** rate-limited: when the window or the block may let it go. */
  readonly retryAfterMs?: number;
};

/** What came of a call. */
export type SettleBody = {
  /** Whether the call succeeded. Default: true. */
  readonly ok?: boolean;
  /** Absent: it is charged at its estimate. */
  readonly usage?: Usage;
  /**
   * The provider said 429 or 529, and how long to wait. Of an agent at most 10 minutes are believed,
   * else a day.
   */
  readonly rateLimited?: {
    /** How long to rest first. */
    readonly retryAfterMs: number;
  };
  /**
   * The session that joining gave. A worker token must say it, and reaches the permits of that session
   * only.
   */
  readonly session?: string;
};
