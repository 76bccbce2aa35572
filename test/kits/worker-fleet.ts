/**
 * A fleet of pull workers and a real engine in one process, under one clock that is turned by hand.
 *
 * Everything is the real thing but the wire and the time: the workers' connections, the handlers, the engine, its log.
 * Each call over the wire meets the next fault of a list: it is lost on the way there, or its answer on the way back,
 * or either is late, or it arrives twice, or nothing is ever heard of it. The server may go down and come back on the
 * same log; a worker may die. What the handlers do is noted, so that a test can say who worked on what at the same
 * time.
 */
import { type Drover, openDrover } from "../../src/engine/index.ts";
import { createMemoryLog, createMemoryStore } from "../../src/log/memory/memory-log.ts";
import type { SyncBody } from "../../src/protocol/index.ts";
import type { Clock } from "../../src/std/clock.ts";
import { createHandClock, type HandClock } from "../../src/std/hand-clock.ts";
import { type Connection, startConnection } from "../../src/worker/pull/connection.ts";
import { createHandlers, type Perform } from "../../src/worker/pull/handlers.ts";
import type { Stop, ToHandlers } from "../../src/worker/pull/messages.ts";
import { createLeaseCell } from "../../src/worker/pull/messages.ts";
import { createProgressReports } from "../../src/worker/pull/progress.ts";
import { type HeardSync, parseNames, readUnread } from "../../src/worker/pull/unread-tasks.ts";
import type { Wire } from "../../src/worker/pull/wire.ts";
import { NO_FILES } from "./no-files.ts";

/** Time passes while engine and workers are at it; how fast they are says what is a short task to them. */
const SLOW: number = 1;
export const FAST: number = 0.01;

export type Fault =
  | { readonly kind: "none" | "lose-request" | "lose-answer" | "black-hole" | "twice" }
  | { readonly kind: "slow-request" | "slow-answer"; readonly ms: number };
/** What a handler does: how long it takes, and whether it fails the first time or ignores that it should stop. */
export type Work = { readonly ms: number; readonly kind: "plain" | "fails-once" | "stubborn" };

const KILL_GRACE_MS = 2000;
const CONFIG = {
  workers: { lease: 10_000, killGrace: KILL_GRACE_MS },
  scheduler: { retry: { base: 1, max: 1000, maxLosses: 1000 }, maxPerAgentInFlight: 100 },
};
const hungUp = (): Error => Object.assign(new Error("the connection broke"), { code: "network", status: 0 });

type Live = { readonly worker: string; readonly attempt: number; isStopped: boolean };
type SimWorker = {
  readonly id: string;
  readonly connection: Connection;
  isDead: boolean;
  hasLeft: boolean;
  /** Until when its handlers' event loop stands still; its connection has another. */
  frozenUntil: number;
  /** What gets lost on its wire, and until when. */
  cut: { readonly way: "requests" | "answers"; readonly until: number };
};
export type Fleet = Pick<HandClock, "settle"> & {
  readonly clock: HandClock;
  readonly drover: () => Drover;
  readonly workers: readonly SimWorker[];
  /** What must never be: two that work on one task at the same time, an attempt that is begun anew. In words. */
  readonly clashes: readonly string[];
  /** How often the log says that a task is done, by task. */
  done(): Promise<ReadonlyMap<string, number>>;
  readonly warnings: readonly string[];
  readonly syncs: () => number;
  /** In all syncs: how many were wanted ahead, asked of the handlers again, and given back. */
  ahead(): { readonly fetched: number; readonly asked: number; readonly given: number };
  addWorker(slots: number): SimWorker;
  /** The worker's process dies: nothing more is heard of it. */
  kill(worker: SimWorker): void;
  /** A handler keeps the event loop for itself for so long. */
  freeze(worker: SimWorker, ms: number): void;
  /** For so long nothing reaches the server, or nothing comes back from it. */
  cut(worker: SimWorker, way: "requests" | "answers", ms: number): void;
  takeDown(): Promise<void>;
  bringUp(): Promise<void>;
  /** From now on nothing goes wrong any more. */
  calm(): void;
};

/**
 * A clock that rings nothing while an event loop stands still. When it goes on, all that came meanwhile is heard in
 * order before anything that follows from it, as a loop reads what has arrived before it takes its next turn.
 */
function whileThawed(clock: Clock, frozenUntil: () => number): Clock {
  const missed: (() => void)[] = [];
  const goOn = (): void => {
    if (clock.elapsed() < frozenUntil()) return void clock.ringAt(frozenUntil(), goOn);
    for (const turn of missed.splice(0)) turn();
  };
  const thawed = (turn: () => void): void => {
    if (missed.length === 0 && clock.elapsed() >= frozenUntil()) return turn();
    if (missed.push(turn) === 1) clock.ringAt(frozenUntil(), goOn);
  };
  return {
    now: clock.now,
    elapsed: clock.elapsed,
    ringAt: (at, ring) => {
      let isOff = false;
      const cancel = clock.ringAt(at, () => thawed(() => void (isOff || ring())));
      return () => {
        isOff = true;
        cancel();
      };
    },
    defer: (turn) => clock.defer(() => thawed(turn)),
  };
}

