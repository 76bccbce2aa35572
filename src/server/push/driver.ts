/**
 * One push worker, spoken for: Drover probes it, and as long as it is there syncs on its behalf.
 *
 *     probe ─► there: sync (long poll), post what is assigned, report what was answered ─► probe …
 *           └► not there: say nothing, look again later
 *
 * So a push worker is a worker like any other to the engine, and a dead one is given up for the same reason: nobody
 * renewed its lease. Renewing follows a probe or an answer, never the mere passing of time, so the lease ends a lease
 * after the last sign of life. A worker that only takes connections while it has work in hand is taken for busy: it
 * keeps its lease and is given nothing new. One that comes back goes on under its session; what it held is then
 * the engine's again and is abandoned here. One that is gone for an hour is forgotten, as the engine forgets it, and
 * has to register again.
 */

import { DroverError, isStop } from "../../engine/writer/index.ts";
import type { SyncAnswer } from "../../protocol/index.ts";
import { createPushAttempts, type PushNews, type PushWorld } from "./attempts.ts";
import { type Health, probe } from "./probe.ts";
import { createPushSession, type Joined, type PushRemote, type PushWorker } from "./session.ts";

/** Looks per lease, and the part of a lease one may take: a look without an answer leaves time for another. */
const LOOKS_PER_LEASE = 3;
const PROBE_PART = 4;
const PROBE_MS_MAX = 5000;
const POLL_MS_MAX = 60_000;
const FORGET_MS = 3_600_000;

/** For logs: a worker was found there, found missing, or is spoken for no longer. */
export type PushChange = {
  readonly workerId: string;
  readonly kind: "alive" | "silent" | "ended";
  readonly reason?: string;
};
export type Drive = {
  isAlive(): boolean;
  underWay(): number;
  /** Tells the engine what it does not know yet: what has ended, and what was not posted and will not be. */
  giveBack(): void;
  /** Takes nothing more and posts nothing more, waits for what is out up to the grace, and falls silent. */
  stop(graceMs: number): Promise<void>;
  /** Falls silent now: the worker has left, or was registered anew. */
  end(reason: string): void;
  readonly ended: Promise<void>;
};

