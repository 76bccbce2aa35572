/**
 * How an exec worker is set up, read once, with what is wrong in plain words.
 *
 * The kill grace is the whole time from the first signal to SIGKILL, because that is what the fleet counts on: an
 * attempt that lost its lease may act until lease + kill grace and no longer. SIGINT has the first half of it.
 */

import { resolve } from "node:path";
import { argvOf, type EnvironmentAddition, type PresetName, readAddition } from "../../plan/work/index.ts";
import { type Clock, realClock, SPAN_MS_MAX } from "../../std/index.ts";
import type { Inherited } from "../process/environment.ts";
import type { Ladder } from "../process/group.ts";
import { type ProcessTable, systemProcessTable } from "../process/table.ts";
import type { ExecTask } from "./contract.ts";
import { PRESETS, type Preset } from "./presets.ts";

type Isolation = "none" | "worktree" | "by-task";

/** How commands are run. */
export type ExecOptions = {
  /** What runs for each task: words, or a line that is split like a shell would. Either this or a preset. */
  readonly command?: string | readonly string[];
  /** Hand the line to /bin/sh instead. */
  readonly shell?: boolean;
  /** A coding agent by name; or what makes the command line of each task out of the task itself. */
  readonly preset?: PresetName | Preset;
  /** Words behind those of the command or preset. */
  readonly args?: readonly string[];
  /** Where logs, runs, sessions and worktrees lie. */
  readonly data: string;
  /** The id of the worker. */
  readonly workerId?: string;
  /** Where commands run. */
  readonly cwd?: string;
  /** `NAME` lets a variable through, `NAME=value` sets one. */
  readonly env?: readonly string[];
  /** The worker's own environment; default: that of this process. */
  readonly inherited?: Inherited;
  /** Where the server is, for children that want to ask it; of a cluster, all addresses that its worker has. */
  readonly url?: string | readonly string[];
  /** Marks the processes of this worker, so that those left behind are found. */
  readonly runToken?: (task: ExecTask) => string | undefined;
  /** From the first signal to SIGKILL; 10 s. */
  readonly killGraceMs?: number;
  /** The part of it until SIGTERM; half. */
  readonly interruptGraceMs?: number;
  /** A command that writes nothing for so long is stopped. */
  readonly idleTimeoutMs?: number | null;
  /** A command that writes nothing at first for so long is stopped. */
  readonly startTimeoutMs?: number | null;
  /** Whether each task has a worktree of its own: none has, all have, or those whose `params.worktree` says so. */
  readonly isolation?: Isolation;
  /** The ref worktrees begin from; HEAD. */
  readonly base?: string;
  /** Run in the workspace before and after each task, in a shell. */
  readonly setup?: string;
  /** Run `loop.until` of tasks, a line of theirs, by a shell; otherwise a task that has one is given back. */
  readonly allowUntil?: boolean;
  /** When worktrees are removed. */
  readonly cleanup?: string;
  /** How many worktrees are kept at most. */
  readonly maxWorktrees?: number;
  /** Where worktrees are put; default: in the data directory. */
  readonly worktreeRoot?: string;
  /** For the output of one attempt; 10 MiB. */
  readonly logBytesMax?: number;
  /** For the output of all; 1 GiB. */
  readonly logBytesTotalMax?: number;
  /** Told what an operator should know and no task is told. */
  readonly onWarning?: (text: string) => void;
  /** The time and its alarms, for tests. */
  readonly clock?: Clock;
  /** The processes of the machine, for tests. */
  readonly table?: ProcessTable;
};
/** Options that are read into something else. */
type Reshaped = "command" | "shell" | "preset" | "workerId" | "env" | "url" | "killGraceMs" | "interruptGraceMs";
/** The options as they hold, defaults included. */
export type ExecSetup = Required<Omit<ExecOptions, Reshaped | "setup" | "cleanup">> & {
  readonly argv: readonly string[] | null;
  readonly preset: Preset | null;
  /** By which sessions are told apart: another tool cannot continue them. */
  readonly tool: string;
  readonly workerId: string | null;
  readonly additions: readonly EnvironmentAddition[];
  readonly url: string | undefined;
  readonly ladder: Ladder;
  readonly setup: string | null;
  readonly cleanup: string | null;
};

