/**
 * What the exec worker is given and what it answers, apart from how that travels over the wire.
 *
 * The handler knows tasks, attempts and outcomes, and nothing of leases or HTTP: a pull worker calls it, a test calls
 * it, `drover run` may call it.
 */
import type { TaskBody, TaskView, Usage } from "../../protocol/index.ts";
import type { Following } from "../output/follow.ts";
import type { Tail, TailSize } from "../output/tail.ts";
import type { TreeRoom } from "../worktree/worktree.ts";

export type { Usage } from "../../protocol/index.ts";

/** A task as it is assigned: its JSON, and which attempt of it this is. */
export type AssignedTask = Pick<TaskBody, "action"> &
  Pick<TaskView, "taskId" | "attempt" | "agentId" | "project" | "type" | "params" | "payload" | "ref" | "selector"> &
  Pick<TaskView, "tabId" | "timeoutMs" | "estimatedTokens"> & { readonly deadline?: string | number };
export type ExecContext = {
  readonly attempt: number;
  /** Fires when the attempt must stop: cancelled, timed out, past its deadline, its lease lost. */
  readonly signal: AbortSignal;
  progress(value: unknown): void;
  /** Tokens so far, in all. */
  usage(usage: Usage): void;
};
/** How a command ended. */
export type ExecOutcome = {
  /** How the attempt ended. */
  readonly outcome: "done" | "failed" | "cancelled" | "requeue";
  /** What it answered. */
  readonly result?: unknown;
  /** Why it did not end well. */
  readonly error?: string;
  /** The tokens it used. */
  readonly usage?: Usage;
  /** How long to rest first. */
  readonly retryAfterMs?: number;
  /** With `requeue`: the provider said 429 or 529. */
  readonly rateLimited?: boolean;
  /** Another attempt would fail as well. */
  readonly permanent?: boolean;
};
export type TailOptions = TailSize & { readonly follow?: boolean; readonly signal?: AbortSignal };
export type AttemptTail = {
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
  run(task: AssignedTask, context: ExecContext): Promise<ExecOutcome>;
  /** Without an attempt: the latest that has any output. Null if there is none. */
  tail(taskId: string, attempt: number | undefined, options?: TailOptions): Promise<AttemptTail | null>;
  /** Cleans up after workers that are gone. To be called once before the first task. */
  sweep(): Promise<SweepReport>;
  /** How many tasks it could give a worktree at the same time; null if it makes none. */
  room(): Promise<TreeRoom | null>;
  /** It keeps at most so many worktrees from now on. */
  limitWorktrees(count: number): void;
  /** Takes no more and stops what runs, by the ladder; resolves when nothing is left. May be called twice. */
  close(): Promise<void>;
};