export function startDrive(deps: {
  readonly worker: PushWorker;
  /** Null: it joins first, once it is found there. */
  readonly joined: Joined | null;
  readonly remote: PushRemote;
  readonly world: PushWorld;
  readonly onChange: (change: PushChange) => void;
}): Drive {
  const { worker, remote, world, joined } = deps;
  const { clock, onProblem } = world;
  const { id, endpoint, path = null, slots = 1 } = worker;
  const attempts = createPushAttempts({ target: { endpoint, path }, slots, world, onNews });
  const session = createPushSession({ worker, joined, remote, clock });
  /** What is being waited for, so that it can be cut short. */
  const waiting: { poll?: AbortController; probe?: AbortController; pause?: () => void; idle?: () => void } = {};
  let health: Health = "dead";
  let isDoubted = false;
  let isStopping = false;
  let over: string | null = null;

  const tell = (kind: PushChange["kind"], reason?: string): void =>
    deps.onChange({ workerId: id, kind, ...(reason === undefined ? {} : { reason }) });
  const isAlive = (): boolean => health === "answers" || (health === "connects" && attempts.count() > 0);
  const lookMs = (): number => Math.ceil(session.leaseMs() / LOOKS_PER_LEASE);

  function onNews(news: PushNews): void {
    if (news === "doubt") isDoubted = true;
    if (news === "answer") {
      health = "answers";
      waiting.probe?.abort(new Error("it has answered something else"));
      waiting.pause?.();
    }
    waiting.poll?.abort(new Error("there is something to say"));
  }

  async function run(): Promise<void> {
    while (over === null) {
      await look();
      if (over !== null) break;
      if (!isAlive()) await beSilent();
      else if (session.isJoined() || (await joinAgain())) await talk();
      else await pause();
    }
    attempts.abandon(over);
    waiting.idle?.();
    tell("ended", over);
  }

  async function look(): Promise<void> {
    const wasAlive = isAlive();
    const asking = new AbortController();
    isDoubted = false;
    waiting.probe = asking;
    const timeoutMs = Math.min(PROBE_MS_MAX, Math.ceil(session.leaseMs() / PROBE_PART));
    const found = await probe(endpoint, timeoutMs, world, asking.signal);
    delete waiting.probe;
    // Cut short, it found nothing; an answer to a task that came meanwhile says all it could have said.
    if (!asking.signal.aborted) health = found;
    attempts.judge(health);
    if (over === null && wasAlive !== isAlive()) tell(wasAlive ? "silent" : "alive");
  }

  async function beSilent(): Promise<void> {
    if (session.silentMs() >= session.leaseMs()) attempts.abandon("its worker gave no sign of life for a lease");
    if (session.silentMs() >= FORGET_MS) over = "it gave no sign of life for an hour";
    else await pause();
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        delete waiting.pause;
        resolve();
      };
      const cancel = clock.ringAt(clock.elapsed() + lookMs(), end, { keepAlive: false });
      waiting.pause = end;
    });
  }

  async function joinAgain(): Promise<boolean> {
    try {
      await session.join();
      return true;
    } catch (error) {
      if (isStop(error)) over = "the engine has stopped";
      else onProblem(error);
      return false;
    }
  }

  /** Until it is time to look again, or there is doubt. */
  async function talk(): Promise<void> {
    const lookedAt = clock.elapsed();
    // The first is answered at once and says how long a lease is by now; a poll that is cut short says nothing.
    for (let isFirst = true; over === null && !isDoubted; isFirst = false) {
      const until = lookedAt + lookMs();
      if (clock.elapsed() >= until) return;
      await sync(isFirst ? null : until);
      if (attempts.count() === 0 && attempts.results().length === 0) waiting.idle?.();
    }
  }

  /**
   * With something to report or to name it is answered at once and not cut short; else it may wait for something to be
   * said.
   */
  async function sync(until: number | null): Promise<void> {
    const results = attempts.results();
    const running = attempts.running();
    const isPoll = until !== null && results.length === 0 && !attempts.isNaming();
    const poll = new AbortController();
    const ring = (): void => poll.abort(new Error("it is time to look"));
    const cancel = isPoll ? clock.ringAt(until, ring, { keepAlive: false }) : () => {};
    if (isPoll) waiting.poll = poll;
    const status = isStopping || health === "connects" ? "overloaded" : "ready";
    const told = { status, running, results, waitMs: isPoll ? POLL_MS_MAX : 0 } as const;
    try {
      hear(await session.sync(told, isPoll ? poll.signal : undefined), running);
    } catch (error) {
      if (!poll.signal.aborted || error !== poll.signal.reason) await meet(error);
    } finally {
      cancel();
      delete waiting.poll;
    }
  }

  /** The answer speaks of what is durable: what was named in its sync may be posted now. */
  function hear({ results, cancel, assignments }: SyncAnswer, named: ReturnType<typeof attempts.running>): void {
    attempts.confirm(results);
    attempts.cancel(cancel);
    if (over === null) attempts.post(named);
    // What comes while it stops stays assigned, for the next server to sort out.
    if (!isStopping && over === null) attempts.take(assignments);
  }

  async function meet(error: unknown): Promise<void> {
    const code = error instanceof DroverError ? error.code : "";
    if (isStop(error)) over = "the engine has stopped";
    else if (code === "session_lost" || code === "not_found") over = (error as DroverError).message;
    else if (code === "stale_sync") session.skipTo(Number((error as DroverError).details.last));
    else {
      onProblem(error);
      await pause();
    }
  }

  function giveBack(): void {
    const unbegun = attempts.takeBack();
    const results = attempts.results();
    if (unbegun.length + results.length === 0 || over !== null) return;
    try {
      session.lastWord({ unbegun, results });
    } catch (error) {
      if (!isStop(error)) onProblem(error);
    }
  }

  function end(reason: string): void {
    giveBack();
    over ??= reason;
    const cut = new Error(reason);
    waiting.poll?.abort(cut);
    waiting.probe?.abort(cut);
    waiting.pause?.();
  }

  async function stop(graceMs: number): Promise<void> {
    isStopping = true;
    giveBack();
    if (graceMs > 0 && over === null && (attempts.count() > 0 || attempts.results().length > 0)) {
      const idle = Promise.withResolvers<void>();
      waiting.idle = idle.resolve;
      const cancel = clock.ringAt(clock.elapsed() + graceMs, idle.resolve, { keepAlive: true });
      waiting.poll?.abort(new Error("the server stops"));
      await idle.promise;
      cancel();
    }
    end("the server stops");
    await ended;
  }

  const ended = run().catch((error: unknown) => {
    attempts.abandon("the driver broke");
    onProblem(error);
  });
  return { isAlive, underWay: attempts.count, giveBack, stop, end, ended };
}
