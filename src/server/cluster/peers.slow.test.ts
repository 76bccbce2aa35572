import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { realClock } from "../../std/index.ts";
import { createPeers } from "./peers.ts";

test("a request over a kept connection leaves nothing at it", async (context) => {
  const server = createServer((request, response) => {
    request.resume();
    response.end("ok");
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const peers = createPeers(realClock);
  context.after(() => {
    peers.close();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ports = new Set<number | undefined>();
  const left: number[] = [];
  for (let times = 0; times < 20; times++) {
    const { signal } = new AbortController();
    const answer = await peers.ask({ base, path: "/", method: "POST", headers: {}, body: Buffer.from("x"), signal });
    ports.add(answer.socket.localPort);
    left.push(answer.socket.listenerCount("connect"));
    await new Promise((resolve) => answer.once("close", resolve).resume());
  }
  assert.ok(ports.size < 20, "connections were kept");
  assert.deepEqual(left, Array(20).fill(0));
});
