/**
 * A plan on a server, watched: what happens to its tasks until they have all ended.
 *
 * The server runs it, whether this is there or not. What is shown comes from the same events as in a run alone, so it
 * is the same; only what cannot start by itself is no end here, since others may come: a worker, an answer, a budget.
 */

import { ClientError } from "../../client/index.ts";
import type { PlanTask } from "../../plan/index.ts";
import type { PlanTaskView, PlanView } from "../../protocol/index.ts";
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { type Clock, present, ringAfter } from "../../std/index.ts";
import { asTyped } from "../shell/problem.ts";
import { factOf, grownIn, type PausedBy, pauseAfter } from "./facts.ts";
import { waitsFor } from "./lines.ts";
import { isAway, type Link } from "./link.ts";
import { factsBetween } from "./polled.ts";
import { childRowOf, rowsOf } from "./rows.ts";
import type { RunEnd, RunObserver } from "./session.ts";
import { createRunState, type Fact, isLive, type Row, type RunState } from "./state.ts";
import type { Tails } from "./tails.ts";

export type JoinRequest = {
  readonly link: Link;
  readonly view: PlanView;
  /** The tasks as the file has them; null where only the server knows the plan. */
  readonly tasks: readonly PlanTask[] | null;
  /** The names of those that are waited for, of a plan of which only some were asked for; null: all of them. */
  readonly watched: ReadonlySet<string> | null;
  /** The names of the tasks whose questions are answered with yes. */
  readonly approved: ReadonlySet<string>;
  readonly observer: RunObserver;
  readonly tails: Tails;
  readonly clock: Clock;
  readonly rest: (ms: number) => Promise<void>;
  /** Fires when nobody watches any more; the plan goes on. */
  readonly signal: AbortSignal;
};

/** So long nothing happens to the plan before it is asked why, and so long before it is asked again. */
const QUIET_MS = 3000;
const QUIET_AGAIN_MS = 60_000;
const POLL_MS = 1000;
/** Of a tree that had grown before it is watched so many are read: a person sees no more. */
const MET_MAX = 10_000;

export async function watchPlan(request: JoinRequest): Promise<{ readonly runState: RunState; readonly end: RunEnd }> {
  const runState = createRunState(watchedIn(request, rowsOf(request.view, request.tasks)));
  try {
    const met = await meetChildren(request, runState);
    request.observer.begun(runState);
    return { runState, end: runState.isOver() ? { kind: "over" } : await watch(request, runState, met) };
  } catch (error) {
    if (!request.signal.aborted) throw error;
    return { runState, end: { kind: "detached" } };
  }
}

/** What its tasks had submitted before anybody watched. */
async function meetChildren({ link, view, signal }: JoinRequest, runState: RunState): Promise<ReadonlySet<string>> {
  const met = new Set<string>();
  for (const { taskId: root, children = 0 } of view.tasks) {
    if (children === 0 || runState.row(root) === undefined) continue;
    let cursor: string | undefined;
    do {
      const query = { root, order: "oldest", limit: PAGE_MAX, ...present({ cursor }) } as const;
      const page = await link.call((client) => client.tasks(query, { signal }));
      for (const task of page.tasks.filter(({ taskId }) => taskId !== root)) {
        runState.grow(childRowOf(task));
        met.add(task.taskId);
      }
      cursor = page.nextCursor;
    } while (cursor !== undefined && met.size < MET_MAX);
  }
  return met;
}

/** They are read after the plan: an event in between may tell what was seen already. */
const isSeen = (row: Row, fact: Fact): boolean =>
  isLive(row) ? fact.kind === "started" && fact.attempt <= row.attempt : fact.kind !== "retried";

/** Of the tasks that are not watched no fact tells any more that they had ended before. */
function watchedIn({ watched }: JoinRequest, rows: Row[]): Row[] {
  if (watched === null) return rows;
  const [ours, others] = [rows.filter(({ name }) => watched.has(name)), rows.filter(({ name }) => !watched.has(name))];
  const ended = new Set(others.filter((row) => !isLive(row)).map(({ id }) => id));
  return ours.map((row) => ({ ...row, needs: row.needs.filter((id) => !ended.has(id)) }));
}

