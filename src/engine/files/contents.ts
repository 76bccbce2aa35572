/**
 * Which contents are kept, how much they are together, and which of them nobody needs any more.
 *
 * What lies in the medium is counted here, so that a limit never asks the disk. A content stays while a task lists it,
 * while an attempt runs that it was put for, and for an hour after it came; then it goes. Which attempts those are is
 * known to the process alone, so what was there before it may be of any attempt that ran when it began.
 *
 * To count what was there takes longer the more it is, and nobody decides later for it: until it is done the medium is
 * asked for the one content that somebody wants to know of, and nothing is removed.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { State } from "../../core/model/index.ts";
import { type Clock, nextTurn } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import type { FileMedium, KeptContent } from "./medium.ts";

/** The attempt that leaves a file. */
export type ForAttempt = {
  /** The id of its task. */
  readonly task: string;
  /** Its number, from 1. */
  readonly attempt: number;
};
/** How much is kept. */
export type FileTotals = {
  /** How many contents. */
  readonly count: number;
  /** Their bytes. */
  readonly bytes: number;
};
type Kept = {
  readonly size: number;
  readonly at: number;
  /** Attempts that may list it; those that are over go when they are met at its end. */
  readonly by: ForAttempt[];
  /** Whose first attempt put it: for its part of all there may be. */
  readonly project: string | null;
};
export type Parts = {
  readonly medium: FileMedium;
  readonly clock: Clock;
  readonly onWarning: (message: string) => void;
};
/** What a life says of tasks: contents outlive it. */
export type OfLife = {
  readonly state: State;
  /** Resolves when what has happened is durable. */
  readonly settled: () => Promise<void>;
};
type Contents = {
  /** To be called first, and once: counts what there is. Half of a content is removed. */
  load(): Promise<void>;
  find(hash: string): Kept | undefined;
  /** It is there, or was put again, for one attempt more. */
  note(hash: string, size: number, by: ForAttempt | null): void;
  drop(hash: string): Promise<void>;
  /** Resolves when a content that is being removed is gone. */
  removed(hash: string): Promise<void>;
  /** Removes what nobody needs any more. */
  prune(): Promise<void>;
  totals(): FileTotals;
  /** What counts for files.maxTotal: of all, and of what a project has put. */
  counted(): number;
  countedOf(project: string): number;
  stop(): Promise<void>;
};

/** How long a content stays that no task lists. */
export const GRACE_MS = 3_600_000;
const PRUNE_MS = 600_000;
const LOOKED_AT_ONCE = 1000;
/** What the smallest content counts for: it has a name and a place on the disk all the same. */
const COUNTED_MIN = 1024;
export const countedSize = (size: number): number => Math.max(COUNTED_MIN, size);

