import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { Writable } from "node:stream";
import { test } from "node:test";
import { nextTurn } from "../std/clock.ts";
import { createHandClock } from "../std/hand-clock.ts";
import { ServerRefusal } from "./problem.ts";
import { createStreams, frameOf, type Streams } from "./sse.ts";
import { createUnreadAnswers } from "./unread-answers.ts";

type Feed = Parameters<Streams["open"]>[1];

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

/** Numbers without an end, of which it counts how many were read. */
function endless(from = 1): { feed: Feed; read: () => number } {
  let count = 0;
  async function* items(signal: AbortSignal): AsyncGenerator<unknown> {
    for (let id = from; !signal.aborted; id++) {
      // A stream that does not wait for its reader would read for ever.
      if (++count > 10_000) throw new Error("far too much was read");
      yield id;
    }
  }
  const frame: Feed["frame"] = (id) =>
    (id as number) % 2 === 0 ? frameOf(id as number, "even", "x".repeat(100)) : null;
  return { feed: { items, frame }, read: () => count };
}
const silent: Feed = {
  async *items(signal) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  },
  frame: () => null,
};

const limits = { streamsMax: 2, heartbeatMs: 15_000, stallMs: 30_000 };
const unread = createUnreadAnswers({ unreadBytesMax: 1_000_000 });
const fail = (error: unknown): void => assert.fail(String(error));

test("no more is read from the log than the reader takes", async () => {
  const { feed, read } = endless();
  const clock = createHandClock({ at: 0 });
  const streams = createStreams({ unread, limits, clock, onProblem: fail });
  const { response, raw, take } = connection();
  streams.open({ response, holder: "ann" }, feed);
  for (let round = 0; round < 20; round++) await nextTurn();
  const first = read();
  assert.ok(first < 20, `${first} events were read for a reader that takes nothing`);
  for (let round = 0; round < 20; round++) {
    take();
    await nextTurn();
  }
  assert.ok(read() > first);
  assert.ok(raw.writableLength < 2500, `${raw.writableLength} bytes wait`);
  raw.destroy();
  await nextTurn();
  assert.equal(streams.count(), 0);
});

test("a reader that takes nothing for a while is cut off, and its timers go with it", async () => {
  const { feed } = endless();
  const clock = createHandClock({ at: 0 });
  const streams = createStreams({ unread, limits, clock, onProblem: fail });
  const { response, raw } = connection();
  streams.open({ response, holder: "ann" }, feed);
  for (let round = 0; round < 20; round++) await nextTurn();
  clock.turn(limits.stallMs - 1);
  assert.ok(!raw.destroyed);
  clock.turn(1);
  await nextTurn();
  assert.ok(raw.destroyed);
  assert.equal(streams.count(), 0);
  assert.equal(clock.alarms().length, 0);
});

test("each message has its id and its event, and what the reader does not want is left out", async () => {
  const streams = createStreams({ unread, limits, clock: createHandClock({ at: 0 }), onProblem: fail });
  const { response, raw, taken, take, head } = connection();
  streams.open({ response, holder: "ann" }, endless(41).feed);
  for (let round = 0; round < 5; round++) {
    take();
    await nextTurn();
  }
  assert.deepEqual(head, ["200"]);
  assert.match(taken(), /^retry: 1000\n\nid: 42\nevent: even\ndata: "x+"\n\nid: 44\n/);
  raw.destroy();
});

test("a heartbeat is a comment, and does not add to what a slow reader has not taken", async () => {
  const clock = createHandClock({ at: 0 });
  const streams = createStreams({ unread, limits, clock, onProblem: fail });
  const { response, raw, taken, take } = connection();
  streams.open({ response, holder: "ann" }, silent);
  take();
  clock.turn(limits.heartbeatMs);
  take();
  clock.turn(limits.heartbeatMs);
  assert.equal(taken(), "retry: 1000\n\n:\n\n:\n\n");
  for (let beat = 0; beat < 10_000; beat++) clock.turn(limits.heartbeatMs);
  assert.ok(raw.writableLength < 1100, `${raw.writableLength} bytes wait`);
  raw.destroy();
});

test("there are so many readers and no more, and all end with a comment when the server stops", async () => {
  const clock = createHandClock({ at: 0 });
  const streams = createStreams({ unread, limits, clock, onProblem: fail });
  const readers = [connection(), connection()];
  for (const { response, take } of readers) {
    streams.open({ response, holder: "ann" }, silent);
    take();
  }
  assert.throws(
    () => streams.open({ response: connection().response, holder: "bob" }, silent),
    (error) => error instanceof ServerRefusal && error.code === "overloaded",
  );
  await streams.close();
  assert.equal(streams.count(), 0);
  for (const { taken } of readers) assert.match(taken(), /: this stream ends here; come back with Last-Event-ID\n\n$/);
});

test("a reader that hung up before its stream was opened leaves nothing behind", async () => {
  const { feed, read } = endless();
  const clock = createHandClock({ at: 0 });
  const streams = createStreams({ unread, limits, clock, onProblem: fail });
  for (let reader = 0; reader <= limits.streamsMax; reader++) {
    const { response, raw, head } = connection();
    raw.destroy();
    await nextTurn();
    streams.open({ response, holder: "ann" }, feed);
    assert.deepEqual(head, []);
  }
  assert.equal(streams.count(), 0);
  assert.equal(clock.alarms().length, 0);
  assert.equal(read(), 0);
});
