import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { answers, neverAnswers, type Step, startScript, streams } from "../../test/kits/script-server.ts";
import { fewTurns, isPending, within } from "../../test/kits/waits.ts";
import type { EventJson } from "../protocol/index.ts";
import { createClient } from "./client.ts";
import { ClientError } from "./client-error.ts";

const message = (seq: number): string =>
  `id: ${seq}\nevent: task-submitted\ndata: ${JSON.stringify({ seq, kind: "task-submitted", note: "für 😀" })}\n\n`;
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Reads until so many events have come, or it ends. */
async function follow(steps: readonly Step[], count: number, after = 0, silenceMs = 5000) {
  await using server = await startScript(...steps);
  const rests: number[] = [];
  const client = createClient({ url: server.url, rest: async (ms) => void rests.push(ms) });
  const seen: EventJson[] = [];
  for await (const event of client.events({ after, silenceMs, reconnects: 3 })) {
    seen.push(event);
    if (seen.length >= count) break;
  }
  const asked = server.heard.map(({ url, headers }) => `${url} ${headers["last-event-id"]}`);
  return { seqs: seen.map(({ seq }) => seq), asked, rests };
}

test("a stream that is cut in the middle of an event goes on behind the last whole one", async () => {
  const half = bytesOf(message(3)).slice(0, 40);
  const { seqs, asked } = await follow(
    [streams([message(1), message(2), half], "cut"), streams([message(3), message(4)], "stay")],
    4,
  );
  assert.deepEqual(seqs, [1, 2, 3, 4]);
  assert.deepEqual(asked, ["/events?after=0 0", "/events?after=2 2"]);
});

test("a server that repeats what was seen is read without repeats", async () => {
  const { seqs } = await follow(
    [streams([message(1), message(2)], "end"), streams([message(1), message(2), message(3)], "stay")],
    3,
  );
  assert.deepEqual(seqs, [1, 2, 3]);
});

test("it begins behind the event that was asked for", async () => {
  const { asked } = await follow([streams([message(8)], "stay")], 1, 7);
  assert.deepEqual(asked, ["/events?after=7 7"]);
});

test("a connection that falls silent is given up and opened again; heartbeats are not events", async () => {
  const { seqs, asked } = await follow(
    [neverAnswers, streams([": heartbeat\n\n", message(1)], "stay"), streams([message(2)], "stay")],
    2,
    0,
    1000,
  );
  assert.deepEqual(seqs, [1, 2]);
  assert.ok(asked.length >= 3, asked.join());
});

test("refusals that pass are sat out, with growing rests; others are told", async () => {
  const busy = answers(503, { error: "busy", code: "overloaded", retryable: true }, { "retry-after": "2" });
  const { seqs, rests } = await follow([busy, busy, streams([message(1)], "stay")], 1);
  assert.deepEqual(seqs, [1]);
  assert.ok(
    rests.every((ms) => ms >= 2000),
    String(rests),
  );
  await assert.rejects(
    follow([answers(403, { error: "not yours", code: "forbidden" })], 1),
    (error) => error instanceof ClientError && error.code === "forbidden",
  );
});

test("a server that stays away is given up after so many tries in a row", async () => {
  await assert.rejects(
    follow([(response) => response.destroy()], 1),
    (error) => error instanceof ClientError && error.code === "network",
  );
});

test("streams that end by themselves and bring nothing are opened again so often, and no more", async () => {
  await using server = await startScript(streams([], "end"));
  let before = 0;
  for (const reconnects of [0, 3]) {
    const client = createClient({ url: server.url, rest: async () => {} });
    const ended = { code: "network", message: `the stream of events of ${server.url} has ended` };
    await assert.rejects(client.events({ reconnects }).next(), ended);
    assert.equal(server.heard.length - before, 1 + reconnects);
    before = server.heard.length;
  }
});

test("a stream that lived for a while before it ended was a good one, though nothing happened meanwhile", async (t) => {
  let now = performance.now();
  t.mock.method(performance, "now", () => now);
  const quiet: Step = (...given) => {
    now += 1500;
    streams([], "end")(...given);
  };
  await using server = await startScript(quiet, quiet, quiet, streams([message(1)], "stay"));
  const client = createClient({ url: server.url, rest: async () => {} });
  for await (const { seq } of client.events({ reconnects: 1 })) {
    assert.equal(seq, 1);
    break;
  }
  assert.equal(server.heard.length, 4);
});

