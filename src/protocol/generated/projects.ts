/**
 * Types of the wire: those of shapes/projects.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { PriorityName } from "./tasks.ts";
import type { UsageView } from "./usage.ts";

/** A gate with its totals and its calls. */
export type GateDetail = {
  /** Its id. */
  readonly id: string;
  /** How many are out. */
  readonly running: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many may run now: maxConcurrent, or fewer while it recovers. */
  readonly limit: number;
  /** How many may be out at once. */
  readonly maxConcurrent: number;
  /** The provider said 429 or 529: nothing goes out until then. */
  readonly blockedUntil?: string;
  /** Episodes of 429 in a row. */
  readonly throttles: number;
  /** How many may be out while it recovers from a 429; null: it has recovered. */
  readonly slowStart: number | null;
  /** How many calls may start in any window. */
  readonly requests: number;
  /** How many calls started in the window that ends now. */
  readonly requestsUsed: number;
  /** How long the window of requests is. */
  readonly windowMs: number;
  /** What was used of each token window. */
  readonly tokensUsed: {
    /** Tokens in a minute; null: not limited. */
    readonly perMinute: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
    /** Tokens in an hour; null: not limited. */
    readonly perHour: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
    /** Tokens in a day; null: not limited. */
    readonly perDay: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
  };
  /** Tokens set aside for calls that are out or wait. */
  readonly tokensReserved: number;
  /** What holds the next call, if anything does. */
  readonly held: string | null;
  /** When time alone may let it go. */
  readonly heldUntil?: string;
  /** What it has done altogether. */
  readonly stats: GateStats;
  /** The calls that are out, then those that wait. */
  readonly calls: readonly GateCall[];
};

/** All gates. */
export type GateList = {
  /** All of them. */
  readonly gates: readonly GateJson[];
  /** How many there are. */
  readonly count: number;
};

/** Settings of a project. What is absent keeps its value. */
export type ProjectBody = {
  /** Its share among the projects that have work. */
  readonly weight?: number;
  /** How many of its tasks run at once. */
  readonly maxConcurrent?: number;
  /** Its token budget. */
  readonly budget?: {
    /** Tokens in the window; null: as many as it likes. */
    readonly limit?: number | null;
    /** How long the budget's window is; it slides. */
    readonly window?: number | string;
  };
  /** The most urgent its tasks and calls may be; −200 opens the express lane. */
  readonly maxPriority?: number | PriorityName;
  /** The gate of tasks that name none. */
  readonly provider?: string | null;
  /** What it may store in a minute, such as 256MiB; null: as much as it likes. */
  readonly bytesPerMinute?: number | string | null;
};

/** All projects. */
export type ProjectList = {
  /** All of them. */
  readonly projects: readonly ProjectView[];
  /** How many there are. */
  readonly count: number;
  /** The budget of all together; absent for a token that is scoped to some. */
  readonly fleet?: {
    /** Its token budget. */
    readonly budget: {
      /** The most there may be; null: not limited. */
      readonly limit: number | null;
      /** Milliseconds. */
      readonly window: number;
    };
    /** Tokens in the budget's window. */
    readonly spent: number;
    /**
     * When the first of it leaves the window, and the budget has more room by the clock alone; absent
     * where there is no limit or nothing was spent.
     */
    readonly freesAt?: string;
    /** Tokens set aside for what runs now, and for calls outside a task that wait or are out. */
    readonly reserved: number;
  };
};

/** A project as Drover shows it. */
export type ProjectView = {
  /** Its id. */
  readonly id: string;
  /** Its share among the projects that have work. */
  readonly weight: number;
  /** How many may be out at once. */
  readonly maxConcurrent: number;
  /** Its token budget. */
  readonly budget: {
    /** The most there may be; null: not limited. */
    readonly limit: number | null;
    /** Milliseconds. */
    readonly window: number;
  };
  /** The most urgent its tasks and calls may be. */
  readonly maxPriority: number;
  /** The gate of tasks that name none. */
  readonly provider: string | null;
  /** What it may store in a minute; null: as much as it likes. */
  readonly bytesPerMinute: number | null;
  /** How it stands now. */
  readonly status: "active" | "paused";
  /** Waiting and queued tasks. What is parked is neither. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** Charged ÷ weight, halved every half life: the lowest goes first. */
  readonly level: number;
  /** What it was charged within fairness.window ÷ what all were; 0 if nothing was. */
  readonly share: number;
  /** Its weight ÷ the weights of all. */
  readonly target: number;
  /** Target − share: positive if it got less than its weight entitles it to. */
  readonly deficit: number;
  /** Tokens and start costs it was charged altogether, calls included; what runs at its estimate. */
  readonly charged: number;
  /** Tokens in the budget's window. */
  readonly spent: number;
  /**
   * When the first of it leaves the window, and the budget has more room by the clock alone; absent
   * where there is no limit or nothing was spent.
   */
  readonly freesAt?: string;
  /** What attempts of its tasks used in all, as they said at their ends. */
  readonly usage?: UsageView;
  /** Tokens set aside for what runs now, and for calls outside a task that wait or are out. */
  readonly reserved: number;
};

/** A gate as Drover shows it. */
export type GateJson = {
  /** Its id. */
  readonly id: string;
  /** How many are out. */
  readonly running: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many may run now: maxConcurrent, or fewer while it recovers. */
  readonly limit: number;
  /** How many may be out at once. */
  readonly maxConcurrent: number;
  /** The provider said 429 or 529: nothing goes out until then. */
  readonly blockedUntil?: string;
  /** Episodes of 429 in a row. */
  readonly throttles: number;
  /** How many may be out while it recovers from a 429; null: it has recovered. */
  readonly slowStart: number | null;
  /** How many calls may start in any window. */
  readonly requests: number;
  /** How many calls started in the window that ends now. */
  readonly requestsUsed: number;
  /** How long the window of requests is. */
  readonly windowMs: number;
  /** What was used of each token window. */
  readonly tokensUsed: {
    /** Tokens in a minute; null: not limited. */
    readonly perMinute: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
    /** Tokens in an hour; null: not limited. */
    readonly perHour: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
    /** Tokens in a day; null: not limited. */
    readonly perDay: {
      /** The most there may be; null: not limited. */
      readonly limit: number;
      /** How much was used. */
      readonly used: number;
    } | null;
  };
  /** Tokens set aside for calls that are out or wait. */
  readonly tokensReserved: number;
  /** What holds the next call, if anything does. */
  readonly held: string | null;
  /** When time alone may let it go. */
  readonly heldUntil?: string;
};

/** What it has done altogether. */
export type GateStats = {
  /** Calls that were let out. */
  readonly scheduled: number;
  /** Calls that came back; those whose permit ran out are not counted. */
  readonly completed: number;
  /** Calls that met a window or a block when they asked, and 429s reported. */
  readonly rateLimited: number;
  /** The waits of all that were let out. */
  readonly waitMs: number;
  /** The time all that came back were out. */
  readonly serviceMs: number;
  /** The most that ever waited at once. */
  readonly peakQueued: number;
  /** The most that were ever out at once. */
  readonly peakRunning: number;
};

/** A call that is out or waits. */
export type GateCall = {
  /** Its permit. */
  readonly id: string;
  /** How urgent it is. */
  readonly class: PriorityName;
  /** Where the task stands. */
  readonly state: "running" | "queued";
  /** Since it was let out, or since it was first asked for. */
  readonly seconds: number;
  /** The project it is of. */
  readonly project: string;
  /** The task that makes the call, if one does. */
  readonly task?: string;
};
