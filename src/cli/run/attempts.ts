/**
 * The commands of a plan on this machine: each attempt by the exec worker's rules.
 *
 * The same process groups, kill ladder, environment, logs and worktrees as `drover worker --exec`; only what is run
 * differs from task to task, so each attempt is set up by its own task. What a run that was killed has left behind,
 * its processes above all, is swept away before the next one begins.
 */

import { join, resolve } from "node:path";
import {
  type Command,
  filledWork,
  IF_REASON,
  isWanted,
  MissingValue,
  type PlanTask,
  type Work,
} from "../../plan/index.ts";
import { type Clock, present } from "../../std/index.ts";
import {
  type Attempt,
  type AttemptTools,
  createExecHandler,
  createFileCache,
  createSessions,
  type ExecContext,
  type ExecOptions,
  type ExecOutcome,
  type ExecSetup,
  type ExecTask,
  readExecOptions,
  type SweepReport,
  startAttempt,
  wholeInputs,
} from "../../worker/exec/index.ts";
import { createEventReader, createOutputDirectory, readTail } from "../../worker/output/index.ts";
import { createRuns, systemProcessTable, thisOwner } from "../../worker/process/index.ts";
import { createWorktrees, type TreeRoom, type Worktrees } from "../../worker/worktree/index.ts";

import type { PlanFile } from "../plan/plan-file.ts";
import type { Environment } from "../shell/terminal.ts";

export type Attempts = {
  run(task: PlanTask, assigned: ExecTask, context: ExecContext): Promise<ExecOutcome>;
  /** The last line it wrote, while it runs. */
  lastLine(id: string): string;
  /** The end of what an attempt wrote, without instants and origins. */
  tail(id: string, attempt: number, lines: number): Promise<string[]>;
  logPath(id: string, attempt: number): string;
  /** The worktree an attempt of this run has left work in; null if there is none. */
  kept(id: string): Kept | null;
  /** How many tasks may have a worktree at once, and what is in the way. */
  room(): Promise<TreeRoom>;
  /** Cleans up after a run that was killed. */
  sweep(): Promise<SweepReport>;
  /** Tells what runs to stop, by the ladder, and starts no more. */
  stop(): void;
  isStopping(): boolean;
  /** SIGKILL, now. */
  kill(): void;
};
export type Kept = { readonly path: string; readonly branch: string };
type AttemptsPlan = {
  readonly plan: PlanFile;
  readonly data: string;
  readonly env: Environment;
  readonly clock?: Clock;
  readonly onWarning: (text: string) => void;
  /** Every line a command writes. */
  readonly onOutput?: (id: string, line: string) => void;
};

const LOG_BYTES_TOTAL_MAX = 1024 * 1024 * 1024;
/** Without -e a command of several lines would go on after one that failed. */
const SHELL = ["/bin/sh", "-e", "-c"] as const;
const WORKER = "drover-run";

export function createAttempts(given: AttemptsPlan): Attempts {
  const { plan, data, onWarning, onOutput } = given;
  const table = systemProcessTable();
  const owner = thisOwner(table);
  const runs = createRuns({ directory: join(data, "runs"), owner, workerId: WORKER, table });
  const outputs = createOutputDirectory(join(data, "logs"), LOG_BYTES_TOTAL_MAX);
  const files = createFileCache(join(data, "inputs"));
  const running = new Map<string, Attempt>();
  const kept = new Map<string, Kept>();
  let isStopping = false;
  const kill = (): void => {
    for (const attempt of running.values()) attempt.kill();
  };

  const treesOf = ({ cwd, base, worktreeRoot: root, maxWorktrees: countMax }: ExecSetup): Worktrees =>
    createWorktrees({ cwd, base, root, countMax, owner, table });
  /** All trees of the plan lie in one directory, whichever task made them. */
  const everything: ExecOptions = {
    command: ["true"],
    data,
    workerId: WORKER,
    cwd: plan.directory,
    onWarning,
    isolation: "worktree",
    maxWorktrees: plan.maxWorktrees,
  };

  function toolsFor(task: PlanTask): AttemptTools {
    const options = optionsFor(task, given);
    const setup = readExecOptions({ ...options, table, onWarning });
    return {
      setup: setup.preset === null ? { ...setup, preset: withInput(task.work.input, setup.argv ?? []) } : setup,
      runs,
      outputs,
      files,
      sessions: createSessions(join(data, "sessions"), setup.tool),
      worktrees: setup.isolation === "worktree" ? treesOf(setup) : null,
    };
  }

  const run: Attempts["run"] = async (task, assigned, context) => {
    const inputs = await wholeInputs(assigned.inputs ?? {}, context.file);
    if (isStopping) return { outcome: "cancelled", error: "the run is stopping" };
    try {
      if (!isWanted(task.work, inputs)) return { outcome: "skipped", error: `${IF_REASON}${task.work.if}` };
      const filled = { ...task, work: filledWork(task.work, inputs) };
      return filled.work.command.kind === "nothing" ? { outcome: "done" } : await runFilled(filled, assigned, context);
    } catch (error) {
      if (!(error instanceof MissingValue)) throw error;
      return { outcome: "failed", error: error.message, permanent: true };
    }
  };

  const runFilled: Attempts["run"] = async (task, assigned, context) => {
    const attempt = startAttempt(toolsFor(task), withParams(assigned, task.work), context);
    running.set(assigned.taskId, attempt);
    if (running.size === 1) process.on("exit", kill);
    if (onOutput !== undefined) void follow(attempt, (line) => onOutput(assigned.taskId, line));
    try {
      const outcome = await attempt.outcome;
      const left = keptBy(outcome);
      if (left !== null) kept.set(assigned.taskId, left);
      return outcome;
    } finally {
      running.delete(assigned.taskId);
      if (running.size === 0) process.off("exit", kill);
    }
  };

  return {
    run,
    kill,
    lastLine: (id) => lastOf(running.get(id)?.log.recent() ?? ""),
    async tail(id, attempt, lines) {
      const found = await readTail(outputs.pathOf(id, attempt), { lines: lines * 4 + 20 });
      return (found?.text ?? "").split("\n").flatMap(spokenBy).slice(-lines);
    },
    logPath: (id, attempt) => outputs.pathOf(id, attempt),
    kept: (id) => kept.get(id) ?? null,
    async sweep() {
      await using sweeper = createExecHandler({ ...everything, table });
      return await sweeper.sweep();
    },
    room: () => treesOf(readExecOptions({ ...everything, table })).room(),
    isStopping: () => isStopping,
    stop() {
      isStopping = true;
      for (const attempt of running.values()) attempt.stop({ kind: "closing" });
    },
  };
}

