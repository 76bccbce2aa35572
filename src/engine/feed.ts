/**
 * The feed of committed events, as any caller may read it.
 *
 * It is the log itself, decoded: from any event on, in order, each with its place in the chain. A slow reader reads
 * slowly and holds up no other: nothing is buffered for it. All readers share the pages that were read last, and take
 * turns: in one turn of the event loop one of them gets a slice of events, so that what comes in meanwhile, a submit or
 * the answer of the disk, waits for one slice and not for all readers.
 */
import { flag, name, type Reader, type Seq, seq, whole } from "../core/base/index.ts";
import { type Fifo, fifo, push, shift } from "../core/collections/index.ts";
import { type Event, type EventKind, type State, taskOf } from "../core/model/index.ts";
import { decodeEvent, payloadHashOf, toHex } from "../log/format/index.ts";
import { type Log, LogFailure, type LogRecord, type ReadBatch } from "../log/index.ts";
import type { AnyEvent } from "../protocol/index.ts";
import { readShape } from "../protocol/schema/index.ts";
import { eventKinds } from "../protocol/shapes/index.ts";
import { abortSignal, readOptions } from "./base/call-options.ts";
import { readLabels, wantedEvents } from "./tasks/read-tasks.ts";
import { instantField } from "./tasks/task-body.ts";

/** Who wants one event is not to read many; who reads on reads more at a time. */
const FIRST_PAGE_BYTES = 8 * 1024;
const PAGE_BYTES = 64 * 1024;
/** Events that one reader gets in one turn of the event loop. */
const SLICE = 128;
const KEPT_BYTES_MAX = 8 * 1024 * 1024;
const KEPT_MAX = 256;
/** What a record costs in memory besides its bytes. */
const RECORD_OVERHEAD = 200;

/** A committed event: its instant is milliseconds since 1970. */
export type FeedEvent = AnyEvent<number>;

/** Which events. */
export type FeedOptions = {
  /** Those behind this number; 0, which is the default: from the beginning. */
  readonly after?: number;
  /** Whether to go on with those to come. */
  readonly follow?: boolean;
  /** Only those since this instant, in log time: text, or milliseconds since 1970. */
  readonly since?: string | number;
  /** Only those about this task. */
  readonly task?: string;
  /** Only those of this kind, or these. */
  readonly kind?: EventKind | readonly EventKind[];
  /** Only those about tasks with this label, as `key=value`, or with all of these. */
  readonly label?: string | readonly string[];
  /** Ends the reading. */
  readonly signal?: AbortSignal;
};
type Wanted = Pick<FeedOptions, "task" | "kind" | "label" | "signal"> & {
  readonly after: Seq;
  readonly since: number | null;
  readonly follow: boolean;
};

const KINDS = eventKinds();
const readKinds: Reader<EventKind | readonly EventKind[]> = (value, field) =>
  readShape(KINDS, Array.isArray(value) ? value : [value], field);
const FIELDS = {
  after: whole(0),
  follow: flag,
  since: instantField as Reader<string | number>,
  task: name(),
  kind: readKinds,
  label: readLabels,
  signal: abortSignal,
};

export function readFeedOptions(given: unknown): Wanted {
  const { after = 0, since, follow = false, ...more } = readOptions<FeedOptions>(FIELDS, given);
  return { ...more, after: seq(after), since: since === undefined ? null : (since as number), follow };
}

type Feed = {
  /** Events behind `after`: those there are, or, with `follow`, also those to come until the signal fires. */
  read(options: Wanted): AsyncGenerator<FeedEvent>;
  /** Something was committed. */
  onCommitted(): void;
  /** Events were pruned. */
  onPruned(): void;
  /** Every follower ends. */
  close(): void;
};

