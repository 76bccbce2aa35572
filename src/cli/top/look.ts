/**
 * Looking at a server again and again: at most once a second, and seldom while nothing happens.
 *
 * Each look says which event was the last. While that moves there will be something new in a second; while it stays,
 * the stream of events says when something happens, and is let go with the first word. A fleet that moves ten thousand
 * tasks is not followed event by event: a screen costs the same for any fleet, here and on the server. Events are read
 * for the tab that shows them, the last page of them. A server that is gone, or refuses for a while, is tried again
 * until it answers; what was seen last stays. One that does not know the token any more ends the looking.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { GateJson, ProjectView, TaskState, TasksQuery, TaskView, WorkerView } from "../../protocol/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";
import type { Picture, Tab } from "./picture.ts";
import { nodeWord } from "./trouble.ts";

export type LookParts = {
  readonly client: Client;
  readonly now: () => number;
  /** Resolves after so long, or at once when the signal fires. */
  readonly rest: (ms: number, signal: AbortSignal) => Promise<void>;
  /** What the person looks at now, and how many rows there are. */
  readonly wanted: () => Wanted;
  readonly onPicture: (picture: Picture) => void;
  readonly signal: AbortSignal;
};
export type Wanted = { readonly tab: Tab; readonly rows: number; readonly isWide: boolean; readonly filter: string };

export const LOOK_MS = 1000;
/** What may change without an event, such as a window that slides. */
const IDLE_MS = 5000;
/** Lists that cost the server more than the first few of a line. */
const LISTS_MS = 3000;
const EVENTS_A_LOOK = 50;
const TASKS_SHOWN = 200;

type Lists = Pick<Picture, "tasks" | "tasksFilter" | "hasMoreTasks" | "projects" | "workers" | "gates">;
const NOTHING: Lists = {
  tasks: null,
  tasksFilter: "",
  hasMoreTasks: false,
  projects: null,
  workers: null,
  gates: null,
};

/** One look, with what this tab shows. */
export async function lookOnce(client: Client, wanted: Wanted, now: () => number, until: Until = {}): Promise<Picture> {
  const [line, lists, node] = await Promise.all([
    lineOf(client, wanted, until),
    listsOf(client, wanted, until),
    nodeWord(client, until),
  ]);
  return { ...NOTHING, ...lists, at: now(), line, events: null, eventsRefused: null, lost: null, node };
}

/** Each look is a try of its own. */
type Until = { readonly signal?: AbortSignal; readonly maxAgeMs?: number };
const lineOf = (client: Client, { rows }: Wanted, until: Until): ReturnType<Client["line"]> =>
  client.line({ limit: Math.max(1, Math.min(1000, rows)) }, { retries: 0, ...until });

/** Only what is on the screen is asked for. */
async function listsOf(client: Client, { tab, isWide, filter }: Wanted, until: Until): Promise<Partial<Lists>> {
  const isBeside = tab === "scheduler" && isWide;
  const once = { retries: 0, ...until };
  const [tasks, projects, workers, gates] = await Promise.all([
    tab === "tasks" ? client.tasks({ order: "newest", limit: TASKS_SHOWN, ...searched(filter) }, once) : null,
    tab === "projects" || isBeside ? client.projects(once) : null,
    tab === "workers" || isBeside ? client.workers(once) : null,
    tab === "gates" || isBeside ? client.gates(once) : null,
  ]);
  return {
    ...(tasks === null ? {} : { tasks: tasks.tasks as readonly TaskView[], tasksFilter: filter }),
    ...(tasks === null ? {} : { hasMoreTasks: tasks.nextCursor !== undefined }),
    ...(projects === null ? {} : { projects: projects.projects as readonly ProjectView[] }),
    ...(workers === null ? {} : { workers: workers.workers as readonly WorkerView[] }),
    ...(gates === null ? {} : { gates: gates.gates as readonly GateJson[] }),
  };
}

/** The server finds them among all tasks, not among the newest. A word that is a state means those in it. */
function searched(filter: string): Pick<TasksQuery, "q" | "state"> {
  const words = filter.split(/\s+/).filter((word) => word !== "");
  const state = words.map((word) => word.toLowerCase()).filter(isTaskState);
  const q = words.filter((word) => !isTaskState(word.toLowerCase())).join(" ");
  return { ...(q === "" ? {} : { q }), ...(state.length === 0 ? {} : { state }) };
}
const isTaskState = (word: string): word is TaskState => (TASK_STATES as readonly string[]).includes(word);