/** What the exec worker needs to know to run this task. Throws, in plain words, where it makes no sense. */
function optionsFor(task: PlanTask, { plan, data, env, clock }: AttemptsPlan): ExecOptions {
  const { work, rules } = task;
  return {
    ...toolOf(work.command),
    allowUntil: true,
    data,
    workerId: WORKER,
    inherited: env,
    cwd: resolve(plan.directory, work.cwd),
    env: [...passed(work.passEnv, env), ...Object.entries(work.env).map(([name, value]) => `${name}=${value}`)],
    killGraceMs: plan.killGraceMs,
    idleTimeoutMs: rules.idleTimeoutMs,
    maxWorktrees: plan.maxWorktrees,
    ...(work.worktree === null ? {} : { isolation: "worktree", base: work.worktree.base }),
    ...present({ clock }),
  };
}

function toolOf(command: Command): Pick<ExecOptions, "command" | "preset" | "args"> {
  switch (command.kind) {
    case "line":
      return { command: [...SHELL, command.line] };
    case "words":
      return { command: command.words };
    case "agent":
      return { preset: command.preset, args: command.args };
    case "nothing":
      return { command: ["true"] };
    default:
      return command satisfies never;
  }
}

/** A command reads what its task says, and nothing else, from its standard input. */
function withInput(stdin: string, argv: readonly string[]): NonNullable<AttemptTools["setup"]["preset"]> {
  return () => ({ argv, stdin, createReader: createEventReader });
}

/** What the exec worker reads of a task: what its agent is told, what its worktree begins from, how it is checked. */
function withParams(assigned: ExecTask, { command, worktree, until }: Work): ExecTask {
  const { from, merge } = worktree ?? {};
  const flow = from !== undefined ? { worktree: { from } } : merge !== undefined ? { worktree: { merge } } : {};
  const told = command.kind === "agent" ? { prompt: command.prompt, ...present({ model: command.model }) } : {};
  const checked = assigned.loop === undefined ? {} : { loop: { ...assigned.loop, ...present({ until }) } };
  return { ...assigned, ...checked, params: { ...assigned.params, ...told, ...flow } };
}

/** The names in our environment that a plan lets through; `*` stands for any part of a name. */
export function passed(patterns: readonly string[], env: Environment): string[] {
  const tests = patterns.map((pattern) => {
    const parts = pattern.split("*").map((part) => part.replaceAll(/[^\w]/g, "\\$&"));
    return new RegExp(`^${parts.join(".*")}$`);
  });
  // The variables of an outer Drover are about its own task, and not passed on to ours.
  return Object.keys(env).filter(
    (name) => /^(?!DROVER_)[A-Za-z_]\w*$/.test(name) && tests.some((one) => one.test(name)),
  );
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

/** `2026-01-31T12:00:00.000Z out  text`: what the command itself wrote, without the instant and the origin. */
function spokenBy(line: string): string[] {
  const [, origin, text = ""] = /^\S+ (out|err|note) {1,2}(.*)$/s.exec(line) ?? [];
  return origin === "out" || origin === "err" ? [text] : [];
}

const lastOf = (text: string): string => text.slice(text.lastIndexOf("\n", text.length - 2) + 1).trimEnd();
