/**
 * Types of the wire: those of shapes/workers.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { FileRef } from "./files.ts";
import type { AssignedView, Resources } from "./tasks.ts";

/** What a worker says of itself when it joins. */
export type JoinBody = {
  /** Keep it over restarts, so that the worker keeps its name. */
  readonly id?: string;
  /** How many tasks at once. Default: 1. */
  readonly slots?: number;
  /** What it offers. */
  readonly capabilities?: readonly string[];
  /** CPU and memory. */
  readonly resources?: WorkerResources;
  /** Where it is. */
  readonly zone?: string | null;
  /**
   * Which tasks it takes, by their action: names, or patterns with `*`. Absent: all, but no task that
   * brings what is to be run (`exec` with a command, or with the work of a plan's task): a worker takes
   * those only if it names `exec`, or a pattern for it. An action that is no name (with blanks, or over
   * 128 characters) is taken by `*` only.
   */
  readonly actions?: readonly string[] | null;
  /** The same, by their type. */
  readonly types?: readonly string[] | null;
  /** The same, by their project. */
  readonly projects?: readonly string[] | null;
  /**
   * How many of its tasks may have a worktree at the same time: those that bring what is to be run and
   * want one. Absent or null: any number.
   */
  readonly worktrees?: number | null;
  /** A push worker: Drover posts each task to this address. */
  readonly endpoint?: string;
  /** The path under the endpoint; {tabId} and {taskId} in it are filled in. */
  readonly path?: string;
};

/** A worker has joined. */
export type Joined = {
  /** The id of the worker. */
  readonly workerId: string;
  /** Say it in every sync: it tells this run of the worker from another. */
  readonly session: string;
  /** A worker silent for so long is given up. */
  readonly leaseMs: number;
  /** How many worktrees a worker of this fleet may keep. */
  readonly maxWorktrees?: number;
  /** This server takes brief syncs. */
  readonly brief?: true;
};

/** Which session leaves. */
export type LeaveQuery = {
  /**
   * As joining gave it: one that was replaced then does not touch its successor. A worker token must say
   * it.
   */
  readonly session?: string;
};

/** The end of what an attempt wrote, handed in. */
export type LogBody = {
  /** As joining gave it. A worker token must say it. */
  readonly session?: string;
  /** As the answer of a sync named it. */
  readonly id: string;
  /** The last lines; null: there is no such log. */
  readonly text: string | null;
  /** Whether there was more before. Default: false. */
  readonly truncated?: boolean;
  /** Why it could not be read, beside a text of null. */
  readonly error?: string;
};

/** What became of a log that was handed in. */
export type LogStatus = {
  /** late: no caller waits for it any more. */
  readonly status: "taken" | "late";
  /** Its id. */
  readonly id: string;
};

/** What a worker is to run and to stop. */
export type SyncAnswer = {
  /**
   * In a brief answer, where it is the first field and assignments the last: which attempts those are. A
   * program that only passes them on to another need not read them.
   */
  readonly named?: readonly NamedAssignment[];
  /** All attempts this worker should hold and has not yet named in running. */
  readonly assignments: readonly Assignment[];
  /**
   * Stop these, and report them as cancelled. With taskSeq if the worker named one that is not its own
   * any more so.
   */
  readonly cancel: readonly AttemptRef[];
  /**
   * What became of each result that was reported; in a brief answer, of those that were not simply
   * taken.
   */
  readonly results: readonly ResultAnswer[];
  /** When the lease ends, unless it is renewed. */
  readonly leaseUntil: string;
  /** How long a lease is now; it may have changed since the worker joined. */
  readonly leaseMs: number;
  /** How many worktrees it may keep now; that may have changed too. */
  readonly maxWorktrees?: number;
  /** Hand these in by POST /workers/{id}/logs, soon; only to a worker that named its logPlace. */
  readonly logs?: readonly WantedLog[];
  /**
   * Tasks whose last attempt was here, which were to go on, and have ended: what is kept for them may
   * go. Said for a minute.
   */
  readonly over?: readonly string[];
  /**
   * Tabs that another worker has named since: it owns them no more. Said until it names its capabilities
   * anew.
   */
  readonly lost?: readonly string[];
  /** Finish what runs, take nothing more, leave. */
  readonly drain?: true;
  /** The server stops: keep what runs, and come back when it is there. */
  readonly closing?: true;
};

