/**
 * Permits for LLM calls, over the wire: a call goes out when its gate lets it.
 *
 * Each call asks under an id of its own and keeps its place however often it asks again: a long poll that ends, a
 * connection that breaks and a server that comes back cost it nothing. The permit goes back on every path. A
 * provider's 429 or 529 is told to the gate first, then the call queues again, a bounded number of times. A call that
 * is given up while it waits takes its ticket along. A server that is away does not keep a handler from what it has
 * got: the settlement is kept behind it, and brought when the server is back. It is given up when the permit has come
 * back by itself: its time is over.
 */

import { type Client, ClientError } from "../../client/index.ts";
import type { AttemptRef, HeldPermit, PermitBody, PermitOptions, SettleBody, Usage } from "../../protocol/index.ts";
import { type Clock, present, rateLimitOf, ringAfter } from "../../std/index.ts";
import { largerUsage, permanentError, tokensOf } from "./outcome.ts";
import { restMs } from "./wire.ts";

const TRIES_MAX = 10;
const WAIT_MS = 20_000;
/** A server that says "queued" sooner than asked is not asked in a tight loop. */
const PACE_MS = 250;
/** A ticket is dropped here, for as long as that takes, and not by the client as well. */
const ASK_TRY = { retries: 0, keepTicket: true };
const SETTLE_TRY = { retries: 0, timeoutMs: 5000 };
const SETTLE_WAIT_MS = 2000;
/** A settlement is kept so long at least: dates of two machines may differ, and of a ticket no time is known. */
const KEPT_MS_MIN = 600_000;
/** Beyond these a settlement has one try. */
const KEPT_MAX = 10_000;

/** The attempt on whose reservation a call draws. */
export type Holder = AttemptRef & { readonly signal: AbortSignal };
export type WorkerPermits = {
  withPermit<Value>(
    gate: string,
    call: (permit: HeldPermit) => Promise<Value> | Value,
    options: PermitOptions | undefined,
    holder: Holder,
  ): Promise<Value>;
  /** The worker goes: resolves when everything is settled, or after this time. What is left then is not kept. */
  flush(ms: number): Promise<void>;
};

export type PermitCalls = Pick<Client, "askPermit" | "settlePermit" | "dropPermit">;
const KNOWN: ReadonlySet<string> = new Set(["project", "class", "tokens", "signal"]);

