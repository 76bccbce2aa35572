/**
 * One run of a plan: the engine embedded in this process, over the plan's own log, with this machine as its worker.
 *
 * This file is the one of the command line (beside serve/serve.ts) that knows the engine: a plan needs no server, so
 * there is no wire to speak over. All it does is bring three parts together. The log is brought in line with the plan
 * (what is new is submitted, what ended badly is tried again, what the plan no longer has is cancelled); the commands
 * run as the engine starts them; and what the log says goes into the state of the run and to its observer.
 *
 * Interrupting stops the commands and nothing else: what had not ended stays in the log and goes on with the next run.
 */

import { once } from "node:events";
import {
  type ConfigInput,
  type Drover,
  type FeedEvent,
  type Handler,
  type LocalWorker,
  openDrover,
} from "../../engine/index.ts";
import { inputsByName, type Matching, matchTasks, type PlanTask } from "../../plan/index.ts";
import type { Clock } from "../../std/index.ts";
import { answerOf, watchRoom } from "../../worker/exec/index.ts";
import type { ExecOutcome } from "../../worker/index.ts";

import type { PlanFile } from "../plan/plan-file.ts";
import type { Attempts } from "./attempts.ts";
import { factOf } from "./facts.ts";
import { bringInLine, IN_PLACE, IN_WORKTREE, keptOf, knownIn, rowOf } from "./log.ts";
import { createStallCheck, type Stall } from "./stall-check.ts";
import { createRunState, type Fact, isLive, type Row, type RunState } from "./state.ts";

export type RunRequest = {
  readonly plan: PlanFile;
  /** Those of the plan that are to be done, each behind all that it needs. */
  readonly tasks: readonly PlanTask[];
  readonly data: string;
  readonly slots: number;
  readonly attempts: Attempts;
  /** Whether what failed, was skipped or cancelled in an earlier run is tried again. */
  readonly retriesFailed: boolean;
  /** Whether nothing more starts once a task has failed. */
  readonly failsFast: boolean;
  /** The names of the tasks whose questions are answered with yes. */
  readonly approved: ReadonlySet<string>;
  readonly now: () => number;
  readonly clock: Clock;
  readonly observer: RunObserver;
};
/** Shows what happens. */
export type RunObserver = {
  begun(runState: RunState): void;
  happened(fact: Fact, row: Row): void;
  /** What a person should know, and what is no fact about a task. */
  noted(text: string): void;
};
export type RunEnd =
  | { readonly kind: "over" }
  /** A task failed, and nothing more was to be started. */
  | { readonly kind: "halted" }
  /** Nothing runs, and nothing ever will by itself. */
  | ({ readonly kind: "stalled" } & Stall)
  | { readonly kind: "interrupted" };
export type Run = {
  readonly ended: Promise<{ readonly runState: RunState; readonly end: RunEnd }>;
  /** Stops what runs and starts no more; the run ends as interrupted. */
  interrupt(): void;
};

/** A command that is being stopped has its grace; after that the engine waits this much longer. */
const MARGIN_MS = 5000;

export function startRun(request: RunRequest): Run {
  const interrupted = new AbortController();
  return { ended: perform(request, interrupted.signal), interrupt: () => interrupted.abort() };
}

async function perform(request: RunRequest, interrupted: AbortSignal): Promise<{ runState: RunState; end: RunEnd }> {
  const { data, observer, attempts } = request;
  const openedAt = Date.now();
  const drover = await openDrover({ data, config: configFor(request), onWarning: observer.noted });
  try {
    const swept = await attempts.sweep();
    if (swept.killed > 0) observer.noted(`${swept.killed} processes that an earlier run had left behind were killed`);
    for (const problem of swept.problems) observer.noted(problem);
    const matching = matchTasks(request.tasks, knownIn(drover));
    const kept = keptOf(drover, matching, { retriesFailed: request.retriesFailed, openedAt });
    const runState = createRunState(matching.matched.map((matched) => rowOf(matched, drover, kept)));
    const after = drover.state.seq;
    await bringInLine(drover, matching, request, kept);
    observer.begun(runState);
    if (runState.isOver()) return { runState, end: { kind: "over" } };
    if (interrupted.aborted) return { runState, end: { kind: "interrupted" } };
    const end = await conduct({ ...request, drover, runState, matching, after, interrupted });
    // What must not run twice fails when it is stopped, and nothing may be left then: it was interrupted all the same.
    const isCut = interrupted.aborted && runState.rows.some(({ state }) => state !== "done");
    return { runState, end: isCut ? { kind: "interrupted" } : end };
  } finally {
    await drover.close();
  }
}

