/**
 * The calls about the server itself and its log: events, health, numbers, the document.
 */
import type { FeedEvent } from "../engine/feed.ts";
import {
  EVENTS_DEFAULT,
  type EventPage,
  type EventsQuery,
  openApiDocument,
  type Readiness,
} from "../protocol/index.ts";
import { type EventStreams, eventJson } from "./event-stream.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { ServerRefusal } from "./problem.ts";

export type ServerFaces = {
  readonly streams: EventStreams;
  /** The numbers for Prometheus, as text. */
  readonly metrics: () => Promise<string>;
};
/** The stream has answered by itself. */
export const ANSWERED: unique symbol = Symbol("answered");

type ServerNames = "events" | "health" | "ready" | "metrics" | "openapi";
export function serverHandlers(deps: Deps, faces: ServerFaces): Handlers<ServerNames> {
  const { drover, phase, version } = deps;
  /** Making it takes a while, and it changes only with where the server is. */
  const document = { url: "", text: {} as Readonly<Record<string, unknown>> };
  return {
    events: ({ query }, exchange) => events(deps, faces.streams, query, exchange),
    health: () => ({ status: "ok", version }),
    ready: async (): Promise<Readiness> => {
      const refusal = phase.refusal();
      if (refusal !== null) throw refusal;
      return { status: "ready", seq: drover.state.seq };
    },
    metrics: () => faces.metrics(),
    openapi: () => {
      const url = deps.url();
      if (document.url !== url) Object.assign(document, { url, text: openApiDocument({ version, url }) });
      return document.text;
    },
  };
}

function events(
  { drover }: Deps,
  streams: EventStreams,
  query: EventsQuery,
  { request, reply }: Exchange,
): Promise<EventPage> | EventPage {
  const after = lastEventId(request.headers["last-event-id"]) ?? query.after ?? 0;
  if (request.headers.accept?.includes("text/event-stream") !== true)
    return pageOf(drover.events({ after }), query.limit ?? EVENTS_DEFAULT);
  streams.open(reply, after, () => true);
  return ANSWERED as never;
}

function lastEventId(given: string | string[] | undefined): number | null {
  if (given === undefined || given === "") return null;
  const id = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : null;
  if (id !== null) return id;
  throw new ServerRefusal("bad_request", "the header Last-Event-ID must be the number of an event", {
    details: { field: "header last-event-id" },
  });
}

async function pageOf(feed: AsyncIterable<FeedEvent>, limit: number): Promise<EventPage> {
  const events: FeedEvent[] = [];
  for await (const event of feed) {
    events.push(event);
    if (events.length > limit) break;
  }
  const page = events.slice(0, limit);
  const last = page.at(-1);
  const isMore = events.length > limit && last !== undefined;
  return { events: page.map(eventJson), ...(isMore ? { nextAfter: last.seq } : {}) };
}
