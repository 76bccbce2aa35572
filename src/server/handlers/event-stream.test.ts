import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { Writable } from "node:stream";
import { test } from "node:test";
import { handTimers } from "../../../test/kits/hand-timers.ts";
import type { Drover } from "../../engine/drover.ts";
import type { FeedEvent } from "../../engine/feed.ts";
import { ServerRefusal } from "../../http/problem.ts";
import { createUnreadAnswers } from "../../http/unread-answers.ts";
import { createEventStreams } from "./event-stream.ts";

/** A connection that takes what it is given only when the test says so. */
function connection(): {
  response: ServerResponse;
  raw: Writable;
  taken: () => string;
  take: () => void;
  head: string[];
} {
  const chunks: string[] = [];
  const head: string[] = [];
  let waiting: (() => void) | null = null;
  const raw = Object.assign(
    new Writable({
      ...{ highWaterMark: 1000, decodeStrings: false },
      write(chunk: string, _encoding, done) {
        chunks.push(chunk);
        waiting = done;
      },
    }),
    { writeHead: (status: number) => head.push(String(status)) },
  );
  const take = (): void => {
    const done = waiting;
    waiting = null;
    done?.();
  };
  return { response: raw as unknown as ServerResponse, raw, taken: () => chunks.join(""), take, head };
}

/** A log of endless events, which counts how many were read from it. */
function endless(): { drover: Pick<Drover, "events">; read: () => number } {
  let count = 0;
  async function* events({
    after = 0,
    signal,
  }: {
    after?: number;
    signal?: AbortSignal;
  } = {}): AsyncGenerator<FeedEvent> {
    for (let seq = after + 1; signal?.aborted !== true; seq++) {
      // A stream that does not wait for its reader would read for ever.
      if (++count > 10_000) throw new Error("far too much was read");
      yield { seq, at: 0, kind: "engine-started", payload: {}, priorHash: "", postHash: "" } as unknown as FeedEvent;
    }
  }
  return { drover: { events }, read: () => count };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const limits = { streamsMax: 2, heartbeatMs: 15_000, stallMs: 30_000 };
const unread = createUnreadAnswers({ unreadBytesMax: 1_000_000 });
const fail = (error: unknown): void => assert.fail(String(error));

test("no more is read from the log than the reader takes", async () => {
  const { drover, read } = endless();
  const timers = handTimers();
  const streams = createEventStreams({ unread, drover, limits, timers, onProblem: fail });
  const { response, raw, take } = connection();
  streams.open({ response, holder: "ann" }, 0, () => true);
  for (let round = 0; round < 20; round++) await turn();
  const first = read();
  assert.ok(first < 20, `${first} events were read for a reader that takes nothing`);
  for (let round = 0; round < 20; round++) {
    take();
    await turn();
  }
  assert.ok(read() > first);
  assert.ok(raw.writableLength < 2500, `${raw.writableLength} bytes wait`);
  raw.destroy();
  await turn();
  assert.equal(streams.count(), 0);
});

test("a reader that takes nothing for a while is cut off, and its timers go with it", async () => {
  const { drover } = endless();
  const timers = handTimers();
  const streams = createEventStreams({ unread, drover, limits, timers, onProblem: fail });
  const { response, raw } = connection();
  streams.open({ response, holder: "ann" }, 0, () => true);
  for (let round = 0; round < 20; round++) await turn();
  timers.advance(limits.stallMs - 1);
  assert.ok(!raw.destroyed);
  timers.advance(1);
  await turn();
  assert.ok(raw.destroyed);
  assert.equal(streams.count(), 0);
  assert.equal(timers.count(), 0);
});

test("each message has the event's number as its id and goes on behind the last one seen", async () => {
  const { drover } = endless();
  const streams = createEventStreams({ unread, drover, limits, timers: handTimers(), onProblem: fail });
  const { response, raw, taken, take, head } = connection();
  streams.open({ response, holder: "ann" }, 41, ({ seq }) => seq % 2 === 0);
  for (let round = 0; round < 5; round++) {
    take();
    await turn();
  }
  assert.deepEqual(head, ["200"]);
  assert.match(taken(), /^retry: 1000\n\nid: 42\nevent: engine-started\ndata: \{"seq":42,.*\}\n\nid: 44\n/);
  raw.destroy();
});

test("a heartbeat is a comment, and does not add to what a slow reader has not taken", async () => {
  const timers = handTimers();
  async function* events({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<FeedEvent> {
    await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  }
  const streams = createEventStreams({ unread, drover: { events }, limits, timers, onProblem: fail });
  const { response, raw, taken, take } = connection();
  streams.open({ response, holder: "ann" }, 0, () => true);
  take();
  timers.advance(limits.heartbeatMs);
  take();
  timers.advance(limits.heartbeatMs);
  assert.equal(taken(), "retry: 1000\n\n:\n\n:\n\n");
  for (let beat = 0; beat < 10_000; beat++) timers.advance(limits.heartbeatMs);
  assert.ok(raw.writableLength < 1100, `${raw.writableLength} bytes wait`);
  raw.destroy();
});

test("there are so many readers and no more, and all end with a comment when the server stops", async () => {
  const timers = handTimers();
  async function* events({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<FeedEvent> {
    await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  }
  const streams = createEventStreams({ unread, drover: { events }, limits, timers, onProblem: fail });
  const readers = [connection(), connection()];
  for (const { response, take } of readers) {
    streams.open({ response, holder: "ann" }, 0, () => true);
    take();
  }
  assert.throws(
    () => streams.open({ response: connection().response, holder: "bob" }, 0, () => true),
    (error) => error instanceof ServerRefusal && error.code === "overloaded",
  );
  await streams.close();
  assert.equal(streams.count(), 0);
  for (const { taken } of readers) assert.match(taken(), /: the server stops; come back with Last-Event-ID\n\n$/);
});

test("a reader that hung up before its stream was opened leaves nothing behind", async () => {
  const { drover, read } = endless();
  const timers = handTimers();
  const streams = createEventStreams({ unread, drover, limits, timers, onProblem: fail });
  for (let reader = 0; reader <= limits.streamsMax; reader++) {
    const { response, raw, head } = connection();
    raw.destroy();
    await turn();
    streams.open({ response, holder: "ann" }, 0, () => true);
    assert.deepEqual(head, []);
  }
  assert.equal(streams.count(), 0);
  assert.equal(timers.count(), 0);
  assert.equal(read(), 0);
});