/** What a worker reports: what runs, what has ended, what it could take. */
export type SyncBody = {
  /** As joining gave it. A worker token must say it. */
  readonly session?: string;
  /** Counts up. A lower one than seen before is refused: stale_sync. */
  readonly n?: number;
  /** How many more it would take; absent: its free slots. */
  readonly want?: number;
  /** Wait so long if there is nothing to say. Default: 0. */
  readonly waitMs?: number;
  /**
   * If joining said that the server takes brief syncs. The answer then lists in results only those that
   * were not simply taken, says until when the lease holds once, and waits for waitMs also where results
   * were reported.
   */
  readonly brief?: boolean;
  /** How it stands now. */
  readonly status?: "ready" | "overloaded" | "draining";
  /**
   * Why it takes nothing now, or nothing with a worktree; shown with the worker and by why. A sync
   * without it takes it back.
   */
  readonly note?: string;
  /** What it offers from now on. A tab:… that another worker owned is this one's now. */
  readonly capabilities?: readonly string[];
  /** CPU and memory. */
  readonly resources?: WorkerResources;
  /** How many of its tasks may have a worktree from now on. */
  readonly worktrees?: number | null;
  /** All attempts that run. One that ran and is missing is queued again; absent: all are renewed. */
  readonly running?: readonly RunningReport[];
  /** Attempts that have ended. Each is said again until an answer names it. */
  readonly results?: readonly ResultReport[];
  /**
   * It keeps the logs of its attempts and hands them in when asked. A name for where they lie, kept over
   * restarts.
   */
  readonly logPlace?: string;
};

/** The tokens that were used. */
export type Usage = {
  /** Tokens that the model read. */
  readonly inputTokens?: number;
  /** Tokens that the model wrote. */
  readonly outputTokens?: number;
  /** Tokens that were put into the provider's cache. */
  readonly cacheCreationTokens?: number;
  /** Tokens read from a cache. They are shown, and not charged. */
  readonly cachedTokens?: number;
  /** What it cost, in a currency of your own. It is shown and summed up. */
  readonly cost?: number;
};

/** All workers. */
export type WorkerList = {
  /** All of them. */
  readonly workers: readonly WorkerView[];
  /** How many there are. */
  readonly count: number;
};

/** What any worker says of itself. */
export type WorkerOptions = {
  /** Keep it over restarts, so that the worker keeps its name. */
  readonly id?: string;
  /** How many tasks at once. Default: 1. */
  readonly slots?: number;
  /** What it offers. */
  readonly capabilities?: readonly string[];
  /** CPU and memory. */
  readonly resources?: WorkerResources;
  /** Where it is. */
  readonly zone?: string | null;
  /**
   * Which tasks it takes, by their action: names, or patterns with `*`. Absent: all, but no task that
   * brings what is to be run (`exec` with a command, or with the work of a plan's task): a worker takes
   * those only if it names `exec`, or a pattern for it. An action that is no name (with blanks, or over
   * 128 characters) is taken by `*` only.
   */
  readonly actions?: readonly string[] | null;
  /** The same, by their type. */
  readonly types?: readonly string[] | null;
  /** The same, by their project. */
  readonly projects?: readonly string[] | null;
  /**
   * How many of its tasks may have a worktree at the same time: those that bring what is to be run and
   * want one. Absent or null: any number.
   */
  readonly worktrees?: number | null;
};

/** A worker drains, or has left. */
export type WorkerStatus = {
  /** How it stands now. */
  readonly status: "draining" | "left";
  /** The id of the worker. */
  readonly workerId: string;
};

/** CPU and memory. */
export type WorkerResources = {
  /** Null: as much as is asked for. */
  readonly cpuMillicores?: number | null;
  /** Null: as much as is asked for. */
  readonly memoryBytes?: number | null;
};

/** An attempt of a task. */
export type AttemptRef = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
};

/** Which attempt an assignment is of. */
export type NamedAssignment = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /** It must be named in running before it is begun. */
  readonly onLoss?: "fail";
};

/** An attempt that runs, as its worker reports it. */
export type RunningReport = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /** Shown with the task; not kept. */
  readonly progress?: unknown;
  /** The tokens it used. */
  readonly usage?: Usage;
};