export function createWorkerPermits(deps: {
  readonly client: PermitCalls;
  readonly clock: Clock;
  readonly chance: () => number;
  readonly newId: () => string;
  /** Under which this worker has joined. */
  readonly session: () => string;
  readonly warn: (message: string) => void;
}): WorkerPermits {
  const { client, clock } = deps;
  const settling = new Set<Promise<void>>();
  const going = new AbortController();

  const withPermit: WorkerPermits["withPermit"] = async (gate, call, given, holder) => {
    const { signal: own, ...options } = checked(call, given);
    const signal = own === undefined ? holder.signal : AbortSignal.any([own, holder.signal]);
    const { taskId, attempt, taskSeq } = holder;
    const attemptOf = { taskId, attempt, ...(taskSeq === undefined ? {} : { taskSeq }) };
    // That of the attempt: a worker that joins anew has a new one, and its old attempts are stopped.
    const session = deps.session();
    let before: { readonly again?: string } = {};
    for (let tries = 1; ; tries++) {
      const id = deps.newId();
      const until = await acquire({ ...options, ...before, ...attemptOf, gate, id, session }, signal);
      before = { again: id };
      let used: Usage | null = null;
      const usage = (more: Usage): void => {
        tokensOf(more);
        used = largerUsage(used, { ...more });
      };
      try {
        const value = await call({ id, usage });
        await settle(id, { session, ok: true, ...present({ usage: used }) }, until);
        return value;
      } catch (error) {
        const retryAfterMs = rateLimitOf(error, Date.now());
        const rateLimited = retryAfterMs === null ? null : { retryAfterMs };
        await settle(id, { session, ok: false, ...present({ usage: used, rateLimited }) }, until);
        if (retryAfterMs === null || tries >= TRIES_MAX) throw error;
      }
    }
  };

  /** Resolves when the permit is granted: for how long. A caller that gives up leaves no ticket behind. */
  async function acquire(
    body: PermitBody & { readonly id: string; readonly session: string },
    signal: AbortSignal,
  ): Promise<number> {
    signal.throwIfAborted();
    let until: number | null = null;
    try {
      until = await untilGranted(body, signal);
      signal.throwIfAborted();
      return until;
    } catch (error) {
      const { id, session } = body;
      const drop = (): Promise<unknown> => client.dropPermit(id, { ...SETTLE_TRY, session });
      if (signal.aborted) void bring(drop, until ?? keptUntil(undefined), `permit ${id} was not given back`);
      throw error;
    }
  }

  async function untilGranted(asked: PermitBody, signal: AbortSignal): Promise<number> {
    let body = asked;
    for (let failures = 0; ; ) {
      const askedAt = clock.elapsed();
      try {
        const { status, expiresAt } = await client.askPermit({ ...body, waitMs: WAIT_MS }, { ...ASK_TRY, signal });
        if (status === "granted") return keptUntil(expiresAt);
        failures = 0;
        if (clock.elapsed() - askedAt < PACE_MS) await rest(PACE_MS, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (isSeqUnknown(body, error)) {
          const { taskSeq: _, ...plain } = body;
          body = plain;
          continue;
        }
        if (!isPassing(error)) throw error;
        await rest(restMs(++failures, deps.chance()), signal);
      }
    }
  }

  function rest(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        cancel();
        signal.removeEventListener("abort", over);
        if (signal.aborted) reject(signal.reason);
        else resolve();
      };
      const cancel = ringAfter(clock, ms, over);
      signal.addEventListener("abort", over, { once: true });
    });
  }

  /** In elapsed time: when a permit has come back by itself. */
  function keptUntil(expiresAt: string | undefined): number {
    const goodForMs = expiresAt === undefined ? 0 : Date.parse(expiresAt) - clock.now();
    return clock.elapsed() + Math.max(KEPT_MS_MIN, goodForMs);
  }

  /** Waits for it, but not for a server that is away. */
  async function settle(id: string, body: SettleBody, until: number): Promise<void> {
    const at = clock.elapsed();
    const say = (): Promise<unknown> => client.settlePermit(id, aged(body, clock.elapsed() - at), SETTLE_TRY);
    await atMost(clock, SETTLE_WAIT_MS, bring(say, until, `permit ${id} was not settled`));
  }

  /** Never fails: what a server did not take in time is warned of. */
  function bring(say: () => Promise<unknown>, until: number, otherwise: string): Promise<void> {
    const brought = untilHeard(say, settling.size < KEPT_MAX ? until : clock.elapsed()).catch((error: Error) =>
      deps.warn(`${otherwise}: ${error.message}`),
    );
    settling.add(brought);
    return brought.finally(() => settling.delete(brought));
  }

  async function untilHeard(say: () => Promise<unknown>, until: number): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await say();
        return;
      } catch (error) {
        // One that is gone already has come back by itself.
        if ((error as { code?: unknown }).code === "not_found") return;
        const isAway = isPassing(error) || (error as { retryable?: unknown }).retryable === true;
        if (!isAway || clock.elapsed() >= until || going.signal.aborted) throw error;
        await rest(restMs(failures, deps.chance()), going.signal).catch(() => Promise.reject(error));
      }
    }
  }

  return {
    withPermit,
    async flush(ms) {
      await atMost(clock, ms, Promise.all(settling));
      going.abort();
    },
  };
}

/** The server is an older one, which goes by the id of a task alone. */
const isSeqUnknown = ({ taskSeq }: PermitBody, error: unknown): boolean =>
  taskSeq !== undefined && error instanceof ClientError && error.details.field === "taskSeq";

/** What a provider asked for counts from when it did, however late the gate hears of it. 0 asks for nothing. */
function aged({ rateLimited, ...body }: SettleBody, ageMs: number): SettleBody {
  if (rateLimited === undefined) return body;
  const { retryAfterMs: asked } = rateLimited;
  return { ...body, rateLimited: { retryAfterMs: Math.max(Math.min(1, asked), asked - ageMs) } };
}

/** Waits for what never fails, but no longer than so. */
async function atMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = ringAfter(clock, ms, late.resolve);
  await Promise.race([work, late.promise]);
  cancel();
}

/** No server answered, or not now: the ticket keeps its position meanwhile. */
const isPassing = (error: unknown): boolean =>
  error instanceof ClientError && (error.status === 0 ? error.retryable : error.status >= 500);

function checked(call: unknown, options: PermitOptions = {}): PermitOptions {
  if (typeof call !== "function") throw permanentError("call must be a function that makes the call");
  const unknown = Object.keys(options).find((key) => !KNOWN.has(key));
  if (unknown !== undefined)
    throw permanentError(`options.${unknown} is not known; known are ${[...KNOWN].join(", ")}`);
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
    throw permanentError("signal must be an AbortSignal");
  return options;
}
