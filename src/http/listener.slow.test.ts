/**
 * Where a listener listens.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { CONNECTION_LIMITS, createListener } from "./listener.ts";

async function canBind(host: string): Promise<boolean> {
  const server = createServer();
  server.listen({ host, port: 0 });
  try {
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

test("as localhost it is reached under every address that the name has, on one port", async () => {
  const addresses = ["127.0.0.1", "127.0.0.2"];
  const resolve = async () => addresses.map((address) => ({ address }));
  const listener = createListener(CONNECTION_LIMITS, (_request, response) => void response.end("here"), resolve);
  const { port } = await listener.listen("localhost", 0);
  for (const address of addresses)
    if (await canBind(address)) assert.equal(await (await fetch(`http://${address}:${port}`)).text(), "here", address);
  listener.closeAllConnections();
  await listener.close();
});

test("a port that is taken is an error, and nothing listens", async () => {
  const first = createListener(CONNECTION_LIMITS, () => {});
  const { port } = await first.listen("127.0.0.1", 0);
  const second = createListener(CONNECTION_LIMITS, () => {});
  await assert.rejects(second.listen("127.0.0.1", port), { code: "EADDRINUSE" });
  assert.equal(second.servers.length, 0);
  await second.close();
  await first.close();
});
