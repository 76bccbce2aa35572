import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { type BodyRead, readBody } from "./request-body.ts";
import { createUnfinishedBodies } from "./unfinished-bodies.ts";

test("a body in pieces of one byte is held in one buffer, and all of that buffer counts", async () => {
  const bodies = createUnfinishedBodies({ bodyBytesMax: 100_000 });
  const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
  const request = Object.assign(new PassThrough(), { headers });
  const read = Promise.withResolvers<BodyRead>();
  readBody(request as unknown as IncomingMessage, { bodyLimit: 10_000, bodies }, read.resolve);
  const text = JSON.stringify("x".repeat(4998));
  for (const byte of Buffer.from(text)) request.emit("data", Buffer.of(byte));
  assert.equal(bodies.bytes(), 8192);
  request.end();
  assert.deepEqual(await read.promise, { ok: true, value: JSON.parse(text) });
  assert.equal(bodies.bytes(), 0);
});