/** The plan's config, with what the slots of this machine call for where the plan says nothing. */
function configFor({ plan, slots }: RunRequest): ConfigInput {
  const { config, killGraceMs, maxWorktrees } = plan;
  const { maxInFlight: said = slots } = config.scheduler;
  const maxInFlight = typeof said === "number" ? Math.min(said, slots) : said;
  const { default: ofProjects, ...projects } = config.projects as Record<string, Record<string, unknown>>;
  return {
    ...config,
    scheduler: { maxPerAgentInFlight: Math.max(10, slots), ...config.scheduler, maxInFlight },
    projects: { ...projects, default: { maxConcurrent: Math.max(50, slots), ...ofProjects } },
    workers: { killGrace: killGraceMs + MARGIN_MS, maxWorktrees },
  } as ConfigInput;
}

// --------------------------------------------------------------------- the run

type RunContext = RunRequest & {
  readonly drover: Drover;
  readonly runState: RunState;
  readonly matching: Matching;
  /** The last event before this run. */
  readonly after: number;
  readonly interrupted: AbortSignal;
};

async function conduct(run: RunContext): Promise<RunEnd> {
  const { drover, attempts } = run;
  const workers = await startWorkers(run);
  const watch = watchLog(run, workers.shortage);
  const failed = drover.failed.then((error) => Promise.reject(error));
  failed.catch(() => {}); // After the run has ended nothing waits for it.
  // Timers of the engine do not hold the process; a run that waits for one must.
  const hold = setInterval(() => {}, 1 << 30);
  try {
    await approveParked(run);
    await workers.begin();
    return await Promise.race([watch.ended, failed, interruption(run, workers, watch.caughtUp)]);
  } finally {
    clearInterval(hold);
    attempts.stop();
    await workers.close();
    watch.close();
  }
}

/** What an earlier run has left parked. */
async function approveParked({ drover, matching, approved }: RunContext): Promise<void> {
  for (const { task, id } of matching.matched)
    if (approved.has(task.name) && drover.state.tasks.get(id as never)?.phase === "parked") await drover.approve(id);
}

type RunWorkers = {
  begin(): Promise<void>;
  /** Looks again: what is in the way of another worktree, in words; null if one may be made. */
  shortage(): Promise<string | null>;
  close(): Promise<void>;
};

/**
 * The workers of this machine: one for tasks in place, one for those with a worktree, which alone wait when there are
 * as many trees as there may be. Together they run no more than the slots: that is the run's maxInFlight.
 */