export async function createFleet(faults: readonly Fault[], perReadingMs: number = SLOW): Promise<Fleet> {
  const store = createMemoryStore();
  const world = {
    drover: null as Drover | null,
    left: [...faults],
    pending: new Set<() => void>(),
    live: new Map<string, Set<Live>>(),
    begun: new Map<string, Live>(),
    workers: [] as SimWorker[],
    clashes: [] as string[],
    warnings: [] as string[],
    syncs: 0,
    ahead: { fetched: 0, asked: 0, given: 0 },
  };
  const isAtRest = async (): Promise<boolean> => {
    const seq = world.drover?.state.seq;
    await world.drover?.workers().catch(() => {});
    return world.drover?.state.seq === seq;
  };
  const clock = createHandClock({ at: 1_767_225_600_000, isAtRest, moves: { perReadingMs, earlyMs: 1 } });
  const { settle } = clock;
  const clockFor = (isDead: () => boolean): Clock => ({
    now: clock.now,
    elapsed: clock.elapsed,
    ringAt: (at, ring) => clock.ringAt(at, () => void (isDead() || ring()), { keepAlive: false }),
    defer: (turn) => clock.defer(() => void (isDead() || turn())),
  });

  /** One call over the wire, with the next fault. */
  function call<Answer>(
    cutNow: () => SimWorker["cut"]["way"] | null,
    limitMs: number,
    act: (drover: Drover) => Promise<Answer>,
  ): Promise<Answer> {
    const fault: Fault = cutNow() === "requests" ? { kind: "black-hole" } : (world.left.shift() ?? { kind: "none" });
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const breakOff = (): void => reject(hungUp());
    world.pending.add(breakOff);
    const cancel = clock.ringAt(clock.elapsed() + limitMs, breakOff, { keepAlive: false });
    const deliver = async (): Promise<void> => {
      const { drover } = world;
      if (drover === null || !world.pending.has(breakOff)) return breakOff();
      try {
        if (fault.kind === "twice") void act(drover).catch(() => {});
        const answer = structuredClone(await act(drover));
        if (cutNow() !== null) return;
        if (fault.kind === "lose-answer") breakOff();
        else if (fault.kind === "slow-answer")
          clock.ringAt(clock.elapsed() + fault.ms, () => resolve(answer), { keepAlive: false });
        else resolve(answer);
      } catch (error) {
        if (fault.kind === "lose-answer") breakOff();
        else reject(error);
      }
    };
    if (fault.kind === "lose-request") breakOff();
    else if (fault.kind === "slow-request")
      clock.ringAt(clock.elapsed() + fault.ms, () => void deliver(), { keepAlive: false });
    else if (fault.kind !== "black-hole") void deliver();
    return promise.finally(() => {
      cancel();
      world.pending.delete(breakOff);
    });
  }

  const wireFor = (cutNow: () => SimWorker["cut"]["way"] | null, isOld: boolean): Wire => ({
    join: (body, limitMs) =>
      call(cutNow, limitMs, async (drover) => {
        const joined = await drover.remote.join(body);
        const { brief: _, tokenKey: _key, ...asBefore } = joined;
        return isOld ? asBefore : joined;
      }),
    sync: (id, text, limitMs) => {
      world.syncs++;
      const sent = JSON.parse(text) as SyncBody;
      const { ahead = 0, unbegun = [] } = sent;
      world.ahead.fetched += ahead;
      world.ahead.given += unbegun.length;
      return call(cutNow, limitMs, async (drover) => parseNames(await drover.remote.syncText(id, sent)) as HeardSync);
    },
    leave: (id, session, limitMs) => call(cutNow, limitMs, (drover) => drover.remote.leave(id, { session })),
  });

  function performFor(worker: SimWorker, own: Clock): Perform {
    return ({ taskId, params }, { attempt, signal }) => {
      const { ms, kind } = params as Work;
      const live = { worker: worker.id, attempt, isStopped: false };
      const others = world.live.get(taskId) ?? new Set();
      world.live.set(taskId, others);
      for (const other of others)
        if (!other.isStopped)
          world.clashes.push(`${taskId}: ${other.worker} #${other.attempt} and ${worker.id} #${attempt}`);
      others.add(live);
      const key = `${taskId}#${attempt}`;
      if (world.begun.get(key)?.isStopped === false) world.clashes.push(`${key} is begun anew by ${worker.id}`);
      world.begun.set(key, live);
      return new Promise((resolve, reject) => {
        const isFailure = kind === "fails-once" && attempt === 1;
        own.ringAt(own.elapsed() + ms, () => {
          others.delete(live);
          if (isFailure) reject(new Error("the first time it fails"));
          else resolve({ outcome: "done", result: JSON.stringify({ taskId }) });
        });
        signal.addEventListener("abort", () => {
          live.isStopped = true;
          if (kind !== "stubborn") reject(signal.reason);
        });
      });
    };
  }

  function addWorker(slots: number): SimWorker {
    const id = `w${world.workers.length}`;
    const cell = createLeaseCell();
    const warn = (message: string): void => void world.warnings.push(message);
    const own = clockFor(() => worker.isDead);
    const theirs = whileThawed(own, () => worker.frozenUntil);
    const tell = (message: ToHandlers): void => {
      if (message.type === "stop") noteStops(worker, message.stops);
      theirs.defer(() => {
        if (message.type === "start") handlers.start(message.assignments);
        else if (message.type === "start-unread") handlers.start(readUnread(message));
        else if (message.type === "stop") handlers.stop(message.stops);
        else if (message.type === "give-back") {
          world.ahead.asked += message.attempts.length;
          handlers.giveBack(message.attempts);
        } else if (message.type === "warning") warn(message.message);
        else if (message.type === "left" || message.type === "failed") worker.hasLeft = true;
      });
    };
    // Every other is of before there were brief syncs, and does not hear that the server takes them.
    const isOld = world.workers.length % 2 === 1;
    const wire = wireFor(() => (clock.elapsed() < worker.cut.until ? worker.cut.way : null), isOld);
    const deps = {
      join: { id, slots },
      aheadMax: slots,
      giveUpMs: null,
      wire,
      clock: own,
      chance: () => 0.5,
      cell,
      tell,
    };
    const cut: SimWorker["cut"] = { way: "answers", until: 0 };
    const connection = startConnection(deps);
    const worker: SimWorker = { id, connection, isDead: false, hasLeft: false, frozenUntil: 0, cut };
    const post = (message: Parameters<Connection["receive"]>[0]): void =>
      own.defer(() => worker.connection.receive(message));
    const handlers = createHandlers({
      clientAs: () => ({ submit: () => Promise.reject(new Error("no children here")) }),
      ...{ slots, killGraceMs: KILL_GRACE_MS, clock: theirs, perform: performFor(worker, theirs), warn, post },
      isLeaseHeld: () => clock.elapsed() < cell.read(),
      cell,
      reports: createProgressReports({ clock: theirs, warn, post: (items) => post({ type: "progress", items }) }),
      permits: { withPermit: () => Promise.reject(new Error("no permits here")), flush: async () => {} },
      files: NO_FILES,
      identity: () => ({ workerId: id, session: "", tokenKey: null }),
    });
    world.workers.push(worker);
    return worker;
  }

  /** Told to stop is stopped, even if its event loop has no time to hear of it. */
  function noteStops({ id }: SimWorker, stops: readonly Stop[]): void {
    for (const { taskId, attempt } of stops)
      for (const live of world.live.get(taskId) ?? [])
        if (live.worker === id && live.attempt === attempt) live.isStopped = true;
  }

  async function bringUp(): Promise<void> {
    world.drover ??= await openDrover({ log: createMemoryLog({ store }), clock, config: CONFIG });
  }
  async function takeDown(): Promise<void> {
    const drover = world.drover;
    world.drover = null;
    for (const breakOff of [...world.pending]) breakOff();
    world.pending.clear();
    await drover?.close();
  }

  await bringUp();
  return {
    ...{ clock, settle, addWorker, takeDown, bringUp },
    ...{ workers: world.workers, clashes: world.clashes, warnings: world.warnings },
    drover: () => world.drover as Drover,
    syncs: () => world.syncs,
    ahead: () => world.ahead,
    async done() {
      const counts = new Map<string, number>();
      for await (const { kind, task } of world.drover?.events() ?? [])
        if (kind === "task-done" && task !== undefined) counts.set(task, (counts.get(task) ?? 0) + 1);
      return counts;
    },
    kill(worker) {
      worker.isDead = true;
      for (const others of world.live.values())
        for (const live of others) if (live.worker === worker.id) others.delete(live);
    },
    freeze(worker, ms) {
      worker.frozenUntil = clock.elapsed() + ms;
    },
    cut(worker, way, ms) {
      worker.cut = { way, until: clock.elapsed() + ms };
    },
    calm() {
      world.left.splice(0);
      for (const worker of world.workers) worker.cut = { way: "answers", until: 0 };
    },
  };
}
