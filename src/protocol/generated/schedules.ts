/**
 * Types of the wire: those of shapes/schedules.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { ApprovalBody } from "./approvals.ts";
import type { Loop } from "./loops.ts";
import type { PriorityName, Resources } from "./tasks.ts";

/** A recurring task. */
export type ScheduleBody = {
  /** Five or six fields, or a nickname such as @daily. */
  readonly cron: string;
  /** An IANA time zone; it decides what the hours mean. Default: UTC. */
  readonly timeZone?: string;
  /** Submitted at every instant. */
  readonly task: ScheduleTask;
  /**
   * While the task of a former instant has not ended: leave this one out, run both, or cancel the
   * former. Default: skip.
   */
  readonly overlap?: "skip" | "queue" | "cancel";
  /** How many missed instants are run after a restart. Default: 1. */
  readonly catchUp?: number;
  /** Whether it is paused. */
  readonly paused?: boolean;
  /** Before this instant it submits nothing. */
  readonly startAt?: string | null;
  /** After this instant it submits nothing. */
  readonly endAt?: string | null;
};

/** A page of recurring tasks. */
export type SchedulePage = {
  /** By their ids. */
  readonly schedules: readonly ScheduleView[];
  /** Of this page. */
  readonly count: number;
  /** Where to go on. Absent on the last page, and only there. */
  readonly nextCursor?: string;
};

/** A recurring task was removed. */
export type ScheduleStatus = {
  /** How it stands now. */
  readonly status: "removed";
  /** Its id. */
  readonly id: string;
};

/** A recurring task as Drover shows it. */
export type ScheduleView = {
  /** Five or six fields, or a nickname such as @daily. */
  readonly cron: string;
  /** An IANA time zone; it decides what the hours mean. Default: UTC. */
  readonly timeZone?: string;
  /** Submitted at every instant. */
  readonly task: ScheduleTask;
  /**
   * While the task of a former instant has not ended: leave this one out, run both, or cancel the
   * former. Default: skip.
   */
  readonly overlap?: "skip" | "queue" | "cancel";
  /** How many missed instants are run after a restart. Default: 1. */
  readonly catchUp?: number;
  /** Whether it is paused. */
  readonly paused?: boolean;
  /** Before this instant it submits nothing. */
  readonly startAt?: string | null;
  /** After this instant it submits nothing. */
  readonly endAt?: string | null;
  /** Its id. */
  readonly id: string;
  /** Absent: never again, or paused. */
  readonly nextAt?: string;
  /** The last instant it was due. */
  readonly lastAt?: string;
  /** The task of that instant. */
  readonly lastTaskId?: string;
};

/** How many recurring tasks. */
export type SchedulesQuery = {
  /** How many at most; large ones end a page sooner. Default: 100. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
};

/** Submitted at every instant. */
export type ScheduleTask = {
  /** Who submits: the unit of fairness inside a project. */
  readonly agentId: string;
  /**
   * What is to be done; `exec` runs the command in `params.command`. Push workers get it as `kind`, exec
   * workers as JSON.
   */
  readonly action: string;
  /** Who pays. Default: default. */
  readonly project?: string;
  /** A kind of work, with a base score and perhaps a limit. Default: other. */
  readonly type?: string;
  /** The browser tab it is for: only a worker with capability tab:<id> runs it. */
  readonly tabId?: string;
  /** What in the tab it is about. */
  readonly ref?: string;
  /** Where in the tab, such as `#buy`. */
  readonly selector?: string;
  /** Arguments of the action. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** Any JSON for its worker. Drover does not look into it. */
  readonly payload?: unknown;
  /** Lower is sooner; critical is -200, high -100, normal 0, low 100. Without one, the parent's, else 0. */
  readonly priority?: number | PriorityName;
  /** When it may start at the earliest. */
  readonly notBefore?: string;
  /** Where the task is posted when it has ended. */
  readonly callbackUrl?: string;
  /** The task it belongs to: it waits for it and is one level deeper. */
  readonly parent?: string;
  /**
   * Tasks that must be done first: a list of ids, or an object of ids by name. How they ended it sees in
   * its inputs, by that name or the id.
   */
  readonly needs?: readonly string[] | Readonly<Record<string, string>>;
  /** What must exist before it may start: a file that its parent leaves, or one under artifacts.root. */
  readonly inputArtifact?: string;
  /** CPU and memory. */
  readonly resources?: Resources;
  /** What a worker must offer. */
  readonly capabilities?: readonly string[];
  /** Keys that no two running tasks hold at once. */
  readonly locks?: readonly string[];
  /** Its preferred zone, where placement looks at zones. */
  readonly zone?: string;
  /** The gate whose block also holds this task. */
  readonly provider?: string;
  /**
   * Tokens it will use, for shares and budgets; 0 is none, and waits for no budget. Without one, what
   * tasks of its project and type used on average.
   */
  readonly estimatedTokens?: number;
  /** Which try at the same work this is; each failure adds 1. Default: 1. */
  readonly iteration?: number;
  /** Own failures it may have; 3, or 1 with a tabId. */
  readonly maxAttempts?: number;
  /** How long one attempt may take. */
  readonly timeoutMs?: number;
  /** What becomes of it when a parent or need does not end as done. Default: skip. */
  readonly onDependencyFailure?: "skip" | "run";
  /**
   * What becomes of it when an attempt that had begun is lost: it runs again, or it fails, its outcome
   * unknown. Without one, fail with a tabId, else retry.
   */
  readonly onLoss?: "retry" | "fail";
  /**
   * Files that an exec worker keeps of its workspace when the command has ended: paths, or patterns with
   * `*`, `?` and `**`.
   */
  readonly outputs?: readonly string[];
  /** At most 32 texts by name, by which tasks are found: `{ team: "web" }`. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * It runs again until its work is good: each round that its worker answers with again is followed by
   * another one.
   */
  readonly loop?: Loop;
  /** Somebody must approve it before it is queued for the first time: it is parked until then. */
  readonly approval?: true | ApprovalBody;
  /**
   * children: when its attempt is done, it is parked, holding nothing, until all has ended that it and
   * tasks below it submitted while they ran; then it is done with what that attempt answered.
   */
  readonly wait?: "children";
};