/** `head` is the last event that was committed. */
export function createFeed({
  log,
  head,
  state,
}: {
  readonly log: Pick<Log, "read" | "readRecord">;
  readonly head: () => Seq;
  readonly state: State;
}): Feed {
  const pages = createPages(log);
  const nextTurn = createTurns();
  const bell = createBell();
  const closing = new AbortController();

  /** What is there up to `until`; answers the last event it came to. */
  async function* past(from: Seq, until: Seq): AsyncGenerator<FeedEvent, Seq> {
    let after = from;
    for (let pageBytes = FIRST_PAGE_BYTES; after < until; pageBytes = PAGE_BYTES) {
      const batch = await pages.batchBehind(after, pageBytes);
      if (batch === null) break;
      for (const event of eventsOf(batch, after, until)) {
        if ((event.seq - from) % SLICE === 1) await nextTurn(after === from);
        yield event;
        after = seq(event.seq);
      }
    }
    return after;
  }

  async function* follow(from: Seq, signals: readonly AbortSignal[]): AsyncGenerator<FeedEvent> {
    const isOver = (): boolean => signals.some(({ aborted }) => aborted);
    try {
      for (let after = from; !isOver(); ) {
        const heard = bell.rings();
        for await (const event of past(after, head())) {
          if (isOver()) return;
          yield event;
          after = seq(event.seq);
        }
        await bell.waitPast(heard, signals);
      }
    } catch (error) {
      // A log that is closed meanwhile ends a follower in silence.
      if (!(error instanceof LogFailure) || error.code !== "closed") throw error;
    }
  }

  /** The last event behind `after` that was before this instant: log time never goes back. */
  async function lastBefore(since: number, after: Seq): Promise<Seq> {
    let [low, high] = [after as number, head() as number];
    while (low < high) {
      const middle = seq(Math.ceil((low + high) / 2));
      const record = await log.readRecord(middle);
      const isOlder =
        record === null || record.bytes.length === 0 || decodeEvent(record.bytes, middle).event.at < since;
      if (isOlder) low = middle;
      else high = middle - 1;
    }
    return seq(low);
  }

  async function* since({
    after: from,
    since: instant,
    follow: isFollower,
    signal,
  }: Wanted): AsyncGenerator<FeedEvent> {
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal];
    const after = instant === null ? from : await lastBefore(instant, from);
    yield* isFollower ? follow(after, signals) : past(after, head());
  }

  return {
    read(wanted) {
      const events = since(wanted);
      const { task, kind, label } = wanted;
      const isAll = task === undefined && kind === undefined && label === undefined;
      return isAll ? events : only(events, wantedEvents(state, wanted));
    },
    onCommitted: bell.ring,
    onPruned: pages.forget,
    close: () => closing.abort(),
  };
}

async function* only(
  events: AsyncGenerator<FeedEvent>,
  wants: (event: FeedEvent) => boolean,
): AsyncGenerator<FeedEvent> {
  for await (const event of events) if (wants(event)) yield event;
}

/**
 * In one turn of the event loop one of those that read on has its turn, and one that has just begun: who wants a few
 * events does not wait behind all who want everything.
 */
function createTurns(): (isFirst: boolean) => Promise<void> {
  const beginners: Fifo<() => void> = fifo();
  const others: Fifo<() => void> = fifo();
  const count = (): number => beginners.length + others.length;
  function serve(): void {
    shift(beginners)?.();
    shift(others)?.();
    if (count() > 0) setImmediate(serve);
  }
  return (isFirst) =>
    new Promise((resolve) => {
      push(isFirst ? beginners : others, resolve);
      if (count() === 1) setImmediate(serve);
    });
}

/** Wakes all that wait for something to be committed. */
function createBell() {
  const waiting = new Set<() => void>();
  let count = 0;
  return {
    rings: (): number => count,
    ring(): void {
      count++;
      for (const wake of [...waiting]) wake();
    },
    /** Resolves once the bell has rung more often than `heard`, or a signal fires. */
    waitPast(heard: number, until: readonly AbortSignal[]): Promise<void> {
      if (count !== heard || until.some((signal) => signal.aborted)) return Promise.resolve();
      return new Promise((resolve) => {
        function wake(): void {
          waiting.delete(wake);
          for (const signal of until) signal.removeEventListener("abort", wake);
          resolve();
        }
        waiting.add(wake);
        for (const signal of until) signal.addEventListener("abort", wake);
      });
    },
  };
}

