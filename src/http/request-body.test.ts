import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { ServerRefusal } from "./problem.ts";
import { type BodyRead, readBody, readJsonBody } from "./request-body.ts";
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
  assert.deepEqual(await read.promise, { ok: true, value: JSON.parse(text), bytes: Buffer.from(text) });
  assert.equal(bodies.bytes(), 0);
});

test("what a node has added does not count, and the limit that is named is the one that was set", () => {
  const limits = { bodyLimit: 10, addedBytesMax: 5, bodies: createUnfinishedBodies({ bodyBytesMax: 100 }) };
  for (const [length, isRefused] of [
    [15, false],
    [16, true],
  ] as const) {
    const headers = { "content-type": "application/json", "content-length": String(length) };
    const request = Object.assign(new PassThrough(), { headers });
    const read: BodyRead[] = [];
    readBody(request as unknown as IncomingMessage, limits, (one) => read.push(one));
    const refusals = read.map((one) => (one.ok ? null : (one.error as ServerRefusal).details));
    assert.deepEqual(refusals, isRefused ? [{ bodyLimit: 10 }] : []);
  }
});

for (const [whose, isOwnLimit, said] of [
  ["that of the setting by its name", false, "the body is larger than server.bodyLimit, which is 10 bytes"],
  ["one of its own without that name", true, "the body is larger than the 10 bytes it may have"],
] as const)
  test(`the refusal of a body that is too large says its limit, ${whose}`, () => {
    const headers = { "content-type": "application/json" };
    for (const sent of [
      { ...headers, "content-length": "11" },
      { ...headers, "transfer-encoding": "chunked" },
    ]) {
      const request = Object.assign(new PassThrough(), { headers: sent });
      const limits = { bodyLimit: 10, isOwnLimit, bodies: createUnfinishedBodies({ bodyBytesMax: 100 }) };
      const read: BodyRead[] = [];
      readBody(request as unknown as IncomingMessage, limits, (one) => read.push(one));
      request.emit("data", Buffer.alloc(11));
      assert.deepEqual(
        read.map((one) => !one.ok && (one.error as ServerRefusal).message),
        [said],
      );
    }
  });

const rows: [text: string, error: RegExp][] = [
  ["{", /not JSON: Expected property name or '\}' in JSON at position 1 \(line 1 column 2\)$/],
  ["[1,\n 2\n 3]", /after array element in JSON at position 8 \(line 3 column 2\)$/],
  ["{} {}", /after JSON at position 3 \(line 1 column 4\)$/],
  ['["', /Unterminated string in JSON at position 2 \(line 1 column 3\)$/],
  ["[1,]", /not JSON: Unexpected token '\]'$/],
  ['{"token": sk-secret}', /not JSON: Unexpected token 's'$/],
  [
    `{"some": "more text before it", "token":\n sk-secret, "b": "more text behind it"}`,
    /not JSON: Unexpected token 's'$/,
  ],
];
for (const [text, error] of rows)
  test(`what is wrong with ${JSON.stringify(text)} is said without quoting it`, () => {
    assert.throws(
      () => readJsonBody(Buffer.from(text)),
      (thrown) => {
        assert.ok(thrown instanceof ServerRefusal);
        assert.match(thrown.message, error);
        return true;
      },
    );
  });

test("bytes that are not UTF-8 are refused and not replaced", () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0xaf, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xe2, 0x82],
  ])
    assert.throws(() => readJsonBody(Buffer.from(bytes)), /not UTF-8/);
});

test("a key that is named twice counts as its last, and __proto__ is a key like any other", () => {
  const read = readJsonBody(Buffer.from('{"a":1,"a":2,"__proto__":{"isAdmin":true}}')) as Record<string, unknown>;
  assert.equal(read.a, 2);
  assert.deepEqual(Object.keys(read), ["a", "__proto__"]);
  assert.equal(read.isAdmin, undefined);
  assert.equal(({} as Record<string, unknown>).isAdmin, undefined);
});

test("nothing sent is nothing, not an error", () => assert.equal(readJsonBody(Buffer.alloc(0)), undefined));
