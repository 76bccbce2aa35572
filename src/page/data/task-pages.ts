/**
 * The rows of a long list of tasks, newest first, of which only those in sight are read, wherever somebody scrolls to.
 *
 * The first page moves with what is submitted: while its top is in sight, it is read anew and the others are forgotten.
 * All others stand behind its cursor, so they hold the same tasks however many come in meanwhile, and the list says
 * that there is something new. A page that was read before something happened is shown, and read again.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { TasksQuery, TaskView } from "../../protocol/generated/index.ts";
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { ask } from "./ask.ts";
import { createLooker, onPulse } from "./use-call.ts";

const PAGE_SIZE = 200;
/** So many are selected at once at most. */
export const ALL_MAX = 5000;
/** So many pages are remembered behind the first. */
const KEPT_MAX = 40;
const EVERY_MS = 1000;
/** The top is in sight while one of so many rows is. */
const TOP_ROWS = 20;

type Top = { readonly tasks: readonly TaskView[]; readonly next: string | undefined };
/** A page behind the first, and how often something had happened when it was asked for. */
type Page = { readonly tasks: readonly TaskView[]; readonly turn: number };
type Known = {
  readonly key: string;
  readonly top: Top | null;
  /** How many tasks there are behind the first page. */
  readonly behind: number;
  /** Pages behind the first, by their place. */
  readonly pages: ReadonlyMap<number, Page>;
  readonly hasNews: boolean;
  readonly error: Error | null;
};
export type TaskList = {
  /** How many rows there are, read or not. */
  readonly length: number;
  /** Undefined if that row has not been read. */
  readonly at: (row: number) => TaskView | undefined;
  /** All that have been read. */
  readonly known: () => readonly TaskView[];
  readonly isLoading: boolean;
  /** Nothing has been read of it, since the server cannot be reached. */
  readonly isUnknown: boolean;
  /** Something was submitted that is not shown yet. */
  readonly hasNews: boolean;
  readonly error: Error | null;
  readonly see: (first: number, last: number) => void;
  /** Rows from one to another, read or not; of very many the first. */
  readonly read: (first: number, last: number) => Promise<readonly TaskView[]>;
};
type Answer = { readonly tasks: readonly TaskView[]; readonly next: string | undefined; readonly total: number };

async function readSome(query: TasksQuery, signal?: AbortSignal): Promise<Answer> {
  const { tasks, nextCursor, total = 0 } = await ask("tasks", { query: { ...query, order: "newest" } }, signal);
  return { tasks, next: nextCursor, total };
}

type Many = { readonly tasks: readonly TaskView[]; readonly total: number };

/** So many from one on: a page may end sooner by its bytes, and then the next is read too. */
async function readMany(
  query: TasksQuery,
  { skip, many }: { readonly skip: number; readonly many: number },
  signal?: AbortSignal,
): Promise<Many> {
  const all: TaskView[] = [];
  for (;;) {
    const limit = Math.min(PAGE_MAX, many - all.length);
    const { tasks, total } = await readSome({ ...query, limit, skip: skip + all.length }, signal);
    all.push(...tasks);
    if (tasks.length === 0 || all.length >= Math.min(many, total - skip)) return { tasks: all, total };
  }
}

/** In which page behind the first a row is; 0 is the first itself. */
const pageOf = ({ tasks }: Top, row: number): number =>
  row < tasks.length ? 0 : 1 + Math.floor((row - tasks.length) / PAGE_SIZE);

function rowOf({ top, pages }: Known, row: number): TaskView | undefined {
  if (top === null) return undefined;
  const page = pageOf(top, row);
  return page === 0 ? top.tasks[row] : pages.get(page)?.tasks[(row - top.tasks.length) % PAGE_SIZE];
}

/** Those that were used last stay. */
function kept(pages: Known["pages"], at: number, page: Page): Known["pages"] {
  const next = new Map(pages);
  next.delete(at);
  next.set(at, page);
  for (const oldest of next.keys()) if (next.size > KEPT_MAX) next.delete(oldest);
  return next;
}

type Work = { see(): void; stop(): void };
type Place = {
  readonly now: () => Known;
  readonly put: (next: Partial<Known>) => void;
  readonly seen: () => { readonly first: number; readonly last: number };
};

