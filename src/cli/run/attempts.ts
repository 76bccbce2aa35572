/**
 * The commands of a plan on this machine, and what they have written.
 *
 * They run as the commands that tasks bring to any worker. What a run that was killed has left behind, its processes
 * above all, is swept away before the next one begins.
 */

import type { PlanTask } from "../../plan/index.ts";
import { type Clock, present } from "../../std/index.ts";
import {
  type Attempt,
  createTaskCommands,
  type ExecContext,
  type ExecOutcome,
  type ExecTask,
  type TaskCommands,
} from "../../worker/exec/index.ts";
import { readTail } from "../../worker/output/index.ts";

import type { PlanFile } from "../plan/plan-file.ts";
import { spokenBy } from "../shell/log-text.ts";
import type { Environment } from "../shell/terminal.ts";
import { lastMeant } from "../show/meant-line.ts";

export type Attempts = Pick<TaskCommands, "logPath" | "room" | "sweep" | "kill"> & {
  /** Of a task of the plan, or of a child, which is in no plan. */
  run(task: PlanTask | null, assigned: ExecTask, context: ExecContext): Promise<ExecOutcome>;
  /** The last line it wrote, while it runs. */
  lastLine(id: string): string;
  /** The end of what an attempt wrote, without instants and origins. */
  tail(id: string, attempt: number, lines: number): Promise<string[]>;
  /** The worktree an attempt of this run has left work in; null if there is none. */
  kept(id: string): Kept | null;
  /** Tells what runs to stop, by the ladder, and starts no more. */
  stop(): void;
  isStopping(): boolean;
};
export type Kept = { readonly path: string; readonly branch: string };
type AttemptsPlan = {
  readonly plan: Pick<PlanFile, "directory" | "killGraceMs" | "maxWorktrees">;
  readonly data: string;
  /** Where commands submit children. */
  readonly url: string;
  readonly env: Environment;
  readonly clock?: Clock;
  readonly onWarning: (text: string) => void;
  /** Every line a command writes. */
  readonly onOutput?: (id: string, line: string) => void;
};

const WORKER = "drover-run";

export function createAttempts({ plan, data, url, env, clock, onWarning, onOutput }: AttemptsPlan): Attempts {
  const kept = new Map<string, Kept>();
  const commands = createTaskCommands({
    data,
    url,
    workerId: WORKER,
    inherited: env,
    cwd: plan.directory,
    killGraceMs: plan.killGraceMs,
    maxWorktrees: plan.maxWorktrees,
    onWarning,
    ...present({ clock }),
    onStart: (attempt) => {
      if (onOutput !== undefined) void follow(attempt, (line) => onOutput(attempt.taskId, line));
    },
  });
  const { logPath, room, sweep, kill, isClosing } = commands;

  return {
    async run(task, assigned, context) {
      const outcome = await commands.run(task === null ? assigned : withPlan(assigned, task), context);
      const left = keptBy(outcome);
      if (left !== null) kept.set(assigned.taskId, left);
      return outcome;
    },
    lastLine: (id) => lastMeant(commands.running(id)?.log.recent() ?? ""),
    async tail(id, attempt, lines) {
      const found = await readTail(logPath(id, attempt), { lines: lines * 4 + 20 });
      return (found?.text ?? "").split("\n").flatMap(spokenBy).slice(-lines);
    },
    logPath,
    kept: (id) => kept.get(id) ?? null,
    room,
    sweep,
    kill,
    isStopping: isClosing,
    stop: () => void commands.close(),
  };
}

function withPlan(assigned: ExecTask, { work, rules: { idleTimeoutMs } }: PlanTask): ExecTask {
  return { ...assigned, params: { ...assigned.params, work, ...present({ idleTimeoutMs }) } };
}

function keptBy({ result }: ExecOutcome): Kept | null {
  const { workspace } = (result ?? {}) as { workspace?: { isKept?: unknown; path?: unknown; branch?: unknown } };
  const { isKept, path, branch } = workspace ?? {};
  return isKept === true && typeof path === "string" && typeof branch === "string" ? { path, branch } : null;
}

async function follow(attempt: Attempt, tell: (line: string) => void): Promise<void> {
  for await (const text of attempt.log.follow({ lines: 0 }).lines)
    for (const line of text.split("\n")) spokenBy(line).forEach(tell);
}
