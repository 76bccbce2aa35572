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
import type { TaskId } from "../../core/base/index.ts";
import { EXEC_COMMAND, EXEC_WORKTREE } from "../../core/fleet/index.ts";
import {
  type ConfigInput,
  type Drover,
  type FeedEvent,
  type Handler,
  type LocalWorker,
  openDrover,
} from "../../engine/index.ts";
import type { PlanTask } from "../../plan/index.ts";
import type { PlanView } from "../../protocol/index.ts";
import { type Clock, present } from "../../std/index.ts";
import { answerOf, watchRoom } from "../../worker/exec/index.ts";

import type { PlanFile } from "../plan/plan-file.ts";
import type { RunApi } from "./api.ts";
import type { Attempts } from "./attempts.ts";
import { childRow, factOf, grownIn, type PausedBy, pauseAfter } from "./facts.ts";
import { ROW_STATES, rowsOf } from "./rows.ts";
import { createStallCheck, type Stall } from "./stall-check.ts";
import { createRunState, type Fact, isLive, type Row, type RunState } from "./state.ts";

export type RunRequest = {
  readonly plan: PlanFile;
  /** Those of the plan that are to be done, each behind all that it needs. */
  readonly tasks: readonly PlanTask[];
  readonly data: string;
  readonly slots: number;
  readonly attempts: Attempts;
  readonly api: RunApi;
  /** The names that a person gave, where these are not all tasks. */
  readonly only?: readonly string[] | undefined;
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
  | { readonly kind: "interrupted" }
  /** It goes on where it runs, and is watched no more. */
  | { readonly kind: "detached" };
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
  const { data, observer, attempts, api } = request;
  const openedAt = Date.now();
  const drover = await openDrover({ data, config: configFor(request), onWarning: observer.noted });
  api.serve(drover);
  try {
    const swept = await attempts.sweep();
    if (swept.killed > 0) observer.noted(`${swept.killed} processes that an earlier run had left behind were killed`);
    for (const problem of swept.problems) observer.noted(problem);
    const view = await putPlan(drover, request, openedAt);
    const runState = createRunState(withAwaiting(drover, [...rowsOf(view, request.tasks), ...childrenIn(drover)]));
    observer.begun(runState);
    if (runState.isAllOver()) return { runState, end: { kind: "over" } };
    if (interrupted.aborted) return { runState, end: { kind: "interrupted" } };
    const end = await conduct({ ...request, drover, runState, after: view.seq, interrupted });
    // What must not run twice fails when it is stopped, and nothing may be left then: it was interrupted all the same.
    const isCut = interrupted.aborted && runState.rows.some(({ state }) => state !== "done");
    return { runState, end: isCut ? { kind: "interrupted" } : end };
  } finally {
    await api.close();
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

// -------------------------------------------------------------------- the plan

/** Makes the log hold what the plan says, before anything starts. */
async function putPlan(drover: Drover, request: RunRequest, openedAt: number): Promise<PlanView> {
  const { plan, only, retriesFailed, failsFast: failFast } = request;
  const { name, document, directory } = plan;
  await drover.resume();
  await cancelStrangers(drover, name);
  if (drover.state.plans.get(name)?.paused === "asked") await drover.plans.resume(name);
  const unseen = unseenIn(drover, openedAt);
  const retryFailed = retriesFailed && unseen.size === 0;
  const put = await drover.plans.put(name, document, {
    directory,
    failFast,
    retryFailed,
    adopt: true,
    ...present({ only }),
  });
  for (const warning of put.warnings) request.observer.noted(warning);
  if (retriesFailed && !retryFailed) await retryOthers(drover, put, unseen);
  return await drover.plans.get(name);
}

/** Before plans were put, the log had their tasks without a group: what of those has not ended is of no interest. */
async function cancelStrangers(drover: Drover, plan: string): Promise<void> {
  if (drover.state.plans.has(plan)) return;
  const live = [...drover.state.tasks.values()].filter(({ end, extra }) => end === null && extra?.group == null);
  for (const { id } of live.toReversed()) await drover.cancel(id, { reason: "it is no part of this run" });
}

/**
 * What had begun when the run before was killed and must not be repeated: it has failed only now, when the log was
 * opened. The person has not seen that yet, so it stays, and with it what was skipped for its sake.
 */
const unseenIn = ({ state }: Drover, openedAt: number): ReadonlySet<string> =>
  new Set(
    [...state.tasks.values()]
      .filter(({ requirements, end }) => requirements.onLoss === "fail" && (end?.at ?? 0) >= openedAt)
      .map(({ id }) => id),
  );

async function retryOthers(drover: Drover, { tasks }: PlanView, unseen: ReadonlySet<string>): Promise<void> {
  const stays = new Set<string>();
  for (const { name, taskId, state, needs } of tasks)
    if (unseen.has(taskId) || (state === "skipped" && needs.some((need) => stays.has(need)))) stays.add(name);
    else if (state === "failed" || state === "skipped") await drover.retry(taskId);
}

/** What running tasks had submitted in earlier runs, and has not ended, as far as it had come. */
const childrenIn = ({ state }: Drover): Row[] =>
  [...state.tasks.values()]
    .filter(({ end, links }) => end === null && links?.ofRunning === true)
    .map(({ id, phase, attempts, links, extra, requirements }) => {
      const child = childRow({
        id,
        parent: links?.parent ?? null,
        maxAttempts: requirements.maxAttempts,
        maxRounds: extra?.loop?.max ?? 0,
        hasWorktree: requirements.worktrees > 0,
        needs: phase === "queued" ? [] : (links?.needs ?? []),
      });
      const why = phase === "parked" ? (extra?.approval?.question ?? "") : "";
      return { ...child, state: ROW_STATES[phase], attempt: attempts, why };
    });

/** One that waits for its children is parked too, and asks nobody. */
function withAwaiting({ state }: Drover, rows: readonly Row[]): Row[] {
  const isAwaiting = ({ id }: Row): boolean => (state.tasks.get(id as TaskId)?.extra?.wait?.answer ?? null) !== null;
  return rows.map((row) => (row.state === "parked" && isAwaiting(row) ? { ...row, state: "awaiting" } : row));
}

// --------------------------------------------------------------------- the run

type RunContext = RunRequest & {
  readonly drover: Drover;
  readonly runState: RunState;
  /** The last event before this run. */
  readonly after: number;
  readonly interrupted: AbortSignal;
};

async function conduct(run: RunContext): Promise<RunEnd> {
  const { drover, attempts } = run;
  const workers = await startWorkers(run);
  const watch = watchLog(run, workers);
  const failed = drover.failed.then((error) => Promise.reject(error));
  failed.catch(() => {}); // After the run has ended nothing waits for it.
  // Timers of the engine do not hold the process; a run that waits for one must.
  const hold = setInterval(() => {}, 1 << 30);
  try {
    await meetParked(run);
    await workers.begin();
    return await Promise.race([watch.ended, failed, interruption(run, workers, watch.caughtUp)]);
  } finally {
    clearInterval(hold);
    attempts.stop();
    await workers.close();
    watch.close();
  }
}

/** What was parked before the log is followed: from its beginning, or by an earlier run. */
async function meetParked({ drover, runState, approved, observer, now }: RunContext): Promise<void> {
  for (const row of runState.rows.filter(({ state }) => state === "parked")) {
    const { name, id, why } = row;
    observer.happened({ kind: "parked", id, at: now(), why }, row);
    if (approved.has(name)) await drover.approve(id);
  }
}

type RunWorkers = {
  begin(): Promise<void>;
  /** A task has grown that wants a worktree. */
  wantTree(): void;
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
  let inTheWay: string | null = null;
  let forTrees: Promise<LocalWorker> | null = null;
  const trees = watchRoom({
    room: async () => (runState.rows.some(wantsTree) ? await attempts.room() : null),
    slots,
    warn: observer.noted,
    clock,
    limit: (count, note) => {
      inTheWay = note;
      forTrees?.then((worker) => worker.limitWorktrees(count, note)).catch(() => {}); // It may have left.
    },
  });
  const handler = handlerFor(run, async (id, isDone) => {
    if (isDone) done.add(id);
    await trees.look();
  });
  const inPlace = await drover.worker({ id: "this-machine", slots, actions: [EXEC_COMMAND] }, handler);
  // None until it is known how many worktrees there may be.
  const treeWorker = { id: "this-machine-worktrees", slots, actions: [EXEC_WORKTREE], worktrees: 0 };
  const joinForTrees = (): Promise<LocalWorker> => {
    forTrees ??= drover.worker(treeWorker, handler);
    return forTrees;
  };
  if (runState.rows.some(wantsTree)) await joinForTrees();
  return {
    begin: trees.look,
    wantTree: () => void joinForTrees().then(trees.look, () => {}), // The run may be over.
    shortage: () => trees.look().then(() => inTheWay),
    async close() {
      trees.end();
      const second = await forTrees?.catch(() => null);
      await Promise.all([inPlace.close(), second?.close()]);
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
function watchLog(run: RunContext, { shortage, wantTree }: RunWorkers): Watch {
  const { drover, runState, observer, approved, after, plan } = run;
  const ended = Promise.withResolvers<RunEnd>();
  const closing = new AbortController();
  const waiting = new Set<{ readonly seq: number; readonly resolve: () => void }>();
  const stallCheck = createStallCheck({ drover, runState, now: run.now, noted: observer.noted, shortage });
  let seen = after;
  let pausedBy: PausedBy = null;

  function take(event: FeedEvent): void {
    seen = event.seq;
    const grown = grownIn(event);
    if (grown !== null) runState.grow(grown);
    if (grown?.hasWorktree === true) wantTree();
    const fact = factOf(event);
    const row = fact === null ? null : runState.apply(fact);
    if (fact !== null && row !== null) observer.happened(fact, row);
    if (fact?.kind === "parked" && row !== null && approved.has(row.name)) drover.approve(row.id).catch(ended.reject);
    pausedBy = pauseAfter(event, plan.name, pausedBy, observer.noted);
    for (const one of waiting) if (seen >= one.seq) one.resolve();
    lookAround();
  }

  function lookAround(): void {
    if (runState.isAllOver()) ended.resolve({ kind: "over" });
    else if (pausedBy === "failed" && !runState.isBusy()) ended.resolve({ kind: "halted" });
    // Only a state that has caught up with the log says something about now.
    else if (pausedBy === null && seen === drover.state.seq)
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

/** What the plan says now counts for its own tasks: it may have been moved. Children bring what is to be run. */
function handlerFor(run: RunContext, treeEnded: (id: string, isDone: boolean) => Promise<void>): Handler {
  const { runState, tasks, attempts, drover } = run;
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const byId = new Map(runState.rows.map(({ id, name }) => [id, byName.get(name)]));
  return async (assigned, context) => {
    const { taskId } = assigned;
    const { links = null, requirements } = drover.state.tasks.get(taskId as TaskId) ?? {};
    const task = links?.ofRunning === true ? null : byId.get(taskId);
    if (task === undefined) throw Object.assign(new Error("it is no part of this run"), { permanent: true });
    const outcome = await attempts.run(task, assigned, context);
    if (requirements !== undefined && requirements.worktrees > 0) await treeEnded(taskId, outcome.outcome === "done");
    return answerOf(outcome, attempts.isStopping());
  };
}