const ISOLATIONS: readonly Isolation[] = ["none", "worktree", "by-task"];
const KILL_GRACE_MS = 10_000;
const MAX_WORKTREES = 50;
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const LOG_BYTES_MIN = 4096;
const LOG_BYTES_TOTAL_MAX = 1024 * 1024 * 1024;

export function readExecOptions(options: ExecOptions): ExecSetup {
  if (typeof options.data !== "string" || options.data === "") throw wrong("data", "the path of a directory");
  const data = resolve(options.data);
  return {
    ...readTool(options),
    data,
    workerId: options.workerId ?? null,
    cwd: resolve(options.cwd ?? "."),
    additions: (options.env ?? []).map(readAddition),
    inherited: options.inherited ?? process.env,
    url: options.url === undefined ? undefined : [options.url].flat().join(","),
    runToken: options.runToken ?? (() => undefined),
    ladder: readLadder(options),
    idleTimeoutMs: spanOrNull(options.idleTimeoutMs, "idleTimeoutMs"),
    startTimeoutMs: spanOrNull(options.startTimeoutMs, "startTimeoutMs"),
    isolation: readIsolation(options.isolation),
    base: readBase(options.base),
    setup: options.setup ?? null,
    cleanup: options.cleanup ?? null,
    allowUntil: options.allowUntil ?? false,
    maxWorktrees: whole(options.maxWorktrees, MAX_WORKTREES, 1, "maxWorktrees"),
    worktreeRoot: resolve(options.worktreeRoot ?? resolve(data, "worktrees")),
    logBytesMax: whole(options.logBytesMax, LOG_BYTES_MAX, LOG_BYTES_MIN, "logBytesMax"),
    logBytesTotalMax: whole(options.logBytesTotalMax, LOG_BYTES_TOTAL_MAX, LOG_BYTES_MIN, "logBytesTotalMax"),
    onWarning: options.onWarning ?? (() => {}),
    clock: options.clock ?? realClock,
    table: options.table ?? systemProcessTable(),
  };
}

function readTool(options: ExecOptions): Pick<ExecSetup, "argv" | "preset" | "args" | "tool"> {
  const { command, preset, shell = false, args = [] } = options;
  if ((command === undefined) === (preset === undefined)) {
    throw new Error("an exec worker needs either a command (--exec) or a preset (--preset), and not both");
  }
  if (preset !== undefined) {
    if (typeof preset === "function") return { argv: null, preset, args, tool: preset.name };
    if (!Object.hasOwn(PRESETS, preset)) throw wrong("preset", `one of ${Object.keys(PRESETS).join(", ")}`);
    if (shell) throw new Error("a preset is not run by a shell; give a command instead");
    return { argv: null, preset: PRESETS[preset], args, tool: preset };
  }
  const argv = argvOf(command as string | readonly string[], shell);
  if (shell && args.length > 0) throw new Error("words behind a shell's line would be lost; put them into the line");
  return { argv: [...argv, ...args], preset: null, args, tool: argv.join(" ") };
}

function readLadder({ killGraceMs, interruptGraceMs }: ExecOptions): Ladder {
  const all = whole(killGraceMs, KILL_GRACE_MS, 0, "killGraceMs");
  const first = whole(interruptGraceMs, Math.floor(all / 2), 0, "interruptGraceMs");
  if (first > all) throw wrong("interruptGraceMs", `at most killGraceMs, which is ${all}`);
  return { interruptGraceMs: first, terminateGraceMs: all - first };
}

function readIsolation(isolation: Isolation = "none"): Isolation {
  if (!ISOLATIONS.includes(isolation)) throw wrong("isolation", "none, worktree or by-task");
  return isolation;
}

function readBase(base: string = "HEAD"): string {
  if (base === "" || base.startsWith("-")) throw wrong("base", "a branch, tag or commit");
  return base;
}

function whole(value: number | undefined, other: number, min: number, field: string): number {
  if (value === undefined) return other;
  if (!Number.isSafeInteger(value) || value < min) throw wrong(field, `a whole number of at least ${min}`);
  return value;
}

function spanOrNull(value: number | null | undefined, field: string): number | null {
  if (value === undefined || value === null) return null;
  if (!Number.isSafeInteger(value) || value < 1 || value > SPAN_MS_MAX)
    throw wrong(field, "whole milliseconds, at least 1");
  return value;
}

const wrong = (field: string, expected: string): Error => new Error(`${field} must be ${expected}`);
