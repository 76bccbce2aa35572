/**
 * The worker that `drover serve` brings along.
 *
 * With --exec it hands every task to one program. Without, it takes tasks with the action `exec` that bring what is to
 * be run, and runs that, so that a first `curl` does something; that one steps aside while another worker takes such
 * tasks too. A caller who may submit can then run anything as the person who started the server. So it is there by
 * itself only where only that person's own programs are let in: without tokens, without other names for the server, and
 * on this machine alone. Otherwise it must be asked for, and goes when a reload lets others in.
 *
 * It knows the engine only as something that gives it tasks, so this file is of the worker's half.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { actionName, EXEC_COMMAND, EXEC_WORKTREE, takesSuch } from "../../core/fleet/index.ts";
import type { WorkerOptions, WorkerView } from "../../protocol/index.ts";
import { realClock } from "../../std/index.ts";
import {
  answerOf,
  type ExecContext,
  type ExecTask,
  type TaskCommandOptions,
  watchRoom,
} from "../../worker/exec/index.ts";
import type { ExecHandler } from "../../worker/index.ts";
import { createOutputDirectory, readTail } from "../../worker/output/index.ts";

import { ownName } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";
import type { GlobalFlags } from "../shell/verb.ts";
import { commandsFrom, handlerFrom, whyNoTree } from "../worker/preflight.ts";
import { type QuietFlag, taskLines } from "../worker/task-lines.ts";
import { COMMAND_ACTION } from "../worker/verb.ts";
import type { ExecFlags } from "../worker/worker.ts";
import type { LogTarget } from "./messages.ts";

type OtherWorker = Pick<WorkerView, "id" | "kind" | "status" | "actions" | "types" | "projects">;

export type LocalWorkerFlags = Pick<ExecFlags, "exec" | "shell" | "env"> &
  QuietFlag &
  Pick<GlobalFlags, "json" | "color"> & {
    readonly slots?: number;
    /** False with --no-worker, true with --worker; else it depends on who may submit. */
    readonly worker?: boolean;
  };

const LOCAL_ID = "local";
const SLOTS_MAX = 8;
export const START_ONE: string = `start one with ${ownName()} worker --commands (or --exec 'PROGRAM')`;

/** As much of the engine as a local worker needs. */
type WorkerEngine = {
  worker(
    options: Pick<WorkerOptions, "actions" | "worktrees"> & { readonly id: string; readonly slots: number },
    handler: (task: ExecTask, context: ExecContext) => Promise<unknown>,
  ): Promise<JoinedWorker>;
  workers(): Promise<readonly OtherWorker[]>;
  events(from: { readonly after: number; readonly follow: true; readonly signal: AbortSignal }): AsyncIterable<Kind>;
  readonly state: { readonly seq: number; readonly shapes: { readonly byKey: ReadonlyMap<string, QueuedKind> } };
};
type Kind = {
  readonly kind: string;
  readonly task?: string | null;
  readonly payload: { readonly kind: string; readonly action?: unknown };
};
/** How many tasks of a kind are queued, and how many worktrees each of them takes. */
type QueuedKind = { readonly queued: number; readonly demand: { readonly worktrees: number } };
type JoinedWorker = {
  drain(): Promise<void>;
  close(): Promise<void>;
  limitWorktrees(count: number, note: string | null): Promise<void>;
};

type LogSize = { readonly lines: number; readonly taskAgeMs?: number };
type LogLines = { readonly attempt: number; readonly text: string; readonly truncated: boolean };
export type LocalWorker = {
  /** Its name while it is there. */
  readonly id: () => string | null;
  readonly describe: () => string;
  /** False if none comes along: tasks wait for workers of others. */
  readonly runs: boolean;
  readonly logsOf: (task: string, attempt: number | undefined, size: LogSize) => Promise<LogLines | null>;
  /** Takes nothing more. */
  readonly drain: () => Promise<void>;
  /** Stops what runs, by the ladder, and cleans up. */
  readonly stop: () => Promise<void>;
  /** Others are let in from now on: unless it was asked for, it takes nothing more. */
  readonly withdraw: (why: string) => void;
  /** It keeps at most so many worktrees from now on. */
  readonly limitWorktrees: (count: number) => void;
};

export type LocalWorkerOptions = {
  readonly drover: WorkerEngine;
  readonly flags: LocalWorkerFlags;
  readonly terminal: Terminal;
  readonly log: LogTarget;
  readonly url: string;
  /** Why others may submit, in words; null if only the person's own programs may. */
  readonly others: string | null;
  readonly killGraceMs: number;
  readonly maxWorktrees: number;
  readonly complain: (text: string) => void;
};

