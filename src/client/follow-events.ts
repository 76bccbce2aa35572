/**
 * The events of the log as they happen, over as many connections as that takes.
 *
 * A connection that breaks, or on which nothing is heard for a while, not even a heartbeat, is opened again behind the
 * last event that was given out, at another node if there is one. So a reader sees every event once and in order,
 * whatever the network does. A connection is let go while its reader is at one event for as long, which is perhaps for
 * ever, and opened again when the reader comes back.
 */
import type { EventJson, EventKind } from "../protocol/index.ts";
import { ENDPOINTS } from "../protocol/wire/index.ts";
import { targetOf } from "./addresses.ts";
import { checkCall } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { headersFor, networkError, refusalOf, restAfter, type Wiring } from "./exchange.ts";

/** Which events, and how patiently. */
export type FollowOptions = {
  /** Events behind this number; 0, which is the default: from the beginning. */
  readonly after?: number;
  /** Only those since this instant, in log time, as RFC 3339 text. */
  readonly since?: string;
  /** Only events about this task. */
  readonly task?: string;
  /** Only events of this kind, or these. */
  readonly kind?: EventKind | readonly EventKind[];
  /** Only events about tasks with this label, as `key=value`, or with all of these. */
  readonly label?: string | readonly string[];
  /** Ends the reading. */
  readonly signal?: AbortSignal;
  /** How often in a row a connection that brought nothing is opened again. */
  readonly reconnects?: number;
  /** A connection on which nothing is heard for so long counts as broken; one that nobody reads is let go. */
  readonly silenceMs?: number;
};

const RECONNECTS = 20;
const SILENCE_MS = 45_000;
const ASKED_MS_MAX = 60_000;
/** A connection that lived so long was a good one, even if nothing happened meanwhile. */
const GOOD_MS = 1000;
/** So many characters of a message may wait for its end. */
const HELD_MAX = 16 * 1024 * 1024;

/** Ends when the signal fires, and with an error when the server refuses or stays away. */
export async function* followEvents(wiring: Wiring, options: FollowOptions): AsyncGenerator<EventJson> {
  const { since: _, task: _task, kind: _kind, label: _label, ...read } = options;
  checkCall(read);
  const { after: from = 0, signal, reconnects = RECONNECTS, silenceMs = SILENCE_MS, ...filter } = options;
  const isOver = (): boolean => signal?.aborted === true;
  let after = from;
  let fruitless = 0;
  while (!isOver()) {
    const line = openLine(silenceMs, signal);
    const base = wiring.addresses.next();
    let failure = new ClientError("network", `the stream of events of ${base} has ended`, { retryable: true });
    try {
      const seen = after === from ? 0 : after;
      for await (const event of eventsOn(wiring, { base, seen }, { ...filter, after }, line)) {
        fruitless = 0;
        if (event.seq <= after) continue;
        after = event.seq;
        line.pause();
        yield event;
        line.listen();
      }
    } catch (error) {
      if (isOver()) return;
      if (line.isLetGo()) continue;
      failure = error instanceof ClientError ? error : networkError(base, error, true, wiring.addresses.count > 1);
      wiring.addresses.failed(base, failure.status === 0 ? "silent" : "cannot");
    } finally {
      line.close();
    }
    if (isOver()) return;
    if (line.wasGood()) fruitless = 0;
    if (!failure.retryable || fruitless >= reconnects) throw failure;
    fruitless++;
    const restMs = restAfter(fruitless, failure.retryAfterMs, Math.random()) ?? ASKED_MS_MAX;
    if (!(await rested(wiring, restMs, signal))) return;
  }
}

async function rested({ rest }: Wiring, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await rest(ms, signal);
    return true;
  } catch (error) {
    if (signal?.aborted === true) return false;
    throw error;
  }
}

type Line = {
  readonly signal: AbortSignal;
  heard(): void;
  /** While the reader is at an event nothing is read: that is no silence of the server. */
  pause(): void;
  listen(): void;
  /** Whether its reader was at an event for so long that it was ended. */
  isLetGo(): boolean;
  wasGood(): boolean;
  close(): void;
};

/** A connection's own signal: fires with the caller's, or when it has been silent for too long. */
function openLine(silenceMs: number, outer: AbortSignal | undefined): Line {
  const cut = new AbortController();
  let isPaused = false;
  let isLetGo = false;
  const late = (): void => {
    isLetGo ||= isPaused;
    cut.abort(new ClientError("timeout", `nothing heard for ${silenceMs} ms`, { retryable: true }));
  };
  let timer = setTimeout(late, silenceMs);
  const openedAt = performance.now();
  let heardAt = openedAt;
  const listen = (): void => {
    isPaused = false;
    clearTimeout(timer);
    timer = setTimeout(late, silenceMs);
  };
  return {
    signal: outer === undefined ? cut.signal : AbortSignal.any([outer, cut.signal]),
    heard() {
      listen();
      heardAt = performance.now();
    },
    pause() {
      isPaused = true;
    },
    listen,
    isLetGo: () => isLetGo,
    wasGood: () => heardAt - openedAt > GOOD_MS,
    close() {
      clearTimeout(timer);
      cut.abort();
    },
  };
}

async function* eventsOn(
  { addresses, fetch }: Wiring,
  { base, seen }: { readonly base: string; readonly seen: number },
  query: Omit<FollowOptions, "signal" | "reconnects" | "silenceMs">,
  line: Line,
): AsyncGenerator<EventJson> {
  const asked = { accept: "text/event-stream", "last-event-id": String(query.after) };
  const response = await fetch(`${base}${targetOf(ENDPOINTS.events.path, {}, query)}`, {
    headers: headersFor(addresses, { ...asked, ...addresses.afterOwnWrites(seen) }),
    redirect: "manual",
    signal: line.signal,
  });
  addresses.answered(base, response, false);
  if (response.status !== 200) throw refusalOf(response.status, response.headers, await response.text(), true);
  const media = response.headers.get("content-type") ?? "";
  if (response.body === null || !media.startsWith("text/event-stream"))
    throw new ClientError(
      "bad_answer",
      `the answer is ${media || "of no kind"}, not a stream; is this a Drover server?`,
    );
  // Loaded here: a client that follows no events starts without it.
  const { createParser } = await import("eventsource-parser");
  const events: EventJson[] = [];
  const decoder = new TextDecoder();
  const parser = createParser({
    maxBufferSize: HELD_MAX,
    // Messages without an id are not events of the log.
    onEvent: ({ id = "", data }) => {
      if (id !== "") events.push(JSON.parse(data) as EventJson);
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw error;
    },
  });
  for await (const bytes of response.body) {
    line.heard();
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* events.splice(0);
  }
  // That it ends in order is heard too: how long it lived counts, and not only until the last heartbeat.
  line.heard();
}
