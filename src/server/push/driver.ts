/**
 * One push worker, spoken for: Drover probes it, and as long as it is there syncs on its behalf.
 *
 *     probe ─► there: sync (long poll), post what is assigned, report what was answered ─► probe …
 *           └► not there: say nothing, look again later
 *
 * So a push worker is a worker like any other to the engine, and a dead one is given up for the same reason: its lease
 * was not renewed. Renewing follows a probe or an answer, never the mere passing of time, so the lease ends a lease
 * after the last sign of life. A worker that only takes connections while it has work in hand is taken for busy: it
 * keeps its lease and is given nothing new. One that comes back goes on under its session; what it held is then the
 * engine's again and is abandoned here. One that is gone for an hour is forgotten, as the engine forgets it, and has to
 * register again.
 */
import { DroverError, isStop } from "../../engine/base/index.ts";
import type { SyncAnswer } from "../../protocol/index.ts";
import { present, ringAfter } from "../../std/index.ts";
import { createPushAttempts, type PushAttempts, type PushNews } from "./attempts.ts";
import { type Health, type PushWorld, probe } from "./request.ts";
import { createPushSession, type Joined, type PushRemote, type PushSession, type PushWorker } from "./session.ts";

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

/** What a drive knows, and what it waits for. */
type Course = {
  readonly worker: PushWorker;
  readonly world: PushWorld;
  readonly attempts: PushAttempts;
  readonly session: PushSession;
  readonly onChange: (change: PushChange) => void;
  /** What is being waited for, so that it can be cut short. */
  readonly waiting: { poll?: AbortController; probe?: AbortController; pause?: () => void; idle?: () => void };
  health: Health;
  isDoubted: boolean;
  isStopping: boolean;
  /** Why it has ended. */
  over: string | null;
};

export function startDrive(deps: {
  readonly worker: PushWorker;
  /** Null: it joins first, once it is found there. */
  readonly joined: Joined | null;
  readonly remote: PushRemote;
  readonly world: PushWorld;
  readonly onChange: (change: PushChange) => void;
}): Drive {
  const { worker, remote, world, joined, onChange } = deps;
  const { endpoint, path = null, slots = 1 } = worker;
  const onNews = (news: PushNews): void => hearNews(course, news);
  const course: Course = {
    worker,
    world,
    attempts: createPushAttempts({ target: { endpoint, path }, slots, world, onNews }),
    session: createPushSession({ worker, joined, remote, clock: world.clock }),
    onChange,
    waiting: {},
    health: "dead",
    isDoubted: false,
    isStopping: false,
    over: null,
  };
  const ended = run(course).catch((error: unknown) => {
    course.attempts.abandon("the driver broke");
    world.onProblem(error);
  });
  return {
    isAlive: () => isAlive(course),
    underWay: course.attempts.count,
    giveBack: () => giveBack(course),
    async stop(graceMs) {
      await stop(course, graceMs);
      await ended;
    },
    end: (reason) => end(course, reason),
    ended,
  };
}

const isAlive = ({ health, attempts }: Course): boolean =>
  health === "answers" || (health === "connects" && attempts.count() > 0);
const lookMs = ({ session }: Course): number => Math.ceil(session.leaseMs() / LOOKS_PER_LEASE);

function notify({ worker, onChange }: Course, kind: PushChange["kind"], reason?: string): void {
  onChange({ workerId: worker.id, kind, ...present({ reason }) });
}

function hearNews(course: Course, news: PushNews): void {
  const { waiting } = course;
  if (news === "doubt") course.isDoubted = true;
  if (news === "answer") {
    course.health = "answers";
    waiting.probe?.abort(new Error("it has answered something else"));
    waiting.pause?.();
  }
  waiting.poll?.abort(new Error("there is something to say"));
}

async function run(course: Course): Promise<void> {
  while (course.over === null) {
    await look(course);
    if (course.over !== null) break;
    if (!isAlive(course)) await beSilent(course);
    else if (course.session.isJoined() || (await joinAgain(course))) await talk(course);
    else await pause(course);
  }
  course.attempts.abandon(course.over);
  course.waiting.idle?.();
  notify(course, "ended", course.over);
}

async function look(course: Course): Promise<void> {
  const { worker, world, session, attempts, waiting } = course;
  const wasAlive = isAlive(course);
  const asking = new AbortController();
  course.isDoubted = false;
  waiting.probe = asking;
  const timeoutMs = Math.min(PROBE_MS_MAX, Math.ceil(session.leaseMs() / PROBE_PART));
  const found = await probe(worker.endpoint, timeoutMs, world, asking.signal);
  delete waiting.probe;
  // Cut short, it found nothing; an answer to a task that came meanwhile says all it could have said.
  if (!asking.signal.aborted) course.health = found;
  attempts.judge(course.health);
  if (course.over === null && wasAlive !== isAlive(course)) notify(course, wasAlive ? "silent" : "alive");
}

