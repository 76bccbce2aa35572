/**
 * The exec worker's inner half: a command per task.
 *
 * It is given a task and answers with an outcome; leases and the wire are another's. While it runs a task the output
 * can be read and followed. Closing it stops what runs, by the ladder, and nothing of it survives; should the worker's
 * own process end without closing, what runs is killed on its way out, and what even that misses is found by the
 * `sweep` of its successor.
 */
import { join } from "node:path";
import { readTail } from "../output/capped-file.ts";
import { createOutputDirectory } from "../output/directory.ts";
import { killLeftovers, type Leader } from "../process/leftovers.ts";
import { createRuns, type DeadRun, thisOwner } from "../process/runs.ts";
import type { ProcessTable } from "../process/table.ts";
import { createWorktrees } from "../worktree/worktree.ts";
import { type Attempt, type AttemptTools, startAttempt } from "./attempt.ts";
import type { ExecContext, ExecHandler, ExecOutcome, ExecTask, SweepReport } from "./contract.ts";
import { createFileCache } from "./file-cache.ts";
import { type ExecOptions, type ExecSetup, readExecOptions } from "./options.ts";
import { createSessions } from "./sessions.ts";

/** Throws, in plain words, if the options make no sense. */
export function createExecHandler(options: ExecOptions): ExecHandler {
  const tools = createTools(readExecOptions(options));
  return runAttempts(tools, (task) => ({ tools, task }));
}

/** What an attempt runs with; or, of one that need not run, how it ended. */
export type Prepared = { readonly tools: AttemptTools; readonly task: ExecTask } | ExecOutcome;
export type AttemptRunner = ExecHandler & {
  /** The attempt of a task that runs here. */
  running(taskId: string): Attempt | undefined;
  isClosing(): boolean;
  /** SIGKILL to all that runs, now. */
  kill(): void;
};

/** Attempts with the same directories, each prepared by its own task. */
export function runAttempts(
  tools: AttemptTools,
  prepare: (task: ExecTask, context: ExecContext) => Prepared | Promise<Prepared>,
  onStart: (attempt: Attempt) => void = () => {},
): AttemptRunner {
  const attempts = new Map<string, Attempt>();
  let closed: Promise<void> | null = null;
  const kill = (): void => {
    for (const attempt of attempts.values()) attempt.kill();
  };
  process.on("exit", kill);

  async function run(task: ExecTask, context: ExecContext): Promise<ExecOutcome> {
    const preparing = closed === null ? prepare(task, context) : CLOSING;
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    if ("outcome" in prepared) return prepared;
    if (closed !== null) return CLOSING;
    const key = keyOf(task.taskId, context.attempt);
    if (attempts.has(key)) throw new Error(`attempt ${context.attempt} of ${task.taskId} runs here already`);
    const attempt = startAttempt(prepared.tools, prepared.task, context);
    attempts.set(key, attempt);
    try {
      onStart(attempt);
      return await attempt.outcome;
    } finally {
      attempts.delete(key);
    }
  }

  const running = (taskId: string): Attempt | undefined =>
    [...attempts.values()].findLast((attempt) => attempt.taskId === taskId);

  const tail: ExecHandler["tail"] = async (taskId, wanted, { follow = false, signal, ...size } = {}) => {
    // The file of one that runs may not be there yet.
    const attempt = wanted ?? running(taskId)?.number ?? (await tools.outputs.latestOf(taskId));
    if (attempt === null || !Number.isSafeInteger(attempt)) return null;
    const log = attempts.get(keyOf(taskId, attempt))?.log;
    const head = { taskId, attempt, isRunning: log !== undefined };
    if (log !== undefined) return { ...head, ...(follow ? log.follow(size, signal) : await log.tail(size)) };
    const found = await readTail(tools.outputs.pathOf(taskId, attempt), size);
    return found === null ? null : { ...head, ...found, ...(follow ? { lines: nothingMore() } : {}) };
  };

  async function finish(): Promise<void> {
    for (const attempt of attempts.values()) attempt.stop({ kind: "closing" });
    await Promise.allSettled([...attempts.values()].map(({ outcome }) => outcome));
    process.off("exit", kill);
  }
  function close(): Promise<void> {
    closed ??= finish();
    return closed;
  }

  return {
    run,
    running,
    kill,
    tail,
    close,
    isClosing: () => closed !== null,
    [Symbol.asyncDispose]: close,
    sweep: () => sweepWith(tools),
    room: async () => (await tools.worktrees?.room({ isForAll: tools.setup.isolation === "worktree" })) ?? null,
    limitWorktrees: (count) => tools.worktrees?.limit(count),
    letGo: async (taskId) => running(taskId) === undefined && ((await tools.worktrees?.letGo(taskId)) ?? false),
  };
}

const CLOSING: ExecOutcome = { outcome: "requeue", error: "its worker is closing" };
const keyOf = (taskId: string, attempt: number): string => `${attempt} ${taskId}`;

async function* nothingMore(): AsyncGenerator<string> {}

export function createTools(setup: ExecSetup): AttemptTools {
  const { data, table, workerId } = setup;
  return {
    setup,
    runs: createRuns({ directory: join(data, "runs"), owner: thisOwner(table), workerId, table }),
    outputs: createOutputDirectory(join(data, "logs"), setup.logBytesTotalMax),
    files: createFileCache(join(data, "inputs")),
    begun: new Map(),
    ...ownTools(setup),
  };
}

/** What differs between tasks that are set up each in its own way. */
export function ownTools(setup: ExecSetup): Pick<AttemptTools, "sessions" | "worktrees"> {
  const { data, table, cwd, base, worktreeRoot: root, maxWorktrees: countMax } = setup;
  const owner = thisOwner(table);
  return {
    sessions: createSessions(join(data, "sessions"), setup.tool),
    worktrees: setup.isolation === "none" ? null : createWorktrees({ cwd, base, root, countMax, owner, table }),
  };
}

async function sweepWith({ setup, runs, sessions, outputs, worktrees }: AttemptTools): Promise<SweepReport> {
  const problems: string[] = [];
  const dead = await runs.dead(setup.clock.now());
  let killed = 0;
  for (const run of dead) {
    const leader = provenLeader(run, setup.table);
    const found = await killLeftovers(setup.table, { id: run.id, leader, since: run.leader?.startedAt ?? null });
    killed += found.killed;
    if (found.remaining.length === 0) await run.end();
    else problems.push(`processes ${found.remaining.join(", ")} of run ${run.id} would not die`);
  }
  // Only when no attempt works in them any more.
  const trees = (await worktrees?.sweep()) ?? { removed: [], kept: [], problems: [] };
  sessions.prune(setup.clock.now());
  await outputs.trim();
  return {
    runs: dead.length,
    killed,
    worktreesRemoved: trees.removed,
    worktreesKept: trees.kept,
    problems: [...problems, ...trees.problems],
  };
}

/** After so long a number proves nothing any more; the leader itself, still there, does. */
function provenLeader({ leader }: DeadRun, table: ProcessTable): Leader | null {
  return leader !== null && table.read(leader.pid)?.startedAt === leader.startedAt ? leader : null;
}
