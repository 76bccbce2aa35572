/**
 * Looking at a server again and again: at most once a second, and seldom while nothing happens.
 *
 * The stream of events says that something has happened, and brings what the tab of events shows. A fleet that moves
 * ten thousand tasks says so ten thousand times: after the first few of a second the stream is let go, and taken up
 * again at the end of the log with the next look. So a screen costs the same for any fleet, here and on the server.
 * A server that is gone is tried again until it is back; what was seen last stays.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { EventJson, GateJson, ProjectView, TaskView, WorkerView } from "../../protocol/index.ts";
import type { Picture, Tab } from "./picture.ts";

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
export type Wanted = { readonly tab: Tab; readonly rows: number; readonly isWide: boolean };

const LOOK_MS = 1000;
/** What may change without an event, such as a window that slides. */
const IDLE_MS = 5000;
/** Lists that cost the server more than the first few of a line. */
const LISTS_MS = 2000;
const EVENTS_A_LOOK = 40;
const EVENTS_KEPT = 500;
const TASKS_SHOWN = 200;

type Lists = Pick<Picture, "tasks" | "projects" | "workers" | "gates">;
const NOTHING: Lists = { tasks: null, projects: null, workers: null, gates: null };

/** One look, with what this tab shows. */
export async function lookOnce(client: Client, wanted: Wanted, now: () => number): Promise<Picture> {
  const [line, lists] = await Promise.all([lineOf(client, wanted, {}), listsOf(client, wanted, {})]);
  return { ...NOTHING, ...lists, at: now(), line, events: [], eventsRefused: null, lost: null };
}

/** Each look is a try of its own. */
type Until = { readonly signal?: AbortSignal };
const lineOf = (client: Client, { rows }: Wanted, until: Until): ReturnType<Client["line"]> =>
  client.line({ limit: Math.max(1, Math.min(1000, rows)) }, { retries: 0, ...until });

/** Only what is on the screen is asked for. */
async function listsOf(client: Client, { tab, isWide }: Wanted, until: Until): Promise<Partial<Lists>> {
  const isBeside = tab === "scheduler" && isWide;
  const once = { retries: 0, ...until };
  const [tasks, projects, workers, gates] = await Promise.all([
    tab === "tasks" ? client.tasks({ order: "newest", limit: TASKS_SHOWN }, once) : null,
    tab === "projects" || isBeside ? client.projects(once) : null,
    tab === "workers" || isBeside ? client.workers(once) : null,
    tab === "gates" || isBeside ? client.gates(once) : null,
  ]);
  return {
    ...(tasks === null ? {} : { tasks: tasks.tasks as readonly TaskView[] }),
    ...(projects === null ? {} : { projects: projects.projects as readonly ProjectView[] }),
    ...(workers === null ? {} : { workers: workers.workers as readonly WorkerView[] }),
    ...(gates === null ? {} : { gates: gates.gates as readonly GateJson[] }),
  };
}

export type Looking = {
  /** Looks at once: another tab, or something was done. */
  readonly poke: () => void;
  readonly ended: Promise<void>;
};

/** Goes on from a first picture until the signal fires. */
export function keepLooking(first: Picture, parts: LookParts): Looking {
  const { client, now, rest, wanted, onPicture, signal } = parts;
  let picture = first;
  let wake = new AbortController();
  const stream = createStream(client, signal, () => wake.abort());
  const listsAt = { tab: wanted().tab, at: Number.NEGATIVE_INFINITY };

  async function look(): Promise<void> {
    const asked = wanted();
    const areDue = asked.tab !== listsAt.tab || now() - listsAt.at >= LISTS_MS;
    try {
      const [line, lists] = await Promise.all([
        lineOf(client, asked, { signal }),
        areDue ? listsOf(client, asked, { signal }) : {},
      ]);
      if (areDue) Object.assign(listsAt, { tab: asked.tab, at: now() });
      stream.takeUp();
      picture = { ...picture, ...lists, ...stream.seen(), at: now(), line, lost: null };
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ClientError)) throw error;
      picture = { ...picture, lost: { since: picture.lost?.since ?? now(), why: error.message } };
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await look();
      if (signal.aborted) break;
      onPicture(picture);
      // Whatever happens, no sooner than this; a key may ask for it.
      wake = new AbortController();
      const poked = AbortSignal.any([signal, pokes.signal]);
      await rest(LOOK_MS, poked);
      if (!stream.hasNews() && !poked.aborted && picture.lost === null)
        await rest(IDLE_MS - LOOK_MS, AbortSignal.any([poked, wake.signal]));
      if (pokes.signal.aborted) pokes = new AbortController();
    }
    await stream.ended();
  }
  let pokes = new AbortController();
  return { poke: () => pokes.abort(), ended: run() };
}

// ------------------------------------------------------------------ the stream of events

type Stream = {
  /** Whether something has happened since the last look. */
  hasNews(): boolean;
  /** Begins, or goes on where it was let go. */
  takeUp(): void;
  seen(): Pick<Picture, "events" | "eventsRefused">;
  ended(): Promise<void>;
};

function createStream(client: Client, signal: AbortSignal, onNews: () => void): Stream {
  const kept: EventJson[] = [];
  let reading: Promise<void> | null = null;
  let refused: string | null = null;
  let isNew = false;
  let count = 0;

  async function read(): Promise<void> {
    const cut = new AbortController();
    try {
      const { seq } = await client.ready({ retries: 0, signal });
      // The first time also what has happened just before.
      const after = Math.max(0, kept.length === 0 ? seq - EVENTS_A_LOOK : seq);
      for await (const event of client.events({
        after,
        signal: AbortSignal.any([signal, cut.signal]),
        reconnects: 0,
      })) {
        kept.push(event);
        if (kept.length > EVENTS_KEPT) kept.shift();
        isNew = true;
        onNews();
        count += 1;
        if (count > EVENTS_A_LOOK) break;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ClientError)) throw error;
      // Who may not read the log is told so; what else is wrong is for the look to say.
      if (error.status === 401 || error.status === 403) refused = error.message;
    } finally {
      cut.abort();
    }
  }

  return {
    hasNews: () => isNew || refused !== null,
    takeUp() {
      isNew = false;
      count = 0;
      if (refused !== null || signal.aborted) return;
      reading ??= read().finally(() => {
        reading = null;
      });
    },
    seen: () => ({ events: [...kept], eventsRefused: refused }),
    ended: async () => void (await reading),
  };
}