test("a reader that takes its time with an event is no silence of the server", async (t) => {
  const begun: ServerResponse[] = [];
  await using server = await startScript((response, heard) => {
    begun.push(response);
    streams([message(begun.length)], "stay")(response, heard);
  });
  const client = createClient({ url: server.url });
  const seen: number[] = [];
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const events = client.events({ silenceMs: 600_000, reconnects: 0 });
  for await (const { seq } of events) {
    seen.push(seq);
    if (seen.length === 2) break;
    t.mock.timers.tick(599_999);
    setImmediate(async () => {
      await fewTurns();
      t.mock.timers.tick(599_999);
      begun[0]?.write(message(2));
    });
  }
  assert.deepEqual(seen, [1, 2]);
  assert.equal(server.heard.length, 1);
});

test("a connection whose reader stays at an event is let go, and opened again when that comes back", async (t) => {
  const closed = Promise.withResolvers<void>();
  const first: Step = (response, heard) => {
    response.on("close", closed.resolve);
    streams([message(1) + message(2)], "stay")(response, heard);
  };
  await using server = await startScript(first, streams([message(3)], "stay"));
  const rests: number[] = [];
  const client = createClient({ url: server.url, rest: async (ms) => void rests.push(ms) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const events = client.events({ silenceMs: 1000, reconnects: 0 });
  const next = async (): Promise<unknown> => (await events.next()).value?.seq;
  assert.equal(await next(), 1);
  t.mock.timers.tick(999);
  assert.ok(await isPending(closed.promise));
  t.mock.timers.tick(1);
  await within("the end of the connection", closed.promise);
  assert.deepEqual([await next(), await next()], [2, 3]);
  await events.return(undefined);
  assert.deepEqual(
    server.heard.map(({ headers }) => headers["last-event-id"]),
    ["0", "2"],
  );
  assert.deepEqual(rests, [], "it counts as no failure");
});

test("the caller's signal ends the stream without an error", async () => {
  await using server = await startScript(streams([message(1)], "stay"));
  const stop = new AbortController();
  const seen: number[] = [];
  for await (const { seq } of createClient({ url: server.url }).events({ signal: stop.signal })) {
    seen.push(seq);
    stop.abort();
  }
  assert.deepEqual(seen, [1]);
});

test("a page is asked for as JSON", async () => {
  await using server = await startScript(answers(200, { events: [], nextAfter: 5 }));
  assert.deepEqual(await createClient({ url: server.url }).eventPage({ after: 3, limit: 2 }), {
    events: [],
    nextAfter: 5,
  });
  assert.equal(server.heard[0]?.url, "/events?after=3&limit=2");
  assert.equal(server.heard[0]?.headers.accept, "application/json");
});

/** The events of a stream that comes in these pieces, once. */
async function eventsOf(pieces: Iterable<Uint8Array>): Promise<string[]> {
  const fetch = async (): Promise<Response> =>
    new Response(ReadableStream.from(pieces), { headers: { "content-type": "text/event-stream" } });
  const client = createClient({ url: "http://127.0.0.1", fetch, rest: () => Promise.reject(new Error("the end")) });
  const seen: string[] = [];
  const read = async (): Promise<void> => {
    for await (const event of client.events()) seen.push(JSON.stringify(event));
  };
  await assert.rejects(read(), /the end/);
  return seen;
}

test("however the bytes are cut, the events are the same; a message without an id or its end is none", async () => {
  const none = ": comment\n\ndata: {}\n\nid\ndata: {}\n\n";
  const bytes = bytesOf(`${message(1)}${none}${message(2).replaceAll("\n", "\r\n")}id: 3\ndata: {}`);
  const whole = await eventsOf([bytes]);
  assert.equal(whole.length, 2);
  const cuts = fc.array(fc.nat(bytes.length), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(cuts, async (places) => {
      const ends = [0, ...places.toSorted((one, other) => one - other), bytes.length];
      const pieces = ends.slice(1).map((end, index) => bytes.slice(ends[index], end));
      assert.deepEqual(await eventsOf(pieces), whole);
    }),
  );
});

test("a message without end breaks the connection instead of being held for ever", async () => {
  const piece = new Uint8Array(8 * 1024 * 1024).fill(97);
  let given = 0;
  function* pieces(): Generator<Uint8Array> {
    for (; given < 10; given++) yield piece;
  }
  assert.deepEqual(await eventsOf(pieces()), []);
  assert.ok(given < 5, `${given} pieces of 8 MiB were taken`);
});