async function beSilent(course: Course): Promise<void> {
  const { session, attempts } = course;
  if (session.silentMs() >= session.leaseMs()) attempts.abandon("its worker gave no sign of life for a lease");
  if (session.silentMs() >= FORGET_MS) course.over = "it gave no sign of life for an hour";
  else await pause(course);
}

function pause(course: Course): Promise<void> {
  const { waiting, world } = course;
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      delete waiting.pause;
      resolve();
    };
    const cancel = ringAfter(world.clock, lookMs(course), end, { keepAlive: false });
    waiting.pause = end;
  });
}

async function joinAgain(course: Course): Promise<boolean> {
  try {
    await course.session.join();
    return true;
  } catch (error) {
    if (isStop(error)) course.over = "the engine has stopped";
    else course.world.onProblem(error);
    return false;
  }
}

/** Until it is time to look again, or there is doubt. */
async function talk(course: Course): Promise<void> {
  const { attempts, waiting, world } = course;
  const lookedAt = world.clock.elapsed();
  // The first is answered at once and says how long a lease is by now; a poll that is cut short says nothing.
  for (let isFirst = true; course.over === null && !course.isDoubted; isFirst = false) {
    const until = lookedAt + lookMs(course);
    if (world.clock.elapsed() >= until) return;
    await sync(course, isFirst ? null : until);
    if (attempts.count() === 0 && attempts.results().length === 0) waiting.idle?.();
  }
}

/**
 * With something to report or to name it is answered at once and not cut short; else it may wait for something to be
 * said.
 */
async function sync(course: Course, until: number | null): Promise<void> {
  const { attempts, session, waiting, world } = course;
  const results = attempts.results();
  const running = attempts.running();
  const isPoll = until !== null && results.length === 0 && !attempts.isNaming();
  const poll = new AbortController();
  const ring = (): void => poll.abort(new Error("it is time to look"));
  const cancel = isPoll ? world.clock.ringAt(until, ring, { keepAlive: false }) : () => {};
  if (isPoll) waiting.poll = poll;
  const status = course.isStopping || course.health === "connects" ? "overloaded" : "ready";
  const report = { status, running, results, waitMs: isPoll ? POLL_MS_MAX : 0 } as const;
  try {
    hear(course, await session.sync(report, isPoll ? poll.signal : undefined), running);
  } catch (error) {
    if (!poll.signal.aborted || error !== poll.signal.reason) await meet(course, error);
  } finally {
    cancel();
    delete waiting.poll;
  }
}

/** The answer speaks of what is durable: what was named in its sync may be posted now. */
function hear(course: Course, answer: SyncAnswer, named: ReturnType<PushAttempts["running"]>): void {
  const { attempts, over, isStopping } = course;
  attempts.confirm(answer.results);
  attempts.cancel(answer.cancel);
  if (over === null) attempts.post(named);
  // What comes while it stops stays assigned, for the next server to sort out.
  if (!isStopping && over === null) attempts.take(answer.assignments);
}

async function meet(course: Course, error: unknown): Promise<void> {
  const code = error instanceof DroverError ? error.code : "";
  if (isStop(error)) course.over = "the engine has stopped";
  else if (code === "session_lost" || code === "not_found") course.over = (error as DroverError).message;
  else if (code === "stale_sync") course.session.skipTo(Number((error as DroverError).details.last));
  else {
    course.world.onProblem(error);
    await pause(course);
  }
}

function giveBack({ attempts, session, world, over }: Course): void {
  const unbegun = attempts.takeBack();
  const results = attempts.results();
  if (unbegun.length + results.length === 0 || over !== null) return;
  try {
    session.lastWord({ unbegun, results });
  } catch (error) {
    if (!isStop(error)) world.onProblem(error);
  }
}

function end(course: Course, reason: string): void {
  giveBack(course);
  course.over ??= reason;
  const cut = new Error(reason);
  course.waiting.poll?.abort(cut);
  course.waiting.probe?.abort(cut);
  course.waiting.pause?.();
}

async function stop(course: Course, graceMs: number): Promise<void> {
  const { attempts, waiting, world } = course;
  course.isStopping = true;
  giveBack(course);
  if (graceMs > 0 && course.over === null && (attempts.count() > 0 || attempts.results().length > 0)) {
    const idle = Promise.withResolvers<void>();
    waiting.idle = idle.resolve;
    const cancel = ringAfter(world.clock, graceMs, idle.resolve, { keepAlive: true });
    waiting.poll?.abort(new Error("the server stops"));
    await idle.promise;
    cancel();
  }
  end(course, "the server stops");
}