export async function startLocalWorker(options: LocalWorkerOptions): Promise<LocalWorker> {
  const { flags, terminal, others, complain } = options;
  const logsOf = logsBeside(options.log);
  if (flags.worker === false) return noWorker(`none (--no-worker): ${START_ONE}`, logsOf);
  if (!isAskedFor(flags) && others !== null)
    return noWorker(`none, since ${others}: ${START_ONE}, or --worker`, logsOf);
  const data = dataFor(options.log);
  const given: TaskCommandOptions = {
    env: flags.env ?? [],
    data: data.path,
    workerId: LOCAL_ID,
    cwd: terminal.cwd,
    inherited: terminal.env,
    url: options.url,
    killGraceMs: options.killGraceMs,
    onWarning: complain,
  };
  const exec =
    flags.exec === undefined
      ? commandsFrom({ ...given, maxWorktrees: options.maxWorktrees }, "serve")
      : handlerFrom({ ...given, command: flags.exec, shell: flags.shell === true }, "serve");
  const { killed, problems } = await exec.sweep();
  if (killed > 0) complain(`${killed} processes that an earlier server had left behind were killed`);
  for (const problem of problems) complain(problem);
  const presence = await keepPresent(options, exec);
  return {
    id: presence.name,
    describe: () => description(flags, presence.slots),
    runs: true,
    logsOf: async (task, attempt, size) => {
      const tail = await exec.tail(task, attempt, size);
      return tail === null ? null : { attempt: tail.attempt, text: tail.text, truncated: tail.isCut };
    },
    drain: presence.leave,
    limitWorktrees: (count) => {
      exec.limitWorktrees(count);
      presence.lookForRoom();
    },
    withdraw: (why) => {
      if (isAskedFor(flags)) return;
      complain(`${why}: the local worker takes nothing more (${START_ONE}, or serve with --worker)`);
      presence.stepAside().catch((error: Error) => complain(error.message));
    },
    stop: async () => {
      presence.forget();
      await exec.close();
      data.remove();
    },
  };
}

export const isAskedFor = ({ worker, exec }: LocalWorkerFlags): boolean => worker === true || exec !== undefined;

/** What a worker on this machine has written beside the log, as `drover worker` does by default. */
export function logsBeside(log: LogTarget): LocalWorker["logsOf"] {
  if (log.kind === "memory") return async () => null;
  const logs = createOutputDirectory(join(log.directory, "worker", "logs"), Number.POSITIVE_INFINITY);
  return async (task, attempt, size) => {
    const number = attempt ?? (await logs.latestOf(task));
    const tail = number === null ? null : await readTail(logs.pathOf(task, number), size);
    return number === null || tail === null ? null : { attempt: number, text: tail.text, truncated: tail.isCut };
  };
}

export const noWorker = (why: string, logsOf: LocalWorker["logsOf"]): LocalWorker => ({
  id: () => null,
  describe: () => why,
  runs: false,
  logsOf,
  drain: async () => {},
  stop: async () => {},
  withdraw: () => {},
  limitWorktrees: () => {},
});

/** How many tasks it runs at once. */
export const slotsOf = ({ slots }: LocalWorkerFlags): number => slots ?? Math.min(SLOTS_MAX, availableParallelism());

export function description({ exec }: LocalWorkerFlags, slots: number): string {
  const atOnce = `${slots} at a time`;
  return exec === undefined
    ? `runs what tasks with action ${COMMAND_ACTION} bring, as you, ${atOnce} (--no-worker: without it)`
    : `hands every task to ${exec}, ${atOnce}`;
}

