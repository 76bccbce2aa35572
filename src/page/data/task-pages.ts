/**
 * Pages of tasks, newest first, as far as somebody has scrolled.
 *
 * Each page but the first begins behind a cursor, so it holds the same tasks however many are submitted meanwhile, and
 * only pages in sight are asked for again. The first page moves: while it is in sight it takes the place of
 * all; else the list says that there is something new.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TasksQuery, TaskView } from "../../protocol/generated/index.ts";
import { ask } from "./ask.ts";
import { onPulse } from "./use-call.ts";

export const PAGE_SIZE = 200;
/** So many are selected at once at most. */
export const ALL_MAX = 5000;
const EVERY_MS = 1000;

type Page = {
  readonly cursor: string | undefined;
  readonly tasks: readonly TaskView[];
  readonly next: string | undefined;
};
export type TaskList = {
  readonly tasks: readonly TaskView[];
  readonly isLoading: boolean;
  /** Nothing has been read of it, since the server cannot be reached. */
  readonly isUnknown: boolean;
  /** Whether there are more behind the last one. */
  readonly hasMore: boolean;
  /** Something was submitted that is not shown yet. */
  readonly hasNews: boolean;
  readonly error: Error | null;
  readonly see: (first: number, last: number) => void;
  readonly again: () => void;
  /** Begins anew at the top. */
  readonly restart: () => void;
  /** All that match, whether they are in sight or not; of very many the newest. */
  readonly readAll: () => Promise<readonly TaskView[]>;
};
const NONE: readonly Page[] = [];
type Known = {
  readonly key: string;
  readonly pages: readonly Page[];
  readonly hasNews: boolean;
  readonly error: Error | null;
};

async function readPage(query: TasksQuery, cursor: string | undefined, signal: AbortSignal): Promise<Page> {
  const asked = { ...query, order: "newest" as const, limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
  const { tasks, nextCursor } = await ask("tasks", { query: asked }, signal);
  return { cursor, tasks, next: nextCursor };
}

async function readAll(query: TasksQuery): Promise<readonly TaskView[]> {
  const { signal } = new AbortController();
  const all: TaskView[] = [];
  let cursor: string | undefined;
  do {
    const page = await readPage(query, cursor, signal);
    all.push(...page.tasks);
    cursor = page.next;
  } while (cursor !== undefined && all.length < ALL_MAX);
  return all.slice(0, ALL_MAX);
}

/** Which pages hold the rows from one to another. */
function pagesAt(pages: readonly Page[], first: number, last: number): number[] {
  const found: number[] = [];
  let begin = 0;
  for (const [index, { tasks }] of pages.entries()) {
    if (begin <= last && begin + tasks.length > first) found.push(index);
    begin += tasks.length;
  }
  return found;
}

export function useTaskPages(query: TasksQuery): TaskList {
  const key = JSON.stringify(query);
  const [known, setKnown] = useState<Known>({ key: "", pages: [], hasNews: false, error: null });
  const own: Known = known.key === key ? known : { key, pages: NONE, hasNews: false, error: null };
  const now = useRef(own);
  now.current = own;
  const seen = useRef({ first: 0, last: 0 });
  const work = useRef<{ again: () => void; see: () => void; restart: () => void } | null>(null);

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    let isBusy = false;
    let timer = 0;
    const put = (pages: readonly Page[], more: Partial<Known> = {}): void => {
      now.current = { key, pages, hasNews: false, error: null, ...more };
      if (!signal.aborted) setKnown(now.current);
    };
    async function doing(step: () => Promise<void>): Promise<void> {
      if (isBusy || signal.aborted) return;
      isBusy = true;
      try {
        await step();
      } catch (error) {
        if (!signal.aborted) put(now.current.pages, { error: error as Error });
      }
      isBusy = false;
      if (!signal.aborted) more();
    }
    async function restart(): Promise<void> {
      put([await readPage(query, undefined, signal)]);
    }
    /** The pages in sight, once more. */
    async function refresh(): Promise<void> {
      const { pages } = now.current;
      const { first, last } = seen.current;
      const inSight = pagesAt(pages, first, last);
      const [top] = pages;
      if (top === undefined || first < 20) return restart();
      const news = (await readPage(query, undefined, signal)).tasks[0]?.taskId !== top.tasks[0]?.taskId;
      const fresh = new Map<number, Page>();
      for (const index of inSight.filter((one) => one > 0))
        fresh.set(index, await readPage(query, pages[index]?.cursor, signal));
      put(
        now.current.pages.map((page, index) => fresh.get(index) ?? page),
        { hasNews: news },
      );
    }
    function more(): void {
      const { pages, hasNews } = now.current;
      const length = pages.reduce((sum, { tasks }) => sum + tasks.length, 0);
      const next = pages.at(-1)?.next;
      if (next === undefined || seen.current.last < length - PAGE_SIZE / 2) return;
      void doing(async () => put([...pages, await readPage(query, next, signal)], { hasNews }));
    }
    const again = (): void => {
      clearTimeout(timer);
      timer = 0;
      void doing(refresh);
    };
    const soon = (): void => {
      if (timer === 0) timer = window.setTimeout(again, EVERY_MS);
    };
    seen.current = { first: 0, last: 0 };
    work.current = { again, see: more, restart: () => void doing(restart) };
    void doing(restart);
    const stop = onPulse(soon);
    return () => {
      stop();
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);

  return {
    tasks: useMemo(() => own.pages.flatMap(({ tasks }) => tasks), [own.pages]),
    isLoading: own.pages.length === 0 && own.error === null,
    isUnknown: own.pages.length === 0 && own.error !== null,
    hasMore: own.pages.at(-1)?.next !== undefined,
    hasNews: own.hasNews,
    error: own.error,
    see: (first, last) => {
      seen.current = { first, last };
      work.current?.see();
    },
    again: () => work.current?.again(),
    restart: () => work.current?.restart(),
    readAll: () => readAll(query),
  };
}
