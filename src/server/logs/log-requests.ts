/**
 * Logs that lie on the disks of workers, fetched when a caller wants to see one.
 *
 * What an attempt writes stays with its worker; nothing of it is kept here. A caller that wants the end of a log waits
 * for a few seconds. Every answer to a sync of its worker lists what is wanted of it, and a worker that waits for news
 * is answered at once. The worker hands the text in by a call of its own, and that answers the waiting. As with
 * everything a worker hears, a lost answer loses nothing: what is not handed in is listed again.
 *
 * A worker that keeps logs names the folder where they lie. One that comes back under another name in the same folder
 * has the logs of its predecessor, and is asked in its stead: of several there, the one heard of last, for the others
 * may be dead without the server knowing yet. Folders are known in memory only. Where a worker that is gone had its
 * logs is not known after a restart, so then some of those that are there are asked all at once, one for each folder.
 *
 * Two who want the same share one request, but only until the worker has heard of it: what it reads after that may be
 * older than what the second one wants to see. And only so many do, for each gets the whole text.
 */
import { randomUUID } from "node:crypto";
import type { WorkerId } from "../../core/base/index.ts";
import type { Worker } from "../../core/model/index.ts";
import { badInput, refused } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { ServerRefusal } from "../../http/index.ts";
import { type AttemptRef, LOG_BYTES_MAX, type LogBody, type LogStatus, type WantedLog } from "../../protocol/index.ts";
import { type Clock, present, remember, ringAfter, ringEvery } from "../../std/index.ts";

/** How long a caller waits for a log. */
export const LOG_WAIT_MS = 5000;
/** What was listed is listed again after so long, if it was not handed in meanwhile. */
const LIST_AGAIN_MS = 1000;
export const WANTED_PER_WORKER_MAX = 16;
export const WANTED_MAX = 256;
export const SHARING_MAX = 32;
/** So many are asked for a log whose worker is not known. */
export const ASKED_AT_ONCE_MAX = 16;
/** Of so many requests that are over it is remembered whose they were, for a worker that is late or says it twice. */
const CLOSED_MAX = 1024;
const FOLDERS_MAX = 10_000;
/** What else stands in the body that brings a text. */
const FRAME_BYTES = 512;

export type LogOutcome =
  | { readonly kind: "tail"; readonly text: string; readonly truncated: boolean }
  | { readonly kind: "none" | "silent" | "gone" | "keeps-none" }
  | { readonly kind: "failed"; readonly error: string };
type LogRequest = AttemptRef & { readonly worker: string; readonly lines: number; readonly taskAgeMs?: number };
type Keeper = { readonly worker: string } | { readonly anyOf: readonly string[] } | "gone" | "keeps-none";
export type LogRequests = {
  /** A worker has synced; a folder if it keeps logs. */
  heard(worker: string, session: string | undefined, folder: string | undefined): void;
  left(worker: string): void;
  /** Which worker has what this one wrote: itself, its heir, one of several; or why none has. */
  keeperOf(worker: string): Keeper;
  /** Whether there is something a worker should hear of now. */
  isDue(worker: string): boolean;
  /** Rings when there is; answers how to stop listening. */
  listen(worker: string, bell: () => void): () => void;
  /** All that is wanted of a worker, for the answer that leaves now. */
  list(worker: string): readonly WantedLog[];
  ask(request: LogRequest, signal: AbortSignal): Promise<LogOutcome>;
  /** The first that has it; gone if none has. */
  askAny(workers: readonly string[], request: Omit<LogRequest, "worker">, signal: AbortSignal): Promise<LogOutcome>;
  take(worker: string, log: LogBody): LogStatus;
};

type Wanted = LogRequest & {
  readonly id: string;
  listedAt: number;
  readonly waiting: Set<(outcome: LogOutcome) => void>;
  readonly stopTimers: () => void;
};
const NOTHING: readonly WantedLog[] = [];

type Keepers = {
  /** Null: it keeps none. */
  heard(worker: string, folder: string | null): void;
  keepsLogs(worker: string): boolean;
  of(worker: string): Keeper;
};