async function watch(request: JoinRequest, runState: RunState, met: ReadonlySet<string>): Promise<RunEnd> {
  const { link, view, observer, tails, clock, approved, signal } = request;
  const { id: plan } = view;
  const ended = Promise.withResolvers<RunEnd>();
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  let pausedBy: PausedBy = view.pausedBy ?? null;
  let seen = view.seq;
  /** Of tasks that came with a later put, the event up to which they were shown. */
  const since = new Map<string, number>();
  let cancelQuiet = (): void => {};
  const tellWhy = createQuietNote({ ...request, signal: until }, runState);

  /** What comes behind the end is neither taken nor told. */
  function finish(end: RunEnd): void {
    over.abort();
    ended.resolve(end);
  }

  function lookAround(): void {
    cancelQuiet();
    if (runState.isOver()) finish({ kind: "over" });
    else if (pausedBy === "failed" && !runState.isBusy()) finish({ kind: "halted" });
    else if (runState.isQuiet()) askWhyAfter(QUIET_MS);
  }

  function askWhyAfter(ms: number): void {
    cancelQuiet = ringAfter(clock, ms, () => {
      tellWhy().catch(fail);
      askWhyAfter(QUIET_AGAIN_MS);
    });
  }

  async function approve({ id, name }: Row): Promise<void> {
    if (approved.has(name)) await link.call((client) => client.approve(id, { signal: until }));
  }

  /** Of one that has been parked before it was watched. */
  async function meet(row: Row): Promise<void> {
    const { id, why } = row;
    const at = Date.now();
    await apply((await awaitsChildren(id)) ? { kind: "awaiting", id, at } : { kind: "parked", id, at, why });
  }

  /** How a plan is shown does not tell one that waits for its children from one that waits for a person. */
  async function awaitsChildren(id: string): Promise<boolean> {
    const { conditions } = await link.call((client) => client.why(id, { signal: until }));
    return conditions.some(({ code }) => code === "children");
  }

  async function take(event: Event): Promise<void> {
    const { payload } = event;
    const pausedBefore = pausedBy;
    seen = event.seq;
    pausedBy = pauseAfter(event, plan, pausedBy, observer.noted);
    const grown = grownIn(event);
    if (grown !== null && runState.row(grown.parent ?? "") !== undefined) runState.grow(grown);
    const isPut = payload.kind === "plan-put" && payload.plan === plan;
    if (isPut) follow(await link.call((client) => client.plans.get(plan, { signal: until })));
    const fact = factOf({ at: Date.parse(event.at), payload });
    const isNews = fact !== null && event.seq > (since.get(fact.id) ?? 0);
    const isOurs = isNews && (await apply(fact));
    if (isOurs || isPut || pausedBy !== pausedBefore) lookAround();
  }

  /** Somebody has put it with other tasks: from now on these are watched too. True if they are others. */
  function follow(now: PlanView): boolean {
    const { added, gone } = runState.replan(watchedIn(request, rowsOf(now, null)));
    for (const { id } of added) since.set(id, now.seq);
    if (added.length + gone === 0) return false;
    const words = [
      ...(gone === 0 ? [] : [`${gone} ${gone === 1 ? "task is" : "tasks are"} no longer part of it`]),
      ...(added.length === 0 ? [] : [`${added.length} ${added.length === 1 ? "is" : "are"} new`]),
    ];
    observer.noted(`the plan was put again: ${words.join(", ")}`);
    return true;
  }

  /** Whether it has changed something. */
  async function apply(fact: Fact): Promise<boolean> {
    const known = met.has(fact.id) ? runState.row(fact.id) : undefined;
    if (known !== undefined && isSeen(known, fact)) return false;

    const row = runState.apply(fact);
    if (row === null) return false;
    if (row.state !== "running") await tails.flush(row);
    observer.happened(fact, row);
    if (fact.kind === "parked") await approve(row);
    return true;
  }

  /** How those stand that the plan was put without before they had ended. */
  async function leftOut(): Promise<PlanTaskView[]> {
    const found: PlanTaskView[] = [];
    for (const { id, name } of runState.rows.filter((row) => row.isGone === true && isLive(row))) {
      const task = await link.call((client) => client.task(id, { signal: until }));
      const { state, attempt, startedAt, completedAt: endedAt, error: reason } = task;
      found.push({ name, taskId: id, needs: [], state, attempt, ...present({ startedAt, endedAt, reason }) });
    }
    return found;
  }

  /** For a token that may not read the events. */
  async function poll(): Promise<void> {
    while (!until.aborted) {
      const now = await link.call((client) => client.plans.get(plan, { signal: until }));
      let hasChanged = follow(now) || pausedBy !== (now.pausedBy ?? null);
      pausedBy = now.pausedBy ?? null;
      for (const task of [...now.tasks, ...(await leftOut())]) {
        const row = runState.row(task.taskId);
        for (const fact of row === undefined ? [] : factsBetween(row, task, Date.now(), runState.rows)) {
          const { kind, id, at } = fact;
          const isAwaiting = kind === "parked" && (await awaitsChildren(id));
          if (await apply(isAwaiting ? { kind: "awaiting", id, at } : fact)) hasChanged = true;
        }
      }
      if (hasChanged) lookAround();
      await request.rest(POLL_MS);
    }
  }

  async function followEvents(): Promise<void> {
    while (!until.aborted) {
      try {
        for await (const event of link.client().events({ after: seen, signal: until, reconnects: 0 }))
          if (!until.aborted) await take(event);
      } catch (error) {
        if (error instanceof ClientError && error.code === "forbidden") return await poll();
        if (!isAway(error)) throw error;
        if (!until.aborted) await link.back(error);
      }
    }
  }

  const detached = new Promise<RunEnd>((resolve) => {
    signal.addEventListener("abort", () => resolve({ kind: "detached" }), { once: true });
  });
  const fail = (error: unknown): void => (until.aborted ? undefined : ended.reject(error));
  try {
    for (const row of runState.rows.filter(({ state }) => state === "parked")) await meet(row);
    lookAround();
    followEvents().catch(fail);
    tails.follow(() => runState.rows).catch(fail);
    return await Promise.race([ended.promise, detached]);
  } finally {
    cancelQuiet();
    over.abort();
  }
}

