/**
 * Types of the wire: those of shapes/task-calls.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { TaskState } from "../wire/task-state.ts";
import type { PriorityName, TaskView } from "./tasks.ts";

/** Why a task is cancelled. */
export type CancelBody = {
  /** For people; it becomes the task's error. */
  readonly reason?: string;
};

/** Which tasks to cancel. */
export type CancelWhereBody = {
  /** Which tasks. */
  readonly filter: CancelFilter;
};

/** A task was cancelled. */
export type Cancelled = {
  /** How it stands now. */
  readonly status: "cancelled";
  /** The id of the task. */
  readonly taskId: string;
};

/** Tasks were cancelled. */
export type CancelledMany = {
  /** How it stands now. */
  readonly status: "cancelled";
  /** How many; at most 10 000 are cancelled at once, so repeat until it is 0. */
  readonly count: number;
};

/** What of the output. */
export type LogsQuery = {
  /** Which attempt; absent: the last. */
  readonly attempt?: number;
  /** How many lines from the end. Default: 200. */
  readonly tail?: number;
};

/** What to change of a task. */
export type PatchBody = {
  /** Its priority; lower goes first. */
  readonly priority?: number | PriorityName;
  /** Null takes the deadline away. */
  readonly deadline?: string | null;
};

/** The end of what an attempt wrote. */
export type TaskLogs = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /** The last lines of what the attempt wrote. */
  readonly text: string;
  /** Whether there was more before. */
  readonly truncated: boolean;
};

/** A page of tasks. */
export type TaskPage = {
  /**
   * In the order of submission, which does not change, or the newest first. Results are left out: read
   * each task.
   */
  readonly tasks: readonly TaskView[];
  /** Of this page. */
  readonly count: number;
  /** How many match behind the cursor, those passed over among them; where the newest come first. */
  readonly total?: number;
  /** Where to go on. Absent on the last page, and only there. */
  readonly nextCursor?: string;
};

/** Which tasks, and how many of them. */
export type TasksQuery = {
  /** The agent it is of. */
  readonly agentId?: string;
  /** The project it is of. */
  readonly project?: string;
  /** Its type. */
  readonly type?: string;
  /** Only with this label, as in label=team=web; given again, with all of them. */
  readonly label?: string | readonly string[];
  /** Only of this group. */
  readonly group?: string;
  /** Only tasks that name this one as parent. */
  readonly parent?: string;
  /** Only this task and all below it: its children, theirs, and so on. */
  readonly root?: string;
  /**
   * One or more, as in state=queued,running. Rejected tasks, which were never let in, are listed only if
   * asked for.
   */
  readonly state?: readonly TaskState[];
  /**
   * Whether those that were submitted first come first, or last; asc is oldest, desc is newest. Default:
   * oldest.
   */
  readonly order?: "oldest" | "newest" | "asc" | "desc";
  /**
   * Only those whose id, agent, project, type, a label, or action where that is one word, holds this
   * text, in either case.
   */
  readonly q?: string;
  /** Only those that wait for somebody's word; false: only those that do not. */
  readonly asking?: boolean;
  /** Only those that were submitted or have ended since. */
  readonly since?: string;
  /** How many at most; large tasks end a page sooner. Default: 100. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
  /** How many of those behind the cursor are passed over. Default: 0. */
  readonly skip?: number;
};

/** How long to wait. */
export type WaitQuery = {
  /** How long to wait for its end at most. Default: 30000. */
  readonly timeoutMs?: number;
};

/** Why a task is not running. */
export type WhyAnswer = {
  /** The task it is about. */
  readonly task: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /** One sentence, for people. */
  readonly summary: string;
  /** Every condition between the task and its start, met or not. */
  readonly conditions: readonly WhyCondition[];
  /** Who goes first. */
  readonly ahead: {
    /** Tasks of its agent that are ahead of it. */
    readonly count: number;
    /** The first few of them. */
    readonly next: readonly WhyAhead[];
  };
  /** When time alone could let it start; absent if that depends on other events. */
  readonly earliestStart?: string;
};

/** As of which event. */
export type WhyQuery = {
  /** The number of an event: why it was not running then. Absent: now. */
  readonly at?: number;
  /** An instant, where there is no `at`: as of the last event up to it. */
  readonly time?: string;
};

/** Which tasks. */
export type CancelFilter = {
  /** The agent it is of. */
  readonly agentId?: string;
  /** The project it is of. */
  readonly project?: string;
  /** Its type. */
  readonly type?: string;
  /** Only with this label, as in label=team=web; given again, with all of them. */
  readonly label?: string | readonly string[];
  /** Only of this group. */
  readonly group?: string;
  /** Only tasks that name this one as parent. */
  readonly parent?: string;
  /** Only this task and all below it: its children, theirs, and so on. */
  readonly root?: string;
  /** Where the task stands. */
  readonly state?: TaskState | readonly TaskState[];
  /** Every task there is; alone. */
  readonly all?: true;
};

/** A condition between a task and its start. */
export type WhyCondition = {
  /** Which one it is, for programs. */
  readonly code: string;
  /** Whether this condition lets the task through. */
  readonly ok: boolean;
  /** The same in a sentence, for people. */
  readonly detail: string;
  /** What decides. */
  readonly numbers: Readonly<Record<string, number | string | null>>;
};

/** A task that goes first. */
export type WhyAhead = {
  /** The task it is about. */
  readonly task: string;
  /** The agent it is of. */
  readonly agent: string;
  /** Why. */
  readonly reason: string;
};