/** Which worker has which logs. */
function createKeepers(find: (worker: string) => Worker | undefined): Keepers {
  /** Where each keeps its logs, null if nowhere; the worker heard of last is at the end. */
  const folders = new Map<string, string | null>();

  function of(worker: string): Keeper {
    const known = find(worker);
    const folder = folders.get(worker);
    if (folder === null || (known !== undefined && known.kind !== "pull")) return "keeps-none";
    // One that has not been heard of since this server began may keep logs: it will say so.
    if (folder === undefined && isConnected(known)) return { worker };
    const there = lastHeard();
    if (folder === undefined)
      return there.size === 0 ? "gone" : { anyOf: [...there.values()].slice(-ASKED_AT_ONCE_MAX) };
    const heir = there.get(folder);
    return heir === undefined ? "gone" : { worker: heir };
  }

  /** Of each folder the one heard of last; those heard of last at the end. */
  function lastHeard(): Map<string, string> {
    const found = new Map<string, string>();
    for (const [worker, folder] of folders)
      if (folder !== null && isConnected(find(worker))) remember(found, folder, worker, FOLDERS_MAX);
    return found;
  }

  return {
    heard: (worker, folder) => remember(folders, worker, folder, FOLDERS_MAX),
    keepsLogs: (worker) => typeof folders.get(worker) === "string",
    of,
  };
}

