/**
 * The calls about the scheduler as a whole (its numbers, its queue, its rules, its pauses), its log and the server.
 *
 * A token that is scoped to projects or an agent finds its own in the lists, and the totals of all beside them.
 */

import { badInput, DroverError } from "../../engine/base/index.ts";
import type { Drover, FeedEvent } from "../../engine/index.ts";
import { LogFailure } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { wantedEvents } from "../../engine/tasks/index.ts";
import { badHeader, frameOf, holderOf, isScoped, ServerRefusal, type Streams } from "../../http/index.ts";
import type { EventCalls, SchedulerCalls, ServerCalls } from "../../protocol/calls/index.ts";
import {
  EVENTS_DEFAULT,
  type EventJson,
  type EventPage,
  type EventsQuery,
  openApiDocument,
  type Readiness,
  type SchedulerConfig,
} from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import { ownEvents, ownLine, ownQueue, ownStats } from "../access/scoped-views.ts";
import { checkTask } from "../access/token-scope.ts";
import { nodeReadiness } from "./cluster.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";

type ServerParts = {
  readonly streams: Streams;
  /** The numbers for Prometheus, as text. */
  readonly metrics: () => Promise<string>;
  readonly node: DroverNode | undefined;
};
/** A page of what is rare ends after so many events, so that one request never reads a whole log. */
const LOOKED_AT_MAX = 20_000;
/** The stream has answered by itself. */
export const ANSWERED: unique symbol = Symbol("answered");

export function serverHandlers(deps: Deps, parts: ServerParts): Handlers<keyof (EventCalls & ServerCalls)> {
  const { drover, phase, version, serverId } = deps;
  /** Making it takes a while, and it changes only with where the server is: the same bytes are for everybody. */
  const document = { url: "", bytes: Buffer.alloc(0) };
  return {
    events: ({ query }, exchange) => events(deps, parts.streams, query, exchange),
    health: () => ({ status: "ok", version }),
    ready: async (): Promise<Readiness> => {
      const refusal = phase.refusal();
      if (refusal !== null) throw refusal;
      const { node } = parts;
      const asNode = node === undefined ? {} : nodeReadiness(node);
      const { aheadMs: logTimeAheadMs } = drover.logTime();
      return { status: "ready", seq: drover.committedSeq(), serverId, logTimeAheadMs, ...asNode };
    },
    metrics: () => parts.metrics(),
    openapi: () => {
      const url = deps.url();
      if (document.url !== url)
        Object.assign(document, { url, bytes: Buffer.from(JSON.stringify(openApiDocument({ version, url }))) });
      return document.bytes as never;
    },
  };
}

async function events(
  { drover }: Deps,
  streams: Streams,
  query: EventsQuery,
  { caller, request, response }: Exchange,
): Promise<EventPage> {
  const { headers } = request;
  const asked = lastEventId(headers["last-event-id"]) ?? query.after ?? null;
  const after = await beginningOf(drover, asked);
  const since = query.since === undefined ? {} : { since: query.since };
  if (query.task !== undefined) await checkTask(drover, caller, query.task);
  const isWanted = wantedEvents(drover.state, query);
  const isSeen = isScoped(caller) ? ownEvents(drover.state, caller) : () => true;
  const wants = (event: FeedEvent): boolean => isWanted(event) && isSeen(event);
  if (headers.accept?.includes("text/event-stream") !== true)
    return pageOf(drover.events({ after, ...since }), query.limit ?? EVENTS_DEFAULT, wants);
  streams.open(
    { response, holder: holderOf(caller, request) },
    {
      items: (signal) => drover.events({ after, ...since, follow: true, signal }),
      frame: (event) => (wants(event) ? frameOf(event.seq, event.kind, eventJson(event)) : null),
    },
  );
  return ANSWERED as never;
}

const eventJson = ({ at, ...event }: FeedEvent): EventJson => ({ ...event, at: isoTime(at) }) as EventJson;

/** Where to begin: where was asked for, or with the first event there is. What is no longer there is refused. */
async function beginningOf({ events }: Drover, asked: number | null): Promise<number> {
  try {
    for await (const _ of events({ after: asked ?? 0 })) break;
    return asked ?? 0;
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "pruned" || error.seq === undefined) throw error;
    if (asked === null || asked === 0) return error.seq;
    throw badInput("after", asked, `at least ${error.seq}: what was before is no longer in the log`);
  }
}

function lastEventId(given: string | string[] | undefined): number | null {
  if (given === undefined || given === "") return null;
  const id = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : null;
  if (id !== null) return id;
  throw badHeader("last-event-id", "the header Last-Event-ID must be the number of an event");
}

async function pageOf(
  feed: AsyncIterable<FeedEvent>,
  limit: number,
  wants: (event: FeedEvent) => boolean,
): Promise<EventPage> {
  const events: EventJson[] = [];
  let [looked, last] = [0, 0];
  for await (const event of feed) {
    if (events.length >= limit || looked >= LOOKED_AT_MAX) return { events, nextAfter: last };
    if (wants(event)) events.push(eventJson(event));
    looked++;
    last = event.seq;
  }
  return { events };
}

export function schedulerHandlers(deps: Deps): Handlers<keyof SchedulerCalls> {
  const { drover } = deps;
  const rules = (): SchedulerConfig => drover.effectiveConfig().scheduler;
  return {
    stats: async (_, { caller }) => ownStats(drover.state, caller, await drover.stats()),
    queue: async (_, { caller }) => ownQueue(drover.state, caller, await drover.queue()),
    line: async ({ query }, { caller }) => ownLine(caller, query, (wanted) => drover.line(wanted)),
    config: rules,
    patchConfig: async ({ body }) => (await drover.patchConfig(body)).scheduler,
    reload: async () => {
      await reload(deps.onReload);
      return rules();
    },
    pause: ({ body }) => drover.pause(body),
    resume: ({ body }) => drover.resume(body),
  };
}

/** A file that cannot be read or is wrong is the caller's news: it names the line. */
async function reload(onReload: Deps["onReload"]): Promise<void> {
  try {
    await onReload();
  } catch (error) {
    const isBug = error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
    if (error instanceof DroverError || isBug || !(error instanceof Error)) throw error;
    throw new ServerRefusal("bad_request", error.message);
  }
}
