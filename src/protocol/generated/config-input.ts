/**
 * The config as people write it in TypeScript.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** What runs next, and where. */
export type SchedulerInput = {
  /** Running tasks, whole fleet. Default: 50. */
  readonly maxInFlight?: number;
  /** Running tasks of one agent, over all its projects. Default: 10. */
  readonly maxPerAgentInFlight?: number;
  /** Waiting and queued tasks, whole fleet. Default: 100000. */
  readonly maxQueue?: number;
  /** Waiting and queued tasks of one agent, over all its projects. Default: 10000. */
  readonly maxPerAgent?: number;
  /** Tasks in one batch. Default: 50. */
  readonly maxBatch?: number;
  /** How long a task that is done or was cancelled is kept at hand. Default: 5m. */
  readonly resultTtl?: number | string;
  /** How many of those are kept at hand. Default: 100000. */
  readonly resultMax?: number;
  /** How long a task that failed or was skipped is kept at hand, and can run again. Default: 24h. */
  readonly failedTtl?: number | string;
  /** How many of those are kept at hand. Default: 10000. */
  readonly failedMax?: number;
  /** How long a plan that has ended is known, with the records of its tasks. Default: 7d. */
  readonly planTtl?: number | string;
  /** How many plans are known; of who has the most, what ended first is forgotten first. Default: 1000. */
  readonly plansMax?: number;
  /** How long the id of an ended task stays taken. Default: 24h. */
  readonly remember?: number | string;
  /**
   * Running tasks of one type; null takes a limit out. Default:
   * {"plan":2,"spec":5,"phase":20,"code":50}.
   */
  readonly perType?: Readonly<Record<string, number | null>>;
  /** The express lane. */
  readonly critical?: {
    /** Tasks of the express lane at once. Default: 5. */
    readonly maxInFlight?: number;
  };
  /** The score of a task. */
  readonly priority?: {
    /**
     * The base score of each type; null takes one out. Default:
     * {"plan":40,"spec":60,"phase":80,"code":100,"ralph":100,"other":100}.
     */
    readonly base?: Readonly<Record<string, number | null>>;
    /** What each minute of waiting adds. Default: 1. */
    readonly agePerMinute?: number;
    /** What waiting adds at most. Default: 50. */
    readonly ageMax?: number;
    /** What each ancestor adds. Default: 10. */
    readonly depthBoost?: number;
    /** What each further iteration takes. Default: 5. */
    readonly retryPenalty?: number;
    /** What iterations take at most. Default: 30. */
    readonly retryMax?: number;
    /** Who waits so long goes first in its queue. Default: 1h. */
    readonly starvationAfter?: number | string;
  };
  /** Whose turn it is. */
  readonly fairness?: {
    /** How projects take turns. Default: level. */
    readonly rule?: "level" | "deficit";
    /** Whether the agents of a project take turns. Default: fair. */
    readonly agents?: "fair" | "none";
    /** How fast what a project was charged is forgotten. Default: 10m. */
    readonly halfLife?: number | string;
    /** What a start costs, in tokens. Default: 1000. */
    readonly startCost?: number;
    /** The charge of a task without an estimate. Default: 10000. */
    readonly defaultTokens?: number;
    /** For the deficit rule: the window of the shares. Default: 24h. */
    readonly window?: number | string;
  };
  /** Which worker. */
  readonly placement?: {
    /** Which of the workers that fit gets a task. Default: least-loaded. */
    readonly strategy?: "least-loaded" | "round-robin" | "random" | "affinity" | "best-fit";
    /** Affinity as the first tie-break of the others. Default: false. */
    readonly preferLocality?: boolean;
    /** Tasks a worker may hold beyond its slots. Default: 0. */
    readonly maxQueuePerWorker?: number;
    /** How long a preferred busy worker is waited for. Default: 2m. */
    readonly affinityWait?: number | string;
    /** When a task fails whose tab no worker owns. Default: 1m. */
    readonly unresolvedAfter?: number | string;
  };
  /** When callers are slowed down or turned away. */
  readonly backpressure?: {
    /** Tasks a worker is good for; null: not counted. Default: null. */
    readonly perWorker?: number | null;
    /** Usage from which tasks are refused. Default: 1. */
    readonly rejectThreshold?: number;
    /** Usage above which callers are asked to slow down. Default: 0.5. */
    readonly throttleAt?: number;
    /** Whether tasks are taken with no worker there. Default: true. */
    readonly acceptWithoutWorkers?: boolean;
  };
  /** Another attempt. */
  readonly retry?: {
    /** The rest after the first failure; it doubles. Default: 1s. */
    readonly base?: number | string;
    /** The longest rest; at least base. Default: 5m. */
    readonly max?: number | string;
    /** Attempts lost by no fault of their task. Default: 5. */
    readonly maxLosses?: number;
    /** How often a worker may give a task back. Default: 100. */
    readonly maxRequeues?: number;
  };
};