export function createLogRequests(deps: {
  readonly drover: Pick<Drover, "state">;
  readonly clock: Clock;
  /** The largest body a worker may send. */
  readonly bodyLimit: number;
}): LogRequests {
  const { drover, clock } = deps;
  const bytesMax = Math.min(LOG_BYTES_MAX, deps.bodyLimit - FRAME_BYTES);
  const find = (worker: string): Worker | undefined => drover.state.fleet.byId.get(worker as WorkerId);
  const keepers = createKeepers(find);
  const wanted = new Map<string, Wanted>();
  const closed = new Map<string, { readonly worker: string; readonly status: LogStatus["status"] }>();
  const bells = new Map<string, () => void>();
  const wantedOf = (worker: string): Wanted[] => [...wanted.values()].filter((one) => one.worker === worker);

  function heard(worker: string, session: string | undefined, folder: string | undefined): void {
    const known = find(worker);
    if (known === undefined || (session !== undefined && session !== known.session)) return;
    keepers.heard(worker, folder ?? null);
    if (folder === undefined && wanted.size > 0) for (const one of wantedOf(worker)) close(one, { kind: "keeps-none" });
  }

  const isDue = (worker: string): boolean =>
    wanted.size > 0 && wantedOf(worker).some(({ listedAt }) => clock.elapsed() - listedAt >= LIST_AGAIN_MS);
  const ring = (worker: string): void => {
    if (isDue(worker)) bells.get(worker)?.();
  };

  function open(request: LogRequest): Wanted {
    const { worker } = request;
    const own = wantedOf(worker);
    const same = own.find((one) => one.listedAt === Number.NEGATIVE_INFINITY && isSame(one, request));
    if (same !== undefined && same.waiting.size >= SHARING_MAX)
      throw tooMany(`${same.waiting.size} others wait for this log`);
    if (same !== undefined) return same;
    if (own.length >= WANTED_PER_WORKER_MAX) throw tooMany(`${own.length} logs are wanted of worker ${worker}`);
    if (wanted.size >= WANTED_MAX) throw tooMany(`${wanted.size} logs are wanted of workers`);
    const stopWaiting = ringAfter(clock, LOG_WAIT_MS, () => close(one, { kind: "silent" }), { keepAlive: false });
    const stopSaying = ringEvery(clock, LIST_AGAIN_MS, () => ring(worker), { keepAlive: false });
    const one: Wanted = {
      ...request,
      id: `log_${randomUUID()}`,
      listedAt: Number.NEGATIVE_INFINITY,
      waiting: new Set(),
      stopTimers() {
        stopWaiting();
        stopSaying();
      },
    };
    wanted.set(one.id, one);
    return one;
  }

  function close(one: Wanted, outcome: LogOutcome | null, status: LogStatus["status"] = "late"): void {
    if (!wanted.delete(one.id)) return;
    one.stopTimers();
    remember(closed, one.id, { worker: one.worker, status }, CLOSED_MAX);
    if (outcome !== null) for (const answer of one.waiting) answer(outcome);
  }

  async function ask(request: LogRequest, signal: AbortSignal): Promise<LogOutcome> {
    signal.throwIfAborted();
    const one = open(request);
    const { promise, resolve, reject } = Promise.withResolvers<LogOutcome>();
    const hangUp = (): void => reject(signal.reason);
    one.waiting.add(resolve);
    signal.addEventListener("abort", hangUp, { once: true });
    ring(request.worker);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", hangUp);
      one.waiting.delete(resolve);
      if (one.waiting.size === 0) close(one, null);
    }
  }

  async function askAny(
    workers: readonly string[],
    request: Omit<LogRequest, "worker">,
    signal: AbortSignal,
  ): Promise<LogOutcome> {
    const enough = new AbortController();
    const asked = workers.map(async (worker) => {
      const outcome = await ask({ ...request, worker }, AbortSignal.any([signal, enough.signal]));
      return outcome.kind === "tail" ? outcome : Promise.reject(new Error(outcome.kind));
    });
    try {
      return await Promise.any(asked);
    } catch (error) {
      signal.throwIfAborted();
      const refusal = (error as AggregateError).errors.find((one) => one instanceof ServerRefusal);
      if (refusal !== undefined) throw refusal;
      return { kind: "gone" };
    } finally {
      enough.abort(new Error("another has it"));
    }
  }

  function take(worker: string, { session, id, text, truncated = false, error }: LogBody): LogStatus {
    const known = find(worker);
    if (known === undefined || known.kind === "local") throw refused({ type: "worker-unknown", worker });
    if (session !== undefined && session !== known.session) throw refused({ type: "session-lost", worker: known.id });
    const one = wanted.get(id);
    if (one === undefined || one.worker !== worker) return takeLate(worker, id);
    const size = text === null ? 0 : Buffer.byteLength(JSON.stringify(text));
    if (size > bytesMax) throw badInput("text", `${size} bytes`, `at most ${bytesMax} bytes as JSON, as was asked for`);
    if (text !== null) close(one, { kind: "tail", text, truncated }, "taken");
    else close(one, error === undefined ? { kind: "none" } : { kind: "failed", error }, "taken");
    return { status: "taken", id };
  }

  function takeLate(worker: string, id: string): LogStatus {
    const over = closed.get(id);
    if (over?.worker === worker) return { status: over.status, id };
    const text = `worker ${worker} was not asked for log ${id}; hand in only what the answer of a sync lists in logs`;
    throw new ServerRefusal("not_found", text, { field: "id", workerId: worker, id });
  }

  return {
    heard,
    keeperOf: keepers.of,
    isDue,
    ask,
    askAny,
    take,
    left(worker) {
      for (const one of wantedOf(worker)) close(one, { kind: "gone" });
    },
    listen(worker, bell) {
      bells.set(worker, bell);
      return () => {
        if (bells.get(worker) === bell) bells.delete(worker);
      };
    },
    list(worker) {
      if (wanted.size === 0 || !keepers.keepsLogs(worker)) return NOTHING;
      return wantedOf(worker).map((one) => {
        one.listedAt = clock.elapsed();
        const { id, taskId, attempt, lines, taskAgeMs } = one;
        return { id, taskId, attempt, lines, bytes: bytesMax, ...present({ taskAgeMs }) };
      });
    },
  };
}

const tooMany = (what: string): ServerRefusal => new ServerRefusal("overloaded", `${what} already; try again`);

const isConnected = (worker: Worker | undefined): boolean =>
  worker !== undefined && worker.kind === "pull" && worker.status !== "unreachable";

const isSame = (one: LogRequest, other: LogRequest): boolean =>
  one.taskId === other.taskId && one.attempt === other.attempt && one.lines === other.lines;
