/**
 * A body without a limit of time for the whole of it: it takes as long as it needs, but not any rate.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { createHandClock } from "../std/hand-clock.ts";
import { isSpared, uploadOf } from "./upload.ts";

const WINDOW_MS = 30_000;
const ENOUGH = Buffer.alloc(240 * 1024);

function request() {
  const body = new PassThrough();
  const socket = new PassThrough();
  const clock = createHandClock({ at: 0 });
  const upload = uploadOf(Object.assign(body, { socket }) as unknown as IncomingMessage, clock);
  return { body, socket, clock, upload };
}

test("a file over a slow line arrives, however long it takes", async () => {
  const { body, socket, clock, upload } = request();
  let came = 0;
  for (let window = 0; window < 200; window++) {
    const next = upload.next();
    body.write(ENOUGH);
    came += (await next).value?.length ?? 0;
    assert.equal(isSpared(socket), true);
    await clock.advance(WINDOW_MS);
  }
  body.end();
  assert.equal((await upload.next()).done, true);
  assert.deepEqual([came, isSpared(socket)], [200 * ENOUGH.length, false]);
});

for (const [what, bytes] of [
  ["nothing", 0],
  ["less than its rate", ENOUGH.length - 1],
] as const)
  test(`one that sends ${what} for a window of time is cut off`, async () => {
    const { body, socket, clock, upload } = request();
    const read = async (): Promise<void> => {
      for await (const _ of upload);
    };
    const cut = assert.rejects(read());
    body.write(ENOUGH);
    await clock.advance(WINDOW_MS);
    assert.equal(body.destroyed, false);
    body.write(Buffer.alloc(bytes));
    await clock.advance(WINDOW_MS);
    await cut;
    assert.deepEqual([body.destroyed, isSpared(socket)], [true, false]);
  });