/** A project. */
export type ProjectInput = {
  /** Its share among the projects that have work. Default: 1. */
  readonly weight?: number;
  /** How many of its tasks run at once. Default: 50. */
  readonly maxConcurrent?: number;
  /** A token budget. */
  readonly budget?: BudgetInput;
  /** The most urgent its tasks and calls may be; critical opens the express lane. Default: high. */
  readonly maxPriority?: number | "critical" | "high" | "normal" | "low";
  /** The gate of tasks that name none. Default: null. */
  readonly provider?: string | null;
  /** What it may store in a minute: bodies, results, events; null: as much as it likes. Default: 256MiB. */
  readonly bytesPerMinute?: number | string | null;
};

/** A gate. */
export type GateInput = {
  /** Calls that are out at once. Default: 10. */
  readonly maxConcurrent?: number;
  /** Calls in any window. Default: 50. */
  readonly requests?: number;
  /** The window of requests; it slides. Default: 1m. */
  readonly window?: number | string;
  /** Token windows. */
  readonly tokens?: {
    /** Tokens in a minute; null: not limited. Default: null. */
    readonly perMinute?: number | null;
    /** Tokens in an hour; null: not limited. Default: null. */
    readonly perHour?: number | null;
    /** Tokens in a day; null: not limited. Default: null. */
    readonly perDay?: number | null;
    /** fixed: restarts at the first use after its end. Default: sliding. */
    readonly kind?: "sliding" | "fixed";
  };
  /** Of calls that say none. Default: normal. */
  readonly defaultPriority?: "critical" | "high" | "normal" | "low";
  /** Waiting so long counts as one class more urgent. Default: 1m. */
  readonly agingPerClass?: number | string;
  /** A permit that is not given back returns after this. Default: 10m. */
  readonly permitTtl?: number | string;
};

/** The token budget of all projects together. */
export type BudgetInput = {
  /** Tokens in the window; null: as many as wanted. Default: null. */
  readonly limit?: number | null;
  /** The window slides. Default: 24h. */
  readonly window?: number | string;
};

/**
 * What differs from the defaults. Spans are milliseconds, or text with a unit: 250ms, 30s, 5m, 24h,
 * 30d.
 */
export type ConfigInput = {
  /** What runs next, and where. */
  readonly scheduler?: SchedulerInput;
  /** The token budget of all projects together. */
  readonly budget?: BudgetInput;
  /** Who pays; each by its name. */
  readonly projects?: {
    /** Whether a project that is not registered is created. Default: true. */
    readonly autoCreate?: boolean;
    /** What a project has that says nothing else. */
    readonly default?: ProjectInput;
    /** Others, each by its name. */
    readonly [name: string]: ProjectInput | boolean | undefined;
  };
  /** Provider accounts and other scarce things; each by its name, such as anthropic/default. */
  readonly gates?: {
    /** What a gate has that says nothing else. */
    readonly default?: GateInput;
    /** Others, each by its name. */
    readonly [name: string]: GateInput | undefined;
  };
  /** Who executes. */
  readonly workers?: {
    /** A worker silent for so long is given up. Default: 10s. */
    readonly lease?: number | string;
    /** Worktrees an exec worker keeps at most. Default: 50. */
    readonly maxWorktrees?: number;
    /** How long a task that must stop may take to end. Default: 10s. */
    readonly killGrace?: number | string;
    /** How often missing input artifacts are looked for. Default: 1s. */
    readonly artifactPoll?: number | string;
  };
  /** The files that tasks wait for. */
  readonly artifacts?: {
    /** The directory that input artifacts lie under; null: where the server was started. Default: null. */
    readonly root?: string | null;
    /** Whether an input artifact may be any path. Default: false. */
    readonly anywhere?: boolean;
  };
  /** The files that tasks leave. */
  readonly files?: {
    /** The largest file a task may leave. Default: 64MiB. */
    readonly maxFile?: number | string;
    /** All files of one task together. Default: 256MiB. */
    readonly maxTask?: number | string;
    /** How many files one task may leave. Default: 100. */
    readonly maxFilesPerTask?: number;
    /** All files that are kept. Default: 10GiB. */
    readonly maxTotal?: number | string;
  };
  /** Where everything is remembered. */
  readonly log?: {
    /** Events between two snapshots. Default: 500000. */
    readonly snapshotEvery?: number;
    /** How long events are kept. Default: 30d. */
    readonly retain?: number | string;
    /** A clock that jumps ahead further is believed after a minute. Default: 5m. */
    readonly maxClockJump?: number | string;
    /**
     * No more work is taken in when the log is so large; null: as long as the disk has room. Default:
     * null.
     */
    readonly maxBytes?: number | string | null;
    /** How much of the log's end may be unsigned. */
    readonly signEvery?: {
      /** Events that may be unsigned. Default: 10000. */
      readonly events?: number;
      /** How long they may be. Default: 1m. */
      readonly time?: number | string;
    };
  };
};
