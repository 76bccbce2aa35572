import assert from "node:assert/strict";
import { test } from "node:test";
import { createGrowingBytes } from "./growing-bytes.ts";

test("pieces come back as one, and what is held is what was told, never much more than came", () => {
  const body = createGrowingBytes(100_000);
  let told = 0;
  for (let count = 1; count <= 50_000; count++) {
    told += body.add(Buffer.of(count % 251)) ?? Number.NaN;
    assert.ok(told >= count && told <= Math.max(1024, 2 * count), `${told} for ${count}`);
  }
  assert.equal(told, body.bytes().buffer.byteLength);
  assert.deepEqual(body.bytes(), Buffer.from(Array.from({ length: 50_000 }, (_, at) => (at + 1) % 251)));
});

test("it holds as much as it may and no more", () => {
  const body = createGrowingBytes(10);
  assert.equal(body.add(Buffer.from("123456789")), 10);
  assert.equal(body.add(Buffer.from("ab")), null);
  assert.equal(body.add(Buffer.from("a")), 0);
  assert.equal(body.add(Buffer.from("b")), null);
  assert.equal(body.bytes().toString(), "123456789a");
});