/** Beside the log; with a log in memory, somewhere that is removed again. */
function dataFor(log: LogTarget): { readonly path: string; readonly remove: () => void } {
  if (log.kind !== "memory") return { path: join(log.directory, "worker"), remove: () => {} };
  const path = mkdtempSync(join(tmpdir(), "drover-worker-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

type Presence = {
  readonly slots: number;
  /** Null while it has stepped aside. */
  readonly name: () => string | null;
  readonly leave: () => Promise<void>;
  /** Takes nothing more, lets what runs end, and is gone then. */
  readonly stepAside: () => Promise<void>;
  readonly forget: () => void;
  /** There may be more or fewer worktrees than before. */
  readonly lookForRoom: () => void;
};

/** Joins, and, without --exec, makes room for other workers. */
async function keepPresent(options: LocalWorkerOptions, exec: ExecHandler): Promise<Presence> {
  const { drover, flags, complain, terminal } = options;
  const lines = taskLines(terminal, flags);
  const slots = slotsOf(flags);
  const over = new AbortController();
  let here: (JoinedWorker & { readonly name: string }) | null = null;

  /** Outside a repository there are none. That is no trouble unless a task wants one, and then the note says it. */
  let outside: string | null = null;
  const isTreeWanted = (): boolean =>
    [...drover.state.shapes.byKey.values()].some(({ queued, demand }) => queued > 0 && demand.worktrees > 0);
  async function room(): Promise<Awaited<ReturnType<ExecHandler["room"]>>> {
    outside = flags.exec === undefined ? await whyNoTree(terminal.cwd) : null;
    return outside === null ? await exec.room() : { count: 0, note: outside };
  }
  const trees = watchRoom({
    room,
    slots,
    warn: (text) => (outside === null ? complain(text) : undefined),
    clock: realClock,
    // It may have left.
    limit: (count, note) => {
      const said = outside === null || isTreeWanted() ? note : null;
      void here?.limitWorktrees(count, said).catch(() => {});
    },
  });
  const run = async (task: ExecTask, context: ExecContext): Promise<unknown> => {
    const outcome = await lines(task, () => exec.run(task, context));
    // A tree that was kept leaves room for one fewer, and none is to be given one before that is known.
    if (actionName(COMMAND_ACTION, task.params) === EXEC_WORKTREE) await trees.look();
    return answerOf(outcome);
  };

  async function leave(): Promise<void> {
    const leaving = here;
    here = null;
    await leaving?.drain();
  }

  /** Another worker may have the name of this one; it keeps it, even while it is out of reach. */
  async function join(): Promise<void> {
    const isTaken = (await drover.workers()).some(({ id, kind }) => id === LOCAL_ID && kind !== "local");
    const name = isTaken ? `${LOCAL_ID}-${process.pid}` : LOCAL_ID;
    // None in a worktree until it is known how many there may be.
    const what =
      flags.exec === undefined ? { actions: [EXEC_COMMAND, EXEC_WORKTREE], worktrees: 0 } : { actions: ["*"] };
    here = { ...(await drover.worker({ id: name, slots, ...what }, run)), name };
    await trees.look();
    // It may have been stopped meanwhile.
    if (over.signal.aborted) await stepAside();
  }

  /** Present while no other worker takes what it takes. One that is out of reach does not count. */
  async function settle(): Promise<void> {
    const all = await drover.workers();
    const isAlone = all.every(
      (other) => other.kind === "local" || other.status === "unreachable" || !takesEveryCommand(other),
    );
    if (isAlone && here === null) await join();
    else if (!isAlone && here !== null) {
      complain("another worker has joined: the local one steps aside");
      await stepAside();
    }
  }

  async function stepAside(): Promise<void> {
    const leaving = here;
    await leave();
    await leaving?.close();
  }

  async function follow(after: number): Promise<void> {
    for await (const { kind, task, payload } of drover.events({ after, follow: true, signal: over.signal })) {
      if ((kind === "worker-joined" || kind === "worker-left") && !over.signal.aborted) await settle();
      // Not waited for: of many such tasks each would hold up what else is followed here.
      if (outside !== null && kind === "task-submitted" && payload.action === EXEC_WORKTREE) void trees.look();
      // A loop, or a task that had asked, may have ended while it waited to go on here.
      if ((kind === "task-cancelled" || kind === "task-failed") && (await exec.letGo(task ?? ""))) await trees.look();
    }
  }

  const forGood = (go: () => Promise<void>) => (): Promise<void> => {
    over.abort();
    return go();
  };
  if (flags.exec === undefined) {
    const from = drover.state.seq;
    await settle();
    follow(from).catch((error: Error) => (over.signal.aborted ? undefined : complain(error.message)));
  } else await join();
  return {
    slots,
    name: () => here?.name ?? null,
    leave: forGood(leave),
    stepAside: forGood(stepAside),
    forget: () => {
      over.abort();
      trees.end();
    },
    lookForRoom: () => void trees.look(),
  };
}

/** Whether this worker would run the command of any task. */
const takesEveryCommand = ({ actions, types, projects }: OtherWorker): boolean =>
  types === undefined &&
  projects === undefined &&
  takesSuch({ actions: actions ?? null, types: null, projects: null }, { action: EXEC_COMMAND, type: "" }, "");