/** Those behind `after` and up to `until`, each decoded when it is asked for. */
function* eventsOf({ firstSeq, priorHash, hashes, records }: ReadBatch, after: Seq, until: Seq): Generator<FeedEvent> {
  const first = Math.max(0, after + 1 - firstSeq);
  const end = Math.min(records.length, until + 1 - firstSeq);
  let prior = toHex(first === 0 ? priorHash : (hashes[first - 1] as Uint8Array));
  for (let index = first; index < end; index++) {
    const at = seq(firstSeq + index);
    const post = toHex(hashes[index] as Uint8Array);
    const { event, cause } = decodeEvent((records[index] as LogRecord).bytes, at);
    yield envelope(event, cause, at, prior, post);
    prior = post;
  }
}

function envelope(event: Event, cause: Seq | null, at: Seq, priorHash: string, postHash: string): FeedEvent {
  const task = taskOf(event);
  const hash = payloadHashOf(event);
  return {
    seq: at,
    at: event.at,
    kind: event.kind,
    ...(task === null ? {} : { task }),
    ...("attempt" in event && event.attempt !== null ? { attempt: event.attempt } : {}),
    ...(cause === null ? {} : { cause }),
    payload: event,
    ...(hash === null ? {} : { payloadHash: hash }),
    priorHash,
    postHash,
  } as FeedEvent;
}

type Page = { readonly first: Seq; readonly last: Seq; readonly batches: readonly ReadBatch[]; readonly bytes: number };

/**
 * Pages of the log, read once and shared: a hundred readers from the beginning ask for the same ones. Those that were
 * read last are kept, up to a bound in bytes. One page is read at a time, and a small one: an append that comes
 * meanwhile waits for that one only. A reader holds nothing while it waits; what it does not find again when it goes
 * on, it reads again. A page is at least one batch, however large that is.
 */
function createPages(log: Pick<Log, "read">) {
  const kept: Page[] = [];
  let bytes = 0;
  let prunings = 0;
  let line: Promise<unknown> = Promise.resolve();

  function find(wanted: number): ReadBatch | null {
    const page = kept.find(({ first, last }) => first <= wanted && wanted <= last);
    return page?.batches.find((batch) => wanted <= lastOf(batch)) ?? null;
  }

  async function readBehind(after: Seq, pageBytes: number): Promise<ReadBatch | null> {
    // An earlier reader in the queue may have read it.
    const found = find(after + 1);
    if (found !== null) return found;
    const batches: ReadBatch[] = [];
    const seen = prunings;
    for await (const batch of log.read(after, { payloads: false, bytesMax: pageBytes })) batches.push(batch);
    const [first, last] = [batches[0], batches.at(-1)];
    if (first === undefined || last === undefined) return null;
    if (prunings === seen)
      keep({ first: first.firstSeq, last: lastOf(last), batches, bytes: batches.reduce(addSize, 0) });
    return first;
  }

  function keep(page: Page): void {
    kept.push(page);
    bytes += page.bytes;
    while (kept.length > 1 && (bytes > KEPT_BYTES_MAX || kept.length > KEPT_MAX)) bytes -= kept.shift()?.bytes ?? 0;
  }

  return {
    /** The batch with the event behind `after`, or null at the end of the log; a page read for it has so many bytes. */
    async batchBehind(after: Seq, pageBytes: number): Promise<ReadBatch | null> {
      const found = find(after + 1);
      if (found !== null) return found;
      const turn = line.then(() => readBehind(after, pageBytes));
      line = turn.catch(() => {}); // Its own reader gets the failure; the next one goes on.
      return turn;
    },
    /** Events were pruned: what was read before may not be there any more. */
    forget(): void {
      prunings++;
      bytes = 0;
      kept.length = 0;
    },
  };
}

const lastOf = ({ firstSeq, records }: ReadBatch): Seq => seq(firstSeq + records.length - 1);

function addSize(sum: number, { records, hashes }: ReadBatch): number {
  return records.reduce((size, { bytes }) => size + bytes.length + RECORD_OVERHEAD, sum) + hashes.length * 32;
}
