/**
 * Types of the wire: those of shapes/tasks.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { TaskState } from "../wire/task-state.ts";
import type { ApprovalBody, ApprovalView } from "./approvals.ts";
import type { FileRef } from "./files.ts";
import type { CurrentRound, Loop, Round } from "./loops.ts";
import type { AttemptUsage, UsageView } from "./usage.ts";

/** A task as its worker sees it. */
export type AssignedView<
  Params extends object = Readonly<Record<string, unknown>>,
  Result = unknown,
  Needed extends object = Inputs,
> = {
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
  readonly params?: Params;
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
  /** The id of the task. */
  readonly taskId: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /** The number of the last attempt; 0 before the first. */
  readonly attempt: number;
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
  /** Where its last attempt runs or ran. */
  readonly worker?: string;
  /** What the worker answered. */
  readonly result?: Result;
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
  readonly inputs?: Needed;
  /** Of a loop: which round this is, and what the one before left for it. */
  readonly round?: CurrentRound;
};

/** What became of a batch. */
export type BatchAnswer = {
  /** The group of those that are new; if none is, that of the first known one. Absent if there is none. */
  readonly groupId?: string;
  /** One for each item, in their order. */
  readonly tasks: readonly BatchItem[];
  /** How many were submitted. */
  readonly submitted: number;
  /** How many were accepted. */
  readonly accepted: number;
  /** How many were turned away. */
  readonly rejected: number;
};

/** Many tasks of one agent. */
export type BatchBody = {
  /** Who submits: the unit of fairness inside a project. */
  readonly agentId: string;
  /** For items that name none. */
  readonly project?: string;
  /** For items that name none. */
  readonly callbackUrl?: string;
  /** At most scheduler.maxBatch. Items may need each other by id; a bad item does not fail the others. */
  readonly tasks: readonly BatchTask[];
};

/** An item of a batch: its agent is the batch's, whether it says so or not. */
export type BatchTask = {
  /** The batch's own, where it is named at all. */
  readonly agentId?: string;
  /**
   * What is to be done; `exec` runs the command in `params.command`. Push workers get it as `kind`, exec
   * workers as JSON.
   */
  readonly action: string;
  /**
   * The task's id, chosen by the caller. The same id and body again is the same task: a lost answer may
   * be repeated.
   */
  readonly id?: string;
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
  /** Somebody must approve it before it is queued for the first time: it is parked until then. */
  readonly approval?: true | ApprovalBody;
  /**
   * children: when its attempt is done, it is parked, holding nothing, until all has ended that it and
   * tasks below it submitted while they ran; then it is done with what that attempt answered.
   */
  readonly wait?: "children";
};

/** How a task ended, for one that needs it. */
export type Input<Result = unknown> = {
  /** The id of the task. */
  readonly taskId: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /**
   * What it answered. All results that a task sees have 256 KiB together, in the order of its needs: one
   * that does not fit is { file: { hash, size } }, and GET /files/{hash}?task= has it.
   */
  readonly result?: Result;
  /** Why it did not end well. */
  readonly error?: string;
  /** The branch that an exec worker kept its work on. */
  readonly branch?: string;
  /** What its attempts used; absent if none said, or its record was gone before. */
  readonly usage?: UsageView;
  /** The files it left: GET /files/{hash} has each. */
  readonly files?: readonly FileRef[];
};

/** How tasks ended, for one that needs them, by name. */
export type Inputs = Readonly<Record<string, Input>>;

/** What a task takes of a machine. */
export type Resources = {
  /** Thousandths of a CPU. */
  readonly cpuMillicores?: number;
  /** Bytes of memory. */
  readonly memoryBytes?: number;
};

/** What Drover answers to a task it has taken. */
export type Submitted = {
  /** The id of the task. */
  readonly taskId: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /** 1 + the tasks ahead in its agent's queue, counted now. */
  readonly position?: number;
  /** When it was submitted. */
  readonly createdAt: string;
  /** The queue is filling: submit more slowly. See Retry-After. */
  readonly throttle?: true;
  /** What was accepted but will not go as asked, and why. */
  readonly warnings?: readonly Warning[];
};

/** What a caller may say of a task. */
export type TaskBody<Params extends object = Readonly<Record<string, unknown>>> = {
  /** Who submits: the unit of fairness inside a project. */
  readonly agentId: string;
  /**
   * What is to be done; `exec` runs the command in `params.command`. Push workers get it as `kind`, exec
   * workers as JSON.
   */
  readonly action: string;
  /**
   * The task's id, chosen by the caller. The same id and body again is the same task: a lost answer may
   * be repeated.
   */
  readonly id?: string;
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
  readonly params?: Params;
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
  /** Somebody must approve it before it is queued for the first time: it is parked until then. */
  readonly approval?: true | ApprovalBody;
  /**
   * children: when its attempt is done, it is parked, holding nothing, until all has ended that it and
   * tasks below it submitted while they ran; then it is done with what that attempt answered.
   */
  readonly wait?: "children";
};

/**
 * A task as Drover shows it: the submitted fields, where it stands, how it ended. What is unset is
 * absent.
 */
export type TaskView<Params extends object = Readonly<Record<string, unknown>>, Result = unknown> = {
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
  readonly params?: Params;
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
  /** The id of the task. */
  readonly taskId: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /** The number of the last attempt; 0 before the first. */
  readonly attempt: number;
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
  /** Where its last attempt runs or ran. */
  readonly worker?: string;
  /** What the worker answered. */
  readonly result?: Result;
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
  /** No worker here could ever run it, its budget has no room, or no worker is here. */
  readonly held?: "never-fits" | "budget" | "no-workers";
  /** When the clock alone ends that; absent if it takes somebody. */
  readonly heldUntil?: string;
};

/** How urgent something is, by name. */
export type PriorityName = "critical" | "high" | "normal" | "low";

/** It will not go as asked: `never-fits`, `no-workers`, `over-budget` or `priority-clamped`. */
export type Warning = {
  /** Its type. */
  readonly type: string;
  /** The same in a sentence, for people. */
  readonly detail?: string;
  /** The priority that was asked for. */
  readonly asked?: number;
  /** The priority it got. */
  readonly given?: number;
};

/** What became of an item of a batch. */
export type BatchItem = {
  /** The id of the task. */
  readonly taskId?: string;
  /** Where the task stands. */
  readonly state: TaskState;
  /** 1 + the tasks ahead in its agent's queue, counted now. */
  readonly position?: number;
  /** Names a field by its item: `tasks[1].action`. */
  readonly error?: string;
};
