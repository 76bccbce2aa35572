/**
 * `startWorker`: a function is given tasks, wherever the server is.
 *
 *     await using worker = await startWorker({ slots: 4 }, async (task, { signal }) => build(task.params, signal));
 *     await worker.closed;
 *
 * The handler has the same contract as in the engine's own process: what it returns is the result, what it throws is
 * a failure, a `TaskRequeue` or a provider's 429 or 529 sends the task back, and its signal fires when it must stop.
 * The connection lives in a thread of its own (`lease-thread.ts`), so a handler may keep this event loop busy for as
 * long as it likes and still keep its lease. If the server is away the worker waits for it; it stops by itself only
 * when it is told to, or when the server will not have it.
 */
import { type Client, ClientError, createClient } from "../../client/index.ts";
import { errorText } from "../../core/base/index.ts";
import type { AnyParams, AttemptRef, Inputs, LogBody, LogStatus } from "../../protocol/index.ts";
import { type Again, present, realClock } from "../../std/index.ts";
import { startConnection } from "./connection.ts";
import { type AssignedTask, createHandlers, type Identity, type Perform, type TaskContext } from "./handlers.ts";
import { type Link, openThreadLink } from "./lease-thread-client.ts";
import { createLogService } from "./logs.ts";
import { createLeaseCell, type Handed, type Outcome, type ToHandlers } from "./messages.ts";
import { checkCount, type PullWorkerOptions, type ReadOptions, readOptions } from "./options.ts";
import { reportOfOutcome, reportOfValue } from "./outcome.ts";
import { createWorkerPermits } from "./permits.ts";
import { createProgressReports } from "./progress.ts";
import { readUnread, together } from "./unread-tasks.ts";
import { errorOf, wireOf } from "./wire.ts";

const FLUSH_MS = 2000;
/** The reader of a log waits a few seconds; one that is brought later comes too late. */
const HAND_IN = { timeoutMs: 4000, retries: 1 };

/**
 * Runs a task; what it answers is the task's result, what it throws its failure. In a loop it may answer `again(note)`.
 */
export type Handler<Params extends object = AnyParams, Result = unknown, Needed extends object = Inputs> = (
  task: AssignedTask<Params, Needed>,
  context: TaskContext,
) => Result | Again | Promise<Result | Again>;
/** A handler that says itself how an attempt ended, as the one that runs commands does. */
export type OutcomeHandler = (task: AssignedTask, context: TaskContext) => Promise<Outcome> | Outcome;
/** A worker that runs. */
export type PullWorker = AsyncDisposable & {
  /** Its id. */
  readonly id: string;
  /** How many tasks it runs now. */
  readonly running: number;
  /** A worker silent for so long is given up by the server, as it said last. */
  readonly leaseMs: number;
  /** How many worktrees a worker of this fleet may keep, as the server said last; null if it does not say. */
  readonly maxWorktrees: number | null;
  /**
   * Takes more only while it holds fewer than so many. What it was given already is begun all the same, also with 0;
   * what it had fetched ahead goes back. The note says why.
   */
  limit(count: number, note?: string | null): void;
  /** At most so many of its tasks have a worktree from now on; null: any number. The note says why. */
  limitWorktrees(count: number | null, note?: string | null): void;
  /** Takes no more, lets what runs end, and leaves. May be called twice. */
  drain(): Promise<void>;
  /** Takes no more, tells what runs to stop, waits up to the kill grace, and leaves. May be called twice. */
  close(): Promise<void>;
  /** Resolves when it has left, and rejects if the server will not have it any more. */
  readonly closed: Promise<void>;
};

/** Resolves when the worker has joined. */
export function startWorker(options: PullWorkerOptions, handler: Handler): Promise<PullWorker>;
/** The same, for a handler that names what it is given and what it answers. */
export function startWorker<Params extends object = AnyParams, Result = unknown, Needed extends object = Inputs>(
  options: PullWorkerOptions,
  handler: Handler<Params, Result, Needed>,
): Promise<PullWorker>;
export function startWorker(options: PullWorkerOptions, handler: Handler): Promise<PullWorker> {
  return start(options, handler, async (task, context, entry) =>
    reportOfValue(await handler(task, context), entry.used),
  );
}

/** Starts a worker whose handler says itself how an attempt ended. */
export function startWorkerWithOutcomes(options: PullWorkerOptions, handler: OutcomeHandler): Promise<PullWorker> {
  const perform: Perform = async (task, context, entry) => reportOfOutcome(await handler(task, context), entry.used);
  // What it starts takes longer than a sync.
  return start(options, handler, perform, { ahead: 0 });
}

async function start(
  options: PullWorkerOptions,
  handler: unknown,
  perform: Perform,
  usual: Pick<PullWorkerOptions, "ahead"> = {},
): Promise<PullWorker> {
  const read = { ...usual, ...readOptions(options) };
  if (typeof handler !== "function")
    throw new ClientError("bad_request", "handler is missing: a function that is given tasks, behind the options");
  const { signal } = read;
  signal?.throwIfAborted();
  const joined = Promise.withResolvers<void>();
  const worker = createWorker(read, perform, joined);
  const onAbort = (): void => {
    joined.reject(signal?.reason);
    void worker.close();
  };
  const onClosed = (): void => signal?.removeEventListener("abort", onAbort);
  signal?.addEventListener("abort", onAbort, { once: true });
  void worker.closed.then(onClosed, onClosed);
  await joined.promise;
  return worker;
}