/** How an attempt ended, as its worker reports it. */
export type ResultReport = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /**
   * How it ended. requeue gives the task back; skipped says that there was nothing to do, and why is in
   * error; again asks for another round of its loop; ask parks it until somebody answers.
   */
  readonly outcome: AttemptOutcome;
  /** At most 256 KiB as JSON. */
  readonly result?: unknown;
  /** Why it did not end well. */
  readonly error?: string;
  /** The tokens it used. */
  readonly usage?: Usage;
  /** Rest at least so long. */
  readonly retryAfterMs?: number;
  /**
   * With requeue: the provider said 429 or 529. It shuts the gate of the task's provider and costs
   * nothing.
   */
  readonly rateLimited?: boolean;
  /** It would fail again: no further attempt. */
  readonly permanent?: boolean;
  /** With ask: what is asked. */
  readonly question?: string;
  /** With ask: how long there is to answer; absent: for ever. */
  readonly timeoutMs?: number;
  /** With again: what the next round of its loop is to see. */
  readonly note?: string;
  /** With done or failed: the files it left, each put before by PUT /files/{hash}. */
  readonly files?: readonly FileRef[];
};

/**
 * How it ended. requeue gives the task back; skipped says that there was nothing to do, and why is in
 * error; again asks for another round of its loop; ask parks it until somebody answers.
 */
export type AttemptOutcome = "done" | "failed" | "cancelled" | "requeue" | "skipped" | "again" | "ask";

/** An attempt that a worker is to run. */
export type Assignment = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /** The task it is about. */
  readonly task: AssignedView;
  /** When the lease ends, unless it is renewed; absent in a brief answer. */
  readonly leaseUntil?: string;
  /** By which the attempt submits children of its task and reads them, while it lasts. Show it to no one. */
  readonly token?: string;
};

/** What became of a result. */
export type ResultAnswer = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /**
   * The number of the event that submitted the task, as its assignment says it. It tells the task from a
   * later one of the same id: a worker that says it is never heard of another task than it means.
   */
  readonly taskSeq?: number;
  /** Whether it counts. */
  readonly accepted: boolean;
  /**
   * duplicate: it had come before; stale_attempt: another counts; not_held, not_found, conflict;
   * files_missing: a file that it lists was not put.
   */
  readonly code?: string;
};

/** A caller wants to see the end of what an attempt wrote. */
export type WantedLog = {
  /** Name it when handing the log in. */
  readonly id: string;
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /** The last so many lines at most. */
  readonly lines: number;
  /** And no more bytes than this, as a JSON string. */
  readonly bytes: number;
  /**
   * The task was submitted so long ago: a log last written before is of another task that had this id,
   * and is none.
   */
  readonly taskAgeMs?: number;
};

/** A worker as Drover shows it. */
export type WorkerView = {
  /** Its id. */
  readonly id: string;
  /** local, pull or push. */
  readonly kind: string;
  /** How it stands now. */
  readonly status: "idle" | "busy" | "overloaded" | "draining" | "unreachable";
  /** How many tasks it runs at once. */
  readonly slots: number;
  /** How many run. */
  readonly inFlight: number;
  /** What it offers. */
  readonly capabilities: readonly string[];
  /** In its own words: why it takes nothing, or nothing with a worktree. */
  readonly note?: string;
  /** Where it is. */
  readonly zone?: string;
  /** Which tasks it takes, by their action; absent: all that bring no command. */
  readonly actions?: readonly string[];
  /** The same, by their type. */
  readonly types?: readonly string[];
  /** The same, by their project. */
  readonly projects?: readonly string[];
  /** The large overdue task for which it is kept free. */
  readonly heldFor?: string;
  /** Where a push worker is posted its tasks. */
  readonly endpoint?: string;
  /** The path under its endpoint. */
  readonly path?: string;
  /** What it offers; absent: as much as is asked for. */
  readonly resources?: Resources;
  /** What of it nothing runs on now. */
  readonly free?: Resources;
  /** What it runs, at most 100 of them. */
  readonly tasks: readonly string[];
  /** How many of its tasks may have a worktree at the same time; absent: any number. */
  readonly worktrees?: number;
  /** When it joined. */
  readonly joinedAt: string;
};