type Event = Awaited<ReturnType<ReturnType<Link["client"]>["eventPage"]>>["events"][number];

/** Says why nothing runs, and until when if time alone ends that; once for each reason. */
function createQuietNote({ link, view, observer, signal }: JoinRequest, runState: RunState): () => Promise<void> {
  let noted = "";
  const note = (text: string, sign = text): void => {
    if (sign !== noted && !signal.aborted) observer.noted(text);
    noted = sign;
  };
  return async () => {
    const parked = runState.rows.filter(({ state }) => state === "parked");
    if (parked.length > 0)
      return note(
        `it ${waitsFor(
          parked.map(({ name }) => name),
          view.id,
        )}`,
      );
    const { tasks, pausedBy } = await link.call((client) => client.plans.get(view.id, { signal }));
    if (pausedBy !== undefined) return note(`the plan is paused: ${asTyped(`drover plan ${view.id} --resume`)}`);
    const queued = tasks.find(({ state }) => state === "queued");
    if (queued === undefined) return;
    const { summary, earliestStart: at } = await link.call((client) => client.why(queued.taskId, { signal }));
    const named = runState.rows.reduce((text, row) => text.replaceAll(row.id, row.name), summary);
    const reason = `${queued.name}: ${named}`;
    note(at === undefined ? `nothing runs. ${reason}` : `nothing runs before ${at}: ${reason}`, reason);
  };
}