/** Reads what is in sight, at once, and again when something has happened. */
function startReading(query: TasksQuery, { now, put, seen }: Place): Work {
  const failed = (error: Error): void => put({ error });
  /** How often something has happened. */
  let turn = 0;
  async function restart(signal: AbortSignal): Promise<void> {
    const { tasks, next, total } = await readSome({ ...query, limit: PAGE_SIZE }, signal);
    const pages: Known["pages"] = now().top?.next === next ? now().pages : new Map();
    put({ top: { tasks, next }, behind: Math.max(0, total - tasks.length), pages, hasNews: false, error: null });
    filling.soon();
  }
  const pagesInSight = (top: Top): number[] => {
    const [first, last] = [pageOf(top, seen().first), pageOf(top, seen().last)];
    return Array.from({ length: last - first + 1 }, (_, index) => first + index).filter((page) => page > 0);
  };
  async function readPage(top: Top, page: number, signal: AbortSignal): Promise<void> {
    if (top.next === undefined) return;
    const part = { skip: (page - 1) * PAGE_SIZE, many: PAGE_SIZE };
    const asOf = turn;
    const { tasks, total } = await readMany({ ...query, cursor: top.next }, part, signal);
    // Else the list has begun anew meanwhile.
    if (now().top?.next !== top.next) return;
    put({ pages: kept(now().pages, page, { tasks, turn: asOf }), behind: total, error: null });
  }
  async function fill(signal: AbortSignal): Promise<void> {
    const { top, pages } = now();
    const due = top === null ? undefined : pagesInSight(top).find((page) => pages.get(page)?.turn !== turn);
    if (top?.next === undefined || due === undefined) return;
    await readPage(top, due, signal);
    filling.soon();
  }
  async function refresh(signal: AbortSignal): Promise<void> {
    const { top } = now();
    const { first } = seen();
    if (top === null || first < TOP_ROWS) return restart(signal);
    const isTopInSight = first < top.tasks.length;
    const { tasks } = await readSome({ ...query, limit: isTopInSight ? PAGE_SIZE : 1 }, signal);
    const fresh = new Map(tasks.map((task) => [task.taskId, task]));
    put({
      top: { ...top, tasks: top.tasks.map((task) => fresh.get(task.taskId) ?? task) },
      hasNews: tasks[0]?.taskId !== top.tasks[0]?.taskId,
      error: null,
    });
    for (const page of pagesInSight(top)) await readPage(top, page, signal);
  }
  const filling = createLooker({ look: fill, failed });
  const refreshing = createLooker({ everyMs: EVERY_MS, look: refresh, failed });
  refreshing.now();
  const stop = onPulse(() => {
    turn++;
    refreshing.soon();
  });
  return {
    see() {
      filling.soon();
      if (now().hasNews && seen().first < TOP_ROWS) refreshing.now();
    },
    stop() {
      stop();
      filling.stop();
      refreshing.stop();
    },
  };
}

const nothing = (key: string): Known => ({
  key,
  top: null,
  behind: 0,
  pages: new Map(),
  hasNews: false,
  error: null,
});

export function useTaskPages(query: TasksQuery): TaskList {
  const key = JSON.stringify(query);
  const [known, setKnown] = useState<Known>(() => nothing(""));
  const own = known.key === key ? known : nothing(key);
  const now = useRef(own);
  now.current = own;
  const seen = useRef({ first: 0, last: 0 });
  const work = useRef<Work | null>(null);
  useEffect(() => {
    let isOver = false;
    const put = (next: Partial<Known>): void => {
      if (isOver) return;
      now.current = { ...now.current, ...next };
      setKnown(now.current);
    };
    seen.current = { first: 0, last: 0 };
    const reading = startReading(query, { now: () => now.current, put, seen: () => seen.current });
    work.current = reading;
    return () => {
      isOver = true;
      reading.stop();
    };
  }, [key]);
  const { top, behind, pages, hasNews, error } = own;
  return {
    length: top === null ? 0 : top.tasks.length + behind,
    at: (row) => rowOf(own, row),
    known: () => [...(top?.tasks ?? []), ...[...pages.values()].flatMap(({ tasks }) => tasks)],
    isLoading: top === null && error === null,
    isUnknown: top === null && error !== null,
    hasNews,
    error,
    see: (first, last) => {
      seen.current = { first, last };
      work.current?.see();
    },
    async read(first, last) {
      const rows = Array.from({ length: Math.min(ALL_MAX, last - first + 1) }, (_, index) => rowOf(own, first + index));
      if (rows.every((row) => row !== undefined) || top?.next === undefined) return rows.flatMap((row) => row ?? []);
      const head = top.tasks.slice(first, first + rows.length);
      const part = { skip: Math.max(0, first - top.tasks.length), many: rows.length - head.length };
      return [...head, ...(await readMany({ ...query, cursor: top.next }, part)).tasks];
    },
  };
}
