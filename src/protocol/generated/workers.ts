/**
 * Types of the wire: those of shapes/workers.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { ApprovalView } from "./approvals.ts";
import type { FileRef } from "./files.ts";
import type { CurrentRound, Loop, Round } from "./loops.ts";
import type { AssignedView, Inputs, PriorityName, Resources, Warning } from "./tasks.ts";
import type { AttemptUsage, UsageView } from "./usage.ts";

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
  /** This server gives tasks ahead, and takes back those that were not begun. */
  readonly ahead?: true;
  /**
   * This server takes lean syncs, and this is what their worker makes the tokens of its attempts with:
   * drover-attempt.{id}.{attempt}.{code}, where the id is in base64url, and the code is the SHA-512/256
   * of `{tokenKey} {taskSeq} {attempt} {taskId}` in base64url. Show it to no one.
   */
  readonly tokenKey?: string;
};

/** The same without what its worker knows without it. */
export type LeanTask = {
  /** The agent it is of. */
  readonly agentId?: string;
  /**
   * What is to be done; `exec` runs the command in `params.command`. Push workers get it as `kind`, exec
   * workers as JSON.
   */
  readonly action?: string;
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
  /** When it has failed if it has not ended. */
  readonly deadline?: string;
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
  /** Who is asked what, or what was answered. */
  readonly approval?: ApprovalView;
  /**
   * children: when its attempt is done, it is parked, holding nothing, until all has ended that it and
   * tasks below it submitted while they ran; then it is done with what that attempt answered.
   */
  readonly wait?: "children";
  /** When it was submitted. */
  readonly createdAt?: string;
  /** When nothing but its turn kept it from starting. */
  readonly runnableAt?: string;
  /** When its attempt began; absent while it waits for another one. */
  readonly startedAt?: string;
  /** When it ended. */
  readonly completedAt?: string;
  /** From submit to its end. */
  readonly latencyMs?: number;
  /** What the worker answered. */
  readonly result?: unknown;
  /** The branch that an exec worker kept its work on. */
  readonly branch?: string;
  /** Why it did not end well. */
  readonly error?: string;
  /** The files it left: GET /files/{hash} has each. */
  readonly files?: readonly FileRef[];
  /** 1 + the tasks ahead in its agent's queue, counted now. */
  readonly position?: number;
  /** How many ancestors it has. */
  readonly depth?: number;
  /** Absent if it has none. */
  readonly children?: {
    /** Tasks that name it as parent and are not forgotten. */
    readonly total: number;
    /** Tasks that grew below it, at any depth, and have not ended. */
    readonly open: number;
  };
  /** By type, age, depth and failures, counted now; higher goes first. */
  readonly score?: number;
  /** Its priority after what it gained by waiting, counted now; lower goes first. */
  readonly effectivePriority?: number;
  /** The group of its batch. */
  readonly group?: string;
  /** What its attempts used in all, as they said at their ends. */
  readonly usage?: UsageView;
  /** The same by attempt, in their order: the last 100 that said what they used. */
  readonly attempts?: readonly AttemptUsage[];
  /** What its worker last said of it. */
  readonly progress?: unknown;
  /** Of a loop: the rounds that have ended, since it was submitted or last retried. */
  readonly rounds?: readonly Round[];
  /** What a change of it could not do as asked, and why. */
  readonly warnings?: readonly Warning[];
  /** How the tasks ended that it needs, each by its name, its id or `parent`. Absent if it needs none. */
  readonly inputs?: Inputs;
  /** Of a loop: which round this is, and what the one before left for it. */
  readonly round?: CurrentRound;
};

/** Which session leaves. */
export type LeaveQuery = {
  /**
   * As joining gave it: one that was replaced then does not touch its successor. A worker token must say
   * it.
   */
  readonly session?: string;
};

/** What a worker is to run and to stop. */
export type SyncAnswer = {
  /**
   * The first field of a lean answer: all attempts this worker should hold and has not yet named in
   * running.
   */
  readonly named?: readonly NamedAssignment[];
  /** All attempts this worker should hold and has not yet named in running. A lean answer has none here. */
  readonly assignments: readonly Assignment[];
  /**
   * The last field of a lean answer: the tasks of named, each in its place there. A program that only
   * passes them on to another need not read them. A runnableAt that is absent is createdAt, a depth or
   * effectivePriority 0.
   */
  readonly tasks?: readonly LeanTask[];
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
  /** Of the sync that it answers; an answer that has another one is to be passed over. */
  readonly n?: number;
  /** When the lease ends, unless it is renewed. */
  readonly leaseUntil: string;
  /** For so long it was held: the lease lasts leaseMs from so long after the sync was sent. */
  readonly heldMs?: number;
  /**
   * In a lean answer: what the worker makes the tokens of its attempts with from now on. It is another
   * one behind a server that was moved to another directory.
   */
  readonly tokenKey?: string;
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
  /**
   * If joining said so: how many it may hold beyond its slots. They are to be begun within moments.
   * Nothing is given ahead while a project may use the express lane. Default: 0.
   */
  readonly ahead?: number;
  /** Wait so long if there is nothing to say. Default: 0. */
  readonly waitMs?: number;
  /**
   * If joining said that the server takes brief syncs. The answer then lists in results only those that
   * were not simply taken, says until when the lease holds once, and waits for waitMs also where results
   * were reported.
   */
  readonly brief?: boolean;
  /**
   * Beside brief, if joining gave a tokenKey. The answer then has named and tasks in the place of
   * assignments.
   */
  readonly lean?: boolean;
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
  /**
   * If joining said that tasks are given ahead: attempts that it gives back. They never began, and are
   * queued again at no cost.
   */
  readonly unbegun?: readonly {
    /** The id of the task. */
    readonly taskId: string;
    /** The number of the attempt. */
    readonly attempt: number;
    /**
     * The number of the event that submitted the task, as its assignment says it. It tells the task from a
     * later one of the same id: a worker that says it is never heard of another task than it means.
     */
    readonly taskSeq?: number;
  }[];
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
  /** It was kept for this worker: do not give it back as unbegun. */
  readonly goesOn?: true;
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
  /** How many tasks it runs at once now: those it has, or as many as it limits itself to. */
  readonly slots: number;
  /** How many it has: more than its slots while it fetches short tasks ahead. */
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
