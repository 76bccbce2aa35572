/**
 * The feed of events on the wire, and what the server says of its own health.
 *
 * An event is shown with its hashes in the chain. Its payload is the event as the log has it, instants in milliseconds
 * included, so that anybody can compare it with the log itself.
 */
import { EVENT_KINDS, type Event, type EventKind } from "../../core/model/index.ts";
import type { EventsQuery, Health, Readiness } from "../generated/events.ts";
import * as s from "../schema/schema.ts";
import { EVENTS_MAX } from "../wire/endpoints.ts";
import { labelFilter } from "./labels.ts";

/** What an event is shown with, whatever its kind. `At` is how instants are given. */
type Envelope<At> = {
  /** Its number: its identity, its position in the log and the logical time. */
  readonly seq: number;
  /** When it happened, in log time. */
  readonly at: At;
  /** The task it is about, if it is about one. */
  readonly task?: string;
  /** The attempt it is about, if it is about one. */
  readonly attempt?: number;
  /** The number of the event that led to it, where one did. */
  readonly cause?: number;
  /** SHA-256 of the body or result that lies beside the log. */
  readonly payloadHash?: string;
  /** The postHash of the event before; 64 zeros before the first. */
  readonly priorHash: string;
  /** SHA-256 of priorHash and the stored bytes. */
  readonly postHash: string;
};
type EventOf<Kind extends EventKind, At> = Envelope<At> & {
  /** What happened: it decides what the payload is. */
  readonly kind: Kind;
  /** As the log has it; instants are milliseconds since 1970. */
  readonly payload: Extract<Event, { readonly kind: Kind }>;
};
/** An event of any kind; to look at its `kind` narrows its `payload`. */
export type AnyEvent<At> = { readonly [Kind in EventKind]: EventOf<Kind, At> }[EventKind];
/** An event on the wire: its instant is RFC 3339 text. */
export type EventJson = AnyEvent<string>;
/** A page of events. */
export type EventPage = {
  /** In the order of the log. */
  readonly events: readonly EventJson[];
  /** Where to go on; absent when there is nothing more yet. */
  readonly nextAfter?: number;
};

export const EVENTS_DEFAULT = 100;

const hash = (): s.Schema<string> => s.text(64, 64);
export const eventJson: s.Schema<EventJson> = s.component(
  "Event",
  s.answer<Envelope<string> & { readonly kind: string; readonly payload: Readonly<Record<string, unknown>> }>({
    seq: s.described(s.whole(1), "Its number: its identity, its position and the logical time."),
    at: s.instant(),
    kind: s.name(),
    task: s.optional(s.name()),
    attempt: s.optional(s.whole(0)),
    cause: s.optional(s.whole(1), "The event that led to it."),
    payload: s.described(s.anyObject(), "As the log has it; instants are milliseconds since 1970."),
    payloadHash: s.optional(hash(), "SHA-256 of the body or result that lies beside the log."),
    priorHash: hash(),
    postHash: s.described(hash(), "SHA-256 of priorHash and the stored bytes."),
  }) as s.Schema<EventJson>,
);
export const eventKinds = (): s.Schema<readonly EventKind[]> =>
  s.list(s.oneOf<EventKind>(...EVENT_KINDS), { min: 1, max: 100 });
export const eventsQuery: s.Schema<EventsQuery> = s.object({
  after: s.optional(s.whole(0), "Events behind this number. Last-Event-ID says the same.", { default: 0 }),
  limit: s.optional(s.whole(1, EVENTS_MAX), "How many in a page of JSON.", { default: EVENTS_DEFAULT }),
  task: s.optional(s.name(), "Only events about this task."),
  kind: s.optional(eventKinds(), "Only these, as in kind=task-done,task-failed."),
  since: s.optional(s.instant(), "Only those since this instant, in log time."),
  label: s.optional(
    labelFilter(),
    "Only events about tasks with this label; given again, with all of them. Of a task whose record is gone they are " +
      "found if its task-submitted was read before, by the same request.",
  ),
});
export const eventPage: s.Schema<EventPage> = s.namedAnswer("EventPage", {
  events: s.list(eventJson),
  nextAfter: s.optional(
    s.whole(0),
    "Ask for the next page with this; absent when there is none yet. A page of a filter may be empty and have one.",
  ),
});
export const health: s.Schema<Health> = s.answer({ status: s.oneOf("ok"), version: s.text(1, 100) });
export const readiness: s.Schema<Readiness> = s.answer({
  status: s.oneOf("ready"),
  seq: s.described(s.whole(0), "The number of the last event in the log."),
  serverId: s.described(
    s.text(1, 100),
    "This start of the server: no other has the same. server.json in its data directory names it too.",
  ),
  logTimeAheadMs: s.described(
    s.whole(Number.MIN_SAFE_INTEGER),
    "How far log time is ahead of the wall clock: above zero after that one was set back, below while it is doubted.",
  ),
  role: s.optional(s.oneOf("leader", "follower"), "Of a node of a cluster: what it does."),
  epoch: s.optional(s.whole(0), "Of a node of a cluster: how often the lead has changed."),
  lagMs: s.optional(s.whole(0), "Of a node of a cluster: for how long it may have missed what the leader did."),
  readOnly: s.optional(
    s.text(1, 2000),
    "Of a node of a cluster: why it answers reads and takes nothing else: its journal is full.",
  ),
  nodesDown: s.optional(s.whole(1), "Of a node of a cluster: how many others are down; absent: none."),
});
