/**
 * Types of the wire: those of shapes/scheduler.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { SchedulerRules } from "../../core/config/index.ts";
import type { PriorityName } from "./tasks.ts";

/** How much of each list. */
export type LineQuery = {
  /** How many of each list. Default: 50. */
  readonly limit?: number;
};

/** What runs and what starts next. */
export type LineView = {
  /** The number of the last event: nothing has happened while it stays the same. */
  readonly seq: number;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** How many wait for something other than their turn. */
  readonly waiting: number;
  /** Calls that met a window or a block when they asked, and 429s reported. */
  readonly rateLimited: number;
  /** Whether a window or a block holds a gate now. */
  readonly isRateLimited: boolean;
  /** The tasks. */
  readonly tasks: LinePart;
  /** The calls of all gates. */
  readonly calls: LinePart;
};

/** What to pause; neither of them: the whole fleet. */
export type PauseBody = {
  /** This project alone. */
  readonly project?: string;
  /** This task alone. */
  readonly task?: string;
};

/** What is paused, or goes on. */
export type PauseStatus = {
  /** How it stands now. */
  readonly status: "paused" | "active";
  /** The project it is of. */
  readonly project?: string;
  /** The task it is about. */
  readonly task?: string;
};

/** Who waits. */
export type QueueView = {
  /** Whether it is paused. */
  readonly paused: boolean;
  /** How many wait for something other than their turn. */
  readonly waiting: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** How many may run at once. */
  readonly maxInFlight: number;
  /** In the order of their turn. */
  readonly projects: readonly ProjectQueue[];
};

/** Queues, totals and the rules in force. */
export type Stats = {
  /** What waits and what runs. */
  readonly queue: {
    /** Waiting and queued tasks. What is parked is neither; GET /pulse has it. */
    readonly totalQueued: number;
    /** Assigned and running tasks. */
    readonly totalInflight: number;
    /** Those of totalQueued that wait for a dependency, an artifact or an instant. */
    readonly waiting: number;
    /** By agent, over all its projects: its share of totalQueued and of totalInflight. */
    readonly agents: Readonly<
      Record<
        string,
        {
          /** Its share of totalQueued. */
          readonly queued: number;
          /** Its share of totalInflight. */
          readonly inflight: number;
        }
      >
    >;
  };
  /** Totals since the log began. */
  readonly metrics: {
    /**
     * Every submit, rejected ones included, and each try of one: a client that meets a full queue tries
     * five times. It is kept over restarts.
     */
    readonly tasksSubmitted: number;
    /** Tasks that were done. */
    readonly tasksCompleted: number;
    /** Tasks that failed. */
    readonly tasksFailed: number;
    /** Tasks that were cancelled. */
    readonly tasksCancelled: number;
    /** Tasks that were skipped, since a dependency did not end as done. */
    readonly tasksSkipped: number;
    /**
     * Tries that found no room, up to a second ago: of one task there may be several, and it may be in by
     * now. Kept over restarts. The log has their number, not the tasks.
     */
    readonly tasksRejected: number;
    /** Tasks whose deadline passed while they waited. */
    readonly tasksExpired: number;
    /** Starts. */
    readonly dispatchCount: number;
    /** How long a task waits for its start, on average. */
    readonly avgDispatchLatencyMs: number;
    /** How long an attempt runs, on average. */
    readonly avgRunMs: number;
    /** Each of the agents. */
    readonly agents: Readonly<Record<string, AgentTotals>>;
  };
  /** The files that tasks have left. */
  readonly files: {
    /** Contents that are kept for tasks. */
    readonly count: number;
    /** Their bytes. */
    readonly bytes: number;
  };
  /** The scheduler section in force. Spans are whole milliseconds. */
  readonly config: SchedulerRules;
};

/** What became of the tasks of an agent. */
export type AgentTotals = {
  /** How many were submitted. */
  readonly submitted: number;
  /** How many were done. */
  readonly completed: number;
  /** How many failed. */
  readonly failed: number;
  /** How many were cancelled. */
  readonly cancelled: number;
  /** How many were turned away. */
  readonly rejected: number;
};

/** The queues of a project. */
export type ProjectQueue = {
  /** The project it is of. */
  readonly project: string;
  /** How it stands now. */
  readonly status: "active" | "paused";
  /** What it was charged ÷ its weight: the lowest goes first. */
  readonly level: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** Each of the agents. */
  readonly agents: readonly AgentQueue[];
};

/** The queue of an agent. */
export type AgentQueue = {
  /** The agent it is of. */
  readonly agentId: string;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** The first few, in the order they would start. */
  readonly next: readonly QueuedTask[];
};

/** A task that waits for its turn. */
export type QueuedTask = {
  /** The id of the task. */
  readonly taskId: string;
  /** Its type. */
  readonly type: string;
  /** Its priority; lower goes first. */
  readonly priority: number;
  /** Its score; higher goes first. */
  readonly score: number;
  /** How long it has waited. */
  readonly waitMs: number;
};

/** The tasks. */
export type LinePart = {
  /** How many run. */
  readonly inFlight: number;
  /** How many may be out now; of calls, the sum of the gates that are used now, or of all where none is. */
  readonly maxInFlight: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many were done. */
  readonly completed: number;
  /** How long those that were let out waited, on average. */
  readonly avgWaitMs: number;
  /** How long they were out, on average. */
  readonly avgRunMs: number;
  /** Those that are out, in the order of their start. */
  readonly running: readonly LineEntry[];
  /**
   * Those that wait for their turn, as it would come if nothing else happened; those that are held come
   * last.
   */
  readonly next: readonly LineEntry[];
  /** Tasks that failed; their runs count in the averages too. */
  readonly failed?: number;
  /** Of calls, the gates: those that are used now first. */
  readonly gates?: readonly LineGate[];
};

/** A task or a call that is out or waits for its turn. */
export type LineEntry = {
  /** The task, or the permit of the call. */
  readonly id: string;
  /** How urgent it is. */
  readonly class: PriorityName;
  /** How long it has run, or waited for its turn. */
  readonly ms: number;
  /** The project it is of. */
  readonly project: string;
  /** The agent it is of. */
  readonly agentId?: string;
  /** Its type. */
  readonly type?: string;
  /** Where it runs. */
  readonly worker?: string;
  /** The gate of a call. */
  readonly gate?: string;
  /** The task that makes the call, if one does. */
  readonly task?: string;
  /** What holds a queued task, as in its view. */
  readonly held?: "never-fits" | "budget" | "no-workers";
};

/** What a gate lets out, and what waits at it. */
export type LineGate = {
  /** Its id. */
  readonly id: string;
  /** Its calls that are out. */
  readonly inFlight: number;
  /** How many may be out now; calls that went out before a limit sank still count. */
  readonly maxInFlight: number;
  /** Its calls that wait. */
  readonly queued: number;
};