async function startWorkers(run: RunContext): Promise<RunWorkers> {
  const { drover, attempts, runState, slots, observer, clock } = run;
  const done = new Set<string>();
  const wantsTree = (row: Row): boolean => row.hasWorktree && isLive(row) && !done.has(row.id);
  const hasTrees = runState.rows.some(wantsTree);
  let inTheWay: string | null = null;
  const forTrees = Promise.withResolvers<LocalWorker>();
  const trees = watchRoom({
    room: async () => (runState.rows.some(wantsTree) ? await attempts.room() : null),
    slots,
    warn: observer.noted,
    clock,
    limit: (count, note) => {
      inTheWay = note;
      forTrees.promise.then((worker) => worker.limit(count, note)).catch(() => {}); // It may have left.
    },
  });
  const handler = handlerFor(run, async (id, isDone) => {
    if (isDone) done.add(id);
    await trees.look();
  });
  const workers = [await drover.worker({ id: "this-machine", slots, capabilities: [IN_PLACE] }, handler)];
  if (hasTrees) {
    // None until it is known how many worktrees there may be.
    const options = { id: "this-machine-worktrees", slots, capabilities: [IN_WORKTREE], limit: 0 };
    const worker = await drover.worker(options, handler);
    forTrees.resolve(worker);
    workers.push(worker);
  }
  return {
    begin: trees.look,
    shortage: () => trees.look().then(() => inTheWay),
    async close() {
      trees.end();
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
}

/**
 * Should it come: the commands get the ladder, and what they say in their grace still counts. That they were stopped is
 * no fault of their tasks, so the worker leaves with them, and they stay in the log as if they had not begun.
 */
async function interruption(
  { drover, attempts, interrupted }: RunContext,
  workers: RunWorkers,
  caughtUp: (seq: number) => Promise<void>,
): Promise<RunEnd> {
  if (!interrupted.aborted) await once(interrupted, "abort");
  attempts.stop();
  await workers.close();
  await caughtUp(drover.state.seq);
  return { kind: "interrupted" };
}

type Watch = { readonly ended: Promise<RunEnd>; caughtUp(seq: number): Promise<void>; close(): void };

/** Follows the log, tells what happened, and notices when there is nothing more to wait for. */
function watchLog(run: RunContext, shortage: RunWorkers["shortage"]): Watch {
  const { drover, runState, observer, failsFast, approved, after } = run;
  const ended = Promise.withResolvers<RunEnd>();
  const closing = new AbortController();
  const waiting = new Set<{ readonly seq: number; readonly resolve: () => void }>();
  const stallCheck = createStallCheck({ drover, runState, now: run.now, noted: observer.noted, shortage });
  let seen = after;
  let haltedAt: number | null = null;

  async function halt(): Promise<void> {
    haltedAt = Number.POSITIVE_INFINITY;
    await drover.pause();
    haltedAt = drover.state.seq;
    lookAround();
  }

  function take(event: FeedEvent): void {
    seen = event.seq;
    const fact = factOf(event);
    const row = fact === null ? null : runState.apply(fact);
    if (fact !== null && row !== null) observer.happened(fact, row);
    if (fact?.kind === "parked" && row !== null && approved.has(row.name)) drover.approve(row.id).catch(ended.reject);
    if (row?.state === "failed" && failsFast && haltedAt === null) halt().catch(ended.reject);
    for (const one of waiting) if (seen >= one.seq) one.resolve();
    lookAround();
  }

  function lookAround(): void {
    if (runState.isOver()) ended.resolve({ kind: "over" });
    else if (haltedAt !== null && seen >= haltedAt && !runState.rows.some(({ state }) => state === "running"))
      ended.resolve({ kind: "halted" });
    // Only a state that has caught up with the log says something about now.
    else if (haltedAt === null && seen === drover.state.seq)
      stallCheck().then((stall) => stall === null || ended.resolve({ kind: "stalled", ...stall }), ended.reject);
  }

  async function follow(): Promise<void> {
    for await (const event of drover.events({ after, follow: true, signal: closing.signal })) take(event);
  }

  follow().catch(ended.reject);
  return {
    ended: ended.promise,
    caughtUp: (seq) =>
      new Promise((resolve) => (seen >= seq ? resolve() : void waiting.add({ seq, resolve: () => resolve() }))),
    close: () => closing.abort(),
  };
}

// ---------------------------------------------------------------- the commands

function handlerFor(run: RunContext, treeEnded: (id: string, isDone: boolean) => Promise<void>): Handler {
  const { matching, attempts } = run;
  const byId = new Map(matching.matched.map((matched) => [matched.id, matched]));
  return async (assigned, context) => {
    const matched = byId.get(assigned.taskId);
    if (matched === undefined) throw Object.assign(new Error("it is no part of this run"), { permanent: true });
    const { task } = matched;
    const seen = assigned.inputs === undefined ? {} : { inputs: inputsByName(matched, assigned.inputs) };
    const outcome = await attempts.run(task, { ...assigned, ...seen }, context);
    if (task.work.worktree !== null) await treeEnded(assigned.taskId, outcome.outcome === "done");
    if (run.failsFast && isLastFailure(outcome, task, assigned.taskId, run)) await run.drover.pause();
    return answerOf(outcome, attempts.isStopping());
  };
}

/** Whether the task will have failed by this: then nothing may start in the same breath. */
function isLastFailure(
  { outcome, permanent }: ExecOutcome,
  { rules }: PlanTask,
  id: string,
  { drover, attempts }: RunContext,
): boolean {
  if ((outcome !== "failed" && outcome !== "cancelled") || attempts.isStopping()) return false;
  const failures = drover.state.tasks.get(id as never)?.ownFailures ?? 0;
  return permanent === true || failures + 1 >= rules.attempts;
}
