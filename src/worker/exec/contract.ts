/**
 * What the exec worker is given and what it answers, apart from how that travels over the wire.
 *
 * The handler knows tasks, attempts and outcomes, and nothing of leases or HTTP: a pull worker calls it, a test calls
 * it, `drover run` may call it.
 */
import type { AssignedView, TaskBody, TaskView } from "../../protocol/index.ts";
import type { Tail, TailSize } from "../output/capped-file.ts";
import type { Following } from "../output/log.ts";
import type { TaskContext } from "../pull/handlers.ts";
import type { Outcome } from "../pull/messages.ts";
import type { TreeRoom } from "../worktree/worktree.ts";

/** A task as it is assigned: its JSON, and which attempt of it this is. */
export type ExecTask = Pick<TaskBody, "action"> &
  Pick<TaskView, "taskId" | "attempt" | "agentId" | "project" | "type" | "params" | "payload" | "ref" | "selector"> &
  Pick<
    AssignedView,
    "tabId" | "timeoutMs" | "estimatedTokens" | "provider" | "inputs" | "loop" | "round" | "outputs" | "approval"
  > & {
    readonly deadline?: string | number;
  };
export type ExecContext = Pick<TaskContext, "attempt" | "signal" | "progress" | "usage"> &
  /** Without them a task can leave no files and be given none, has no token, and goes through no gate. */
  Partial<Pick<TaskContext, "output" | "file" | "token" | "withPermit">>;
/** How a command ended. */
export type ExecOutcome = Outcome;
type TailOptions = TailSize & { readonly follow?: boolean; readonly signal?: AbortSignal };
type AttemptTail = {
  readonly taskId: string;
  readonly attempt: number;
  readonly isRunning: boolean;
} & (Tail | Following);
export type SweepReport = {
  /** Runs of workers that are gone, and the processes of theirs that were still there. */
  readonly runs: number;
  readonly killed: number;
  readonly worktreesRemoved: readonly string[];
  /** Kept because there is work in them. */
  readonly worktreesKept: readonly string[];
  /** What could not be cleaned up, in words. */
  readonly problems: readonly string[];
};
/** Runs tasks as commands. */
export type ExecHandler = AsyncDisposable & {
  /** Runs one attempt. */
  run(task: ExecTask, context: ExecContext): Promise<ExecOutcome>;
  /** Without an attempt: the latest that has any output. Null if there is none. */
  tail(taskId: string, attempt: number | undefined, options?: TailOptions): Promise<AttemptTail | null>;
  /** Cleans up after workers that are gone. To be called once before the first task. */
  sweep(): Promise<SweepReport>;
  /** How many tasks it could give a worktree at the same time; null if it makes none. */
  room(): Promise<TreeRoom | null>;
  /** It keeps at most so many worktrees from now on. */
  limitWorktrees(count: number): void;
  /** A task ended while it waited to go on here: its worktree goes unless there is work in it. False: it had none. */
  letGo(taskId: string): Promise<boolean>;
  /** Takes no more and stops what runs, by the ladder; resolves when nothing is left. May be called twice. */
  close(): Promise<void>;
};

/**
 * The task as a child reads it: one JSON document on stdin, and the same in the file DROVER_TASK_FILE. What decides
 * when and where a task runs (priority, needs, locks, …) is not the child's business and is left out.
 */
export function taskDocument(task: ExecTask, attempt: number, workspace: string): string {
  const { taskId, action, type, params, payload, ref, selector, tabId } = task;
  const { deadline, timeoutMs, estimatedTokens, project, agentId } = task;
  const work = { taskId, attempt, action, type, params, payload, ref, selector, tabId };
  const terms = { deadline, timeoutMs, estimatedTokens, project, agentId };
  const { inputs, round, approval } = task;
  return `${JSON.stringify({ ...work, ...terms, workspace, inputs, round, approval })}\n`;
}
