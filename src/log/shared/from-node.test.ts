/**
 * A node is asked under the address that was given, also behind something that has it under a path.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { seq } from "../../core/base/index.ts";
import { realClock } from "../../std/index.ts";
import { historyOf, replicaOf } from "./from-node.ts";

test("what an address has behind its port stands before what is asked for", async (context) => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url }, response) => {
    asked.push(url);
    response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not here"}');
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = { token: null, clock: realClock, signal: new AbortController().signal };
  for (const [given, path] of [
    ["", ""],
    ["/", ""],
    ["/fleet", "/fleet"],
    ["/fleet/", "/fleet"],
  ]) {
    const url = `${base}${given}`;
    await assert.rejects(historyOf({ ...node, url }, seq(7)), /says: not here/);
    await assert.rejects(replicaOf({ ...node, url }), /says: not here/);
    assert.deepEqual(asked.splice(0), [`${path}/cluster/log?after=7`, `${path}/cluster/snapshot`]);
  }
});