export type Looking = {
  /** Looks at once, at the lists too: another tab, or something was done. Resolves when it has looked. */
  readonly poke: () => Promise<void>;
  /** Fails where looking further is of no use. */
  readonly ended: Promise<void>;
};

/** Goes on from a first picture until the signal fires. */
export function keepLooking(first: Picture, parts: LookParts): Looking {
  const { client, now, rest, wanted, onPicture, signal } = parts;
  const listsAt = { tab: wanted().tab, filter: wanted().filter, at: Number.NEGATIVE_INFINITY };
  let picture = first;
  let pokes = new AbortController();
  let looked = Promise.withResolvers<void>();

  async function look(): Promise<void> {
    const asked = wanted();
    const isOther = asked.tab !== listsAt.tab || (asked.tab === "tasks" && asked.filter !== listsAt.filter);
    const areDue = isOther || now() - listsAt.at >= LISTS_MS;
    // Others look at the same. What this one has done itself it sees in any case.
    const among = { signal, maxAgeMs: LOOK_MS };
    try {
      const line = await lineOf(client, asked, among);
      // Whoever answers after a loss may be another than before.
      const asksNode = areDue && (picture.node.isNode !== false || picture.lost !== null);
      const [lists, node, events] = await Promise.all([
        areDue ? listsOf(client, asked, among) : {},
        asksNode ? nodeWord(client, { signal }) : picture.node,
        asked.tab === "events" ? eventsUpTo(client, line.seq, signal) : {},
      ]);
      // What was done meanwhile is perhaps not in them.
      const at = pokes.signal.aborted ? Number.NEGATIVE_INFINITY : now();
      if (areDue) Object.assign(listsAt, { tab: asked.tab, filter: asked.filter, at });
      // What was read for another tab would be old by the time it is seen again.
      const before = areDue ? NOTHING : {};
      picture = { ...picture, ...before, events: null, ...lists, ...events, at: now(), line, lost: null, node };
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ClientError) || error.status === 401) throw error;
      const isRefusal = error.status >= 400 && error.status < 500 && error.code !== "bad_answer";
      picture = { ...picture, lost: { since: picture.lost?.since ?? now(), why: error.message, isRefusal } };
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const before = picture.line.seq;
      const { resolve } = looked;
      looked = Promise.withResolvers();
      await look();
      if (signal.aborted) return;
      onPicture(picture);
      resolve();
      const poked = AbortSignal.any([signal, pokes.signal]);
      // Whatever happens, no sooner than this; only a key may ask for it.
      await rest(LOOK_MS, poked);
      if (picture.line.seq === before && picture.lost === null && !poked.aborted)
        await somethingHappens(client, before, (until) => rest(IDLE_MS - LOOK_MS, until), poked);
      if (pokes.signal.aborted) pokes = new AbortController();
    }
  }
  function poke(): Promise<void> {
    listsAt.at = Number.NEGATIVE_INFINITY;
    pokes.abort();
    return looked.promise;
  }
  return { poke, ended: run() };
}

/** Resolves with the first event behind this one, or when the rest is over. */
async function somethingHappens(
  client: Client,
  after: number,
  rest: (until: AbortSignal) => Promise<void>,
  outer: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([outer, over.signal]);
  const heard = (async () => {
    for await (const _ of client.events({ after, signal, reconnects: 0 })) return;
  })().catch((error: unknown) => {
    if (!signal.aborted && !(error instanceof ClientError)) throw error;
    return rest(signal);
  });
  await Promise.race([heard, rest(signal)]);
  over.abort();
  await heard;
}

/** The last few; who may not read the log is told so. */
async function eventsUpTo(
  client: Client,
  seq: number,
  signal: AbortSignal,
): Promise<Pick<Picture, "events" | "eventsRefused">> {
  try {
    const after = Math.max(0, seq - EVENTS_A_LOOK);
    const { events } = await client.eventPage({ after, limit: EVENTS_A_LOOK }, { retries: 0, signal });
    return { events, eventsRefused: null };
  } catch (error) {
    if (!(error instanceof ClientError) || (error.status !== 401 && error.status !== 403)) throw error;
    return { events: [], eventsRefused: error.message };
  }
}