function createWorker(read: ReadOptions, perform: Perform, joined: PromiseWithResolvers<void>): PullWorker {
  const { killGraceMs, onWarning: warn } = read;
  const clock = realClock;
  const server = present({ url: read.url, token: read.token });
  const client = read.client ?? createClient({ ...server, ...present({ fetch: read.fetch }) });
  const cell = createLeaseCell();
  const end = Promise.withResolvers<void>();
  // A caller that does not look at `closed` gets a warning; a promise without a reader must not end the program.
  end.promise.catch(() => {});
  joined.promise.catch(() => {});
  /** As the server said last: it may change terms while the worker is there. */
  let terms = NO_TERMS;
  const link = openLink();
  const session = (): string => terms.session;
  const identity = (): Identity => terms;
  const permits = createWorkerPermits({ client, clock, chance: Math.random, newId, warn, session });
  const reports = createProgressReports({ clock, warn, post: (items) => link.post({ type: "progress", items }) });
  const isLeaseHeld = (now: number): boolean => now < cell.read();
  const { slots } = read.join;
  const { post } = link;
  const { files } = client;
  const clientAs = (token: string): Client => createClient({ ...server, ...present({ fetch: read.fetch }), token });
  const limits = { slots, killGraceMs, clock, isLeaseHeld, cell };
  const tools = { reports, permits, files, identity, warn, post, clientAs };
  const handlers = createHandlers({ ...limits, ...tools, perform });
  const handIn = (workerId: string, body: LogBody): Promise<LogStatus> => client.handInLog(workerId, body, HAND_IN);
  const logs = read.logs === undefined ? null : createLogService({ logs: read.logs, handIn, warn });
  let closing: Promise<void> | null = null;

  function receive(message: ToHandlers): void {
    switch (message.type) {
      case "joined":
        terms = message;
        return joined.resolve();
      case "terms":
        terms = { ...terms, ...message };
        return;
      case "start":
        return handlers.start(message.assignments);
      case "start-lean":
        return startRead(message.named, () => together(message.named, message.tasks));
      case "start-unread":
        return startRead(JSON.parse(message.named), () => readUnread(message));
      case "stop":
        return handlers.stop(message.stops);
      case "give-back":
        return handlers.giveBack(message.attempts);
      case "logs":
        return logs?.want(message.wanted);
      case "over":
        for (const task of message.tasks) read.onOver?.(task);
        return;
      case "draining":
        return warn("the server has asked this worker to finish and leave");
      case "warning":
        return warn(message.message);
      case "left":
        joined.reject(new Error("the worker was closed before it had joined"));
        return void permits.flush(FLUSH_MS).then(end.resolve);
      case "failed":
        return void fail(errorOf(message.error));
      default:
        message satisfies never;
    }
  }

  /** What cannot be read has its place all the same, or the connection would take others for those that were begun. */
  function startRead(named: readonly AttemptRef[], read: () => readonly Handed[]): void {
    let given: readonly Handed[];
    try {
      given = read();
    } catch (error) {
      warn(`an answer of the server cannot be read: ${errorText(error)}`);
      return handlers.decline(named);
    }
    handlers.start(given);
  }

  async function fail(error: Error): Promise<void> {
    if (terms.session !== "") warn(`the worker has stopped: ${error.message}`);
    handlers.stopAll("session-lost");
    joined.reject(error);
    await handlers.idle();
    await permits.flush(FLUSH_MS);
    end.reject(error);
  }

  async function depart(): Promise<void> {
    link.post({ type: "closing" });
    handlers.stopAll("closing");
    await handlers.idle();
    await permits.flush(FLUSH_MS);
    link.post({ type: "leave" });
    await end.promise.catch(() => {});
  }

  function close(): Promise<void> {
    closing ??= depart();
    return closing;
  }

  function openLink(): Link {
    const { join, giveUpMs = null, ahead: aheadMax = join.slots } = read;
    const limit = Math.min(join.slots, read.limit ?? join.slots);
    const settings = { join, giveUpMs, limit, aheadMax, logPlace: read.logs?.place };
    if (!read.fetch && !read.client) return openThreadLink({ server, cell, settings, onMessage: receive });
    const tell = (message: ToHandlers): void => queueMicrotask(() => receive(message));
    const wire = wireOf(client);
    const connection = startConnection({ ...settings, cell, wire, clock, chance: Math.random, tell });
    return { post: connection.receive };
  }

  return {
    get id() {
      return terms.workerId;
    },
    get running() {
      return handlers.running;
    },
    get leaseMs() {
      return terms.leaseMs;
    },
    get maxWorktrees() {
      return terms.maxWorktrees;
    },
    limit(count, note = null) {
      checkCount("count", count);
      link.post({ type: "limit", count, note });
    },
    limitWorktrees(count, note = null) {
      if (count !== null) checkCount("count", count);
      link.post({ type: "limit-worktrees", count, note });
    },
    async drain() {
      link.post({ type: "drain" });
      await end.promise;
    },
    close,
    closed: end.promise,
    [Symbol.asyncDispose]: close,
  };
}

type Terms = Identity & Pick<PullWorker, "leaseMs" | "maxWorktrees">;
const NO_TERMS: Terms = { workerId: "", session: "", tokenKey: null, leaseMs: 0, maxWorktrees: null };

const newId = (): string => `permit_${crypto.randomUUID()}`;