export function createContents({ medium, clock, onWarning }: Parts, life: () => OfLife): Contents {
  const kept = new Map<string, Kept>();
  /** One that comes again while it is being removed waits for that. */
  const removing = new Map<string, Promise<void>>();
  let bytes = 0;
  let counted = 0;
  const countedOf = new Map<string, number>();
  /** What ran at the beginning, until all that was there then is counted. */
  let first: ForAttempt[] | null = null;
  const ending = new AbortController();
  let cancel: (() => void) | null = null;
  let loading: Promise<void> = Promise.resolve();
  let pruning: Promise<void> = Promise.resolve();

  async function countAll(): Promise<void> {
    const by = running(life().state);
    first = by;
    await medium.sweep();
    let seen = 0;
    for (const found of await medium.list(ending.signal)) {
      if (ending.signal.aborted) return;
      keepFound(found, by);
      if (++seen % LOOKED_AT_ONCE === 0) await nextTurn();
    }
    first = null;
    if (kept.size > 0) again(0);
  }

  function keepFound({ hash, size, at }: KeptContent, by: ForAttempt[]): void {
    const [lister] = life().state.files.get(hash) ?? [];
    keep(hash, { size, at, by, project: lister?.project.id ?? null });
  }

  function find(hash: string): Kept | undefined {
    const seen = first === null || kept.has(hash) ? null : medium.look(hash);
    if (seen !== null) keepFound(seen, first ?? []);
    return kept.get(hash);
  }

  const isLive = ({ task, attempt }: ForAttempt): boolean =>
    life().state.tasks.get(task as TaskId)?.attempt?.number === attempt;

  function note(hash: string, size: number, by: ForAttempt | null): void {
    const isOther = (one: ForAttempt): boolean => one.task !== by?.task || one.attempt !== by.attempt;
    const known = kept.get(hash);
    const others = known?.by.filter((one) => isLive(one) && isOther(one)) ?? [];
    const project = known?.project ?? projectOf(life().state, by);
    keep(hash, { size, at: clock.now(), by: by === null ? others : [...others, by], project });
  }

  function count({ size, project }: Kept, sign: 1 | -1): void {
    bytes += sign * size;
    counted += sign * countedSize(size);
    if (project === null) return;
    const sum = (countedOf.get(project) ?? 0) + sign * countedSize(size);
    if (sum > 0) countedOf.set(project, sum);
    else countedOf.delete(project);
  }

  function keep(hash: string, entry: Kept): void {
    forget(hash);
    kept.set(hash, entry);
    count(entry, 1);
    if (cancel === null) again(PRUNE_MS);
  }

  function forget(hash: string): void {
    const entry = kept.get(hash);
    if (entry === undefined) return;
    kept.delete(hash);
    count(entry, -1);
  }

  async function drop(hash: string): Promise<void> {
    forget(hash);
    const removed = medium.remove(hash).finally(() => removing.delete(hash));
    removing.set(hash, removed);
    await removed;
  }

  function isNeeded(hash: string, { at, by }: Kept): boolean {
    if (life().state.files.has(hash) || at > clock.now() - GRACE_MS) return true;
    for (let last = by.at(-1); last !== undefined && !isLive(last); last = by.at(-1)) by.pop();
    return by.length > 0;
  }

  /** One at a time, and of what is counted. */
  function prune(): Promise<void> {
    pruning = Promise.allSettled([loading, pruning]).then(pruneNow);
    return pruning;
  }

  async function pruneNow(): Promise<void> {
    const { state, settled } = life();
    const idle: string[] = [];
    let looked = 0;
    for (const [hash, entry] of kept) {
      if (!isNeeded(hash, entry)) idle.push(hash);
      if (++looked % LOOKED_AT_ONCE === 0) await nextTurn();
    }
    if (idle.length === 0) return;
    // That no task lists them must be durable first: after a crash one would list what is gone.
    await settled();
    for (const hash of idle) {
      const entry = kept.get(hash);
      // Of what another state says, nothing was made durable for this.
      if (ending.signal.aborted || life().state !== state) return;
      if (entry !== undefined && !isNeeded(hash, entry)) await drop(hash);
    }
  }

  /** As long as there is anything. */
  function again(afterMs: number): void {
    cancel?.();
    cancel = null;
    if (ending.signal.aborted || kept.size === 0) return;
    const warn = (error: unknown): void => {
      // A life that ends says why itself, and the next one looks again.
      if (!(error instanceof DroverError)) onWarning(`files that no task lists stay: ${String(error)}`);
    };
    const ring = (): void =>
      void prune()
        .catch(warn)
        .then(() => again(PRUNE_MS));
    cancel = clock.ringAt(clock.elapsed() + afterMs, ring, { keepAlive: false });
  }

  return {
    load() {
      loading = countAll();
      return loading;
    },
    find,
    note,
    drop,
    removed: async (hash) => removing.get(hash),
    prune,
    totals: () => ({ count: kept.size, bytes }),
    counted: () => counted,
    countedOf: (project) => countedOf.get(project) ?? 0,
    async stop() {
      ending.abort();
      cancel?.();
      await Promise.allSettled([loading, pruning]);
    },
  };
}

/** The project of an attempt; null if there is none. */
export const projectOf = ({ tasks }: State, by: ForAttempt | null): string | null =>
  by === null ? null : (tasks.get(by.task as TaskId)?.project.id ?? null);

/** What runs now. */
function running({ fleet }: State): ForAttempt[] {
  return fleet.order.flatMap(({ attempts }) =>
    Array.from(attempts, ({ task, number }) => ({ task: task.id, attempt: number })),
  );
}
