/**
 * The feed of committed events, as anybody may read it.
 *
 * It is the log itself, decoded: from any event on, in order, each with its place in the chain. A slow
 * reader reads slowly and holds up nobody: nothing is buffered for it beyond the page it is at.
 */
import { type Seq, seq } from "../core/brand.ts";
import { type Event, taskOf } from "../core/events.ts";
import { flag, whole } from "../core/shape-of-input.ts";
import { decodeEvent } from "../log/codec.ts";
import { type Log, LogFailure, type ReadBatch } from "../log/log.ts";
import { abortSignal, readOptions } from "./call-options.ts";

export type FeedEvent = {
  readonly seq: number;
  readonly at: number;
  readonly kind: Event["kind"];
  readonly task?: string;
  readonly attempt?: number;
  readonly cause?: number;
  readonly payload: Event;
  readonly payloadHash?: string;
  readonly priorHash: string;
  readonly postHash: string;
};

const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");

export type FeedOptions = { readonly after?: number; readonly follow?: boolean; readonly signal?: AbortSignal };
type Wanted = { readonly after: Seq; readonly follow: boolean; readonly signal?: AbortSignal | undefined };

export function readFeedOptions(given: unknown): Wanted {
  const fields = { after: whole(0), follow: flag, signal: abortSignal };
  const { after = 0, follow = false, signal } = readOptions<FeedOptions>(fields, given);
  return { after: seq(after), follow, signal };
}

/** Events behind `after`: those there are, or, with `follow`, also those to come until the signal fires. */
export async function* readFeed(log: Log, options: Wanted): AsyncGenerator<FeedEvent> {
  let { after } = options;
  // The past is read without payloads; a log that is closed meanwhile ends a follower in silence, as `follow` does.
  for await (const batch of options.follow ? untilClosed(pastOf(log, after)) : pastOf(log, after)) {
    if (options.follow && options.signal?.aborted === true) return;
    yield* eventsOf(batch, after);
    after = seq(batch.firstSeq + batch.records.length - 1);
  }
  if (!options.follow) return;
  for await (const batch of log.follow(after, options.signal)) yield* eventsOf(batch, after);
}

const pastOf = (log: Log, after: Seq): AsyncIterable<ReadBatch> => log.read(after, { beside: false });

async function* untilClosed(batches: AsyncIterable<ReadBatch>): AsyncGenerator<ReadBatch> {
  try {
    yield* batches;
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "closed") throw error;
  }
}

function* eventsOf(batch: ReadBatch, after: Seq): Generator<FeedEvent> {
  let prior = hex(batch.priorHash);
  for (const [index, { bytes }] of batch.records.entries()) {
    const at = seq(batch.firstSeq + index);
    const post = hex(batch.hashes[index] as Uint8Array);
    if (at > after) {
      const { event, cause } = decodeEvent(bytes, at);
      yield envelope(event, cause, at, prior, post);
    }
    prior = post;
  }
}

function envelope(event: Event, cause: Seq | null, at: Seq, priorHash: string, postHash: string): FeedEvent {
  const task = taskOf(event);
  const hash = event.kind === "task-submitted" ? event.bodyHash : event.kind === "task-done" ? event.resultHash : null;
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
  };
}
