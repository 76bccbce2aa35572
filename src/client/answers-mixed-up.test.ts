/**
 * An answer that is not the one to its request, or is none, ends the connection it came over.
 */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { names, serves, story, submitted, together } from "../../test/kits/gather-story.ts";
import type { Step } from "../../test/kits/script-server.ts";
import { within } from "../../test/kits/waits.ts";
import { createClient } from "./client.ts";
import type { ClientError } from "./client-error.ts";
import type { Fetched } from "./fetch.ts";

const failed = (promise: Promise<unknown>): Promise<ClientError> =>
  promise.then(
    () => assert.fail("it did not fail"),
    (error: ClientError) => error,
  );

/** From its first bulk on each connection brings every answer once more, and so one late. */
function shifts(mixedUp: Promise<unknown>[]): Step {
  const last = new WeakMap<object, Step>();
  return (response, heard) => {
    const { "drover-bulk": place } = heard.headers;
    const socket = response.socket as Socket;
    const own: Step = (to) => {
      if (place !== undefined) to.setHeader("drover-bulk", place);
      serves()(to, heard);
    };
    const before = last.get(socket);
    if (place !== undefined || before !== undefined) last.set(socket, own);
    if (before !== undefined) mixedUp.push(once(socket, "close"));
    (before ?? own)(response, heard);
  };
}

for (const how of ["plain connections", "node:http"])
  test(`the answer to another request is none, and ends its connection: ${how}`, async () => {
    const heard = (): void => {};
    const started = "http.client.request.start";
    if (how === "node:http") subscribe(started, heard);
    try {
      const mixedUp: Promise<unknown>[] = [];
      await story([shifts(mixedUp)], async ({ client, rests }) => {
        for (let round = 0; round < 6; round++) {
          const ids = names(3).map((id) => `${id}-${round}`);
          assert.deepEqual(await together(client, ids), ids.map(submitted));
        }
        assert.ok(rests.length > 0, "some were lost by it");
        await within("the end of each connection", Promise.all(mixedUp));
      });
    } finally {
      unsubscribe(started, heard);
    }
  });

/** With an answer that ends its connection only as a method. */
class OwnFetched implements Fetched {
  readonly status = 200;
  readonly headers = { get: () => null };
  readonly body = null;
  private readonly closed: () => void;
  constructor(closed: () => void) {
    this.closed = closed;
  }
  text = async (): Promise<string> => "no JSON";
  close(): void {
    this.closed();
  }
}

test("the answer to another request is left unread: a fetch of the program's own that cannot close", async () => {
  const left = Promise.withResolvers<void>();
  const begun = { start: (body: ReadableStreamDefaultController) => body.enqueue(new Uint8Array(1)) };
  const mixedUp = (): Response =>
    new Response(new ReadableStream({ ...begun, cancel: () => left.resolve() }), { headers: { "drover-bulk": "x 1" } });
  const client = createClient({ url: "http://127.0.0.1:9", retries: 0, fetch: async () => mixedUp() });
  assert.equal((await failed(client.task("t"))).code, "network");
  await within("the end of the answer", left.promise);
});

test("an answer that cannot be read ends its connection: a fetch of the program's own", async () => {
  let closed = 0;
  const client = createClient({ url: "http://127.0.0.1:9", fetch: async () => new OwnFetched(() => closed++) });
  assert.equal((await failed(client.task("t"))).code, "bad_answer");
  assert.equal(closed, 1);
});

for (const how of ["plain connections", "node:http"])
  test(`an answer that cannot be read ends its connection: ${how}`, async () => {
    const onStart = (): void => {};
    const started = "http.client.request.start";
    if (how === "node:http") subscribe(started, onStart);
    try {
      const sockets = new Set<unknown>();
      const unreadable: Step = (response) => {
        sockets.add(response.socket);
        response.end("no JSON");
      };
      await story([unreadable], async ({ client }) => {
        for (const id of names(3)) assert.equal((await failed(client.task(id))).code, "bad_answer");
      });
      assert.equal(sockets.size, 3);
    } finally {
      unsubscribe(started, onStart);
    }
  });
