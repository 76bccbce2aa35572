import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { createClient } from "../../client/index.ts";
import { failureKind, wireOf } from "./wire.ts";

const SYNC = { assignments: [], cancel: [], results: [], leaseUntil: "2026-01-01T00:00:00.000Z", leaseMs: 1000 };

/** What a sync is that is answered so. */
function heard(answer: unknown, n = 1): Promise<unknown> {
  const fetch = async (): Promise<Response> => Response.json(answer);
  return wireOf(createClient({ url: "http://127.0.0.1:1", fetch })).sync("ann", "{}", 1000, 500, n);
}

test("an answer whose attempts have no proper name is no answer: nothing is begun or named by it", async () => {
  const right = { taskId: "a", attempt: 1 };
  for (const list of ["assignments", "cancel", "results"] as const) {
    await heard({ ...SYNC, [list]: [right] });
    for (const wrong of [null, 1, { taskId: "a" }, { attempt: 1 }, { ...right, taskId: 7 }, { ...right, attempt: "1" }])
      await assert.rejects(heard({ ...SYNC, [list]: [right, wrong] }), { code: "bad_answer" }, JSON.stringify(wrong));
    await assert.rejects(heard({ ...SYNC, [list]: {} }), { code: "bad_answer" });
  }
  for (const wrong of [null, [], { ...SYNC, logs: 1 }]) await assert.rejects(heard(wrong), { code: "bad_answer" });
});

/** What a sync that is refused so is to its connection. */
async function kindOf(status: number, body: string): Promise<unknown> {
  const fetch = async (): Promise<Response> => new Response(body, { status });
  const wire = wireOf(createClient({ url: "http://127.0.0.1:1", fetch }));
  return failureKind(await wire.sync("ann", "{}", 1000, 500, 1).catch((error: unknown) => error));
}

test("only the server's own word is about a session or a result; in all others it is away", async () => {
  const own: readonly [status: number, code: string, kind: string][] = [
    [400, "bad_request", "refused"],
    [413, "too_large", "refused"],
    [404, "not_found", "lost"],
    [409, "session_lost", "lost"],
    [409, "stale_sync", "late"],
    [415, "unsupported_media_type", "away"],
    [408, "bad_request", "away"],
    [431, "bad_request", "away"],
    [503, "overloaded", "away"],
  ];
  for (const [status, code, kind] of own) {
    assert.equal(await kindOf(status, JSON.stringify({ error: "no", code })), kind, `${status} ${code}`);
    assert.equal(await kindOf(status, "<html>no</html>"), "away", `a foreign ${status}`);
    assert.equal(await kindOf(status, JSON.stringify({ error: "no", code: "SomeGateway" })), "away");
  }
  assert.equal(await kindOf(401, "<html>no</html>"), "denied");
});

test("the answer to another sync is none; a server that says no number is believed", async () => {
  await heard({ ...SYNC, n: 7 }, 7);
  await heard(SYNC, 7);
  await assert.rejects(heard({ ...SYNC, n: 6 }, 7), { code: "bad_answer" });
});

test("where an answer comes twice its connection is ended, and the next sync is answered by its own", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let late = "";
    socket.on("data", (text) => {
      const body = JSON.stringify({ ...SYNC, n: JSON.parse(String(text).split("\r\n\r\n")[1] ?? "").n });
      const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
      const own = `${head}content-length: ${body.length}\r\n\r\n${body}`;
      // The first of each connection comes twice: once more when the next is asked for.
      socket.write(late === "" ? own : late);
      late = own;
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = createClient({ url: `http://127.0.0.1:${port}` });
  const wire = wireOf(client);
  const sync = (n: number): Promise<unknown> => wire.sync("ann", JSON.stringify({ n }), 5000, 4000, n);
  await sync(1);
  await assert.rejects(sync(2), { code: "bad_answer" });
  await sync(3);
  assert.equal(sockets.length, 2);
  await client.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});
