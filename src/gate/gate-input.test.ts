/**
 * Every function of a gate refuses what it cannot mean, and names the field, the value and what is right.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createGate, GateInputError, type PermitGate } from "./index.ts";

type Row = { name: string; call: (gate: PermitGate) => unknown; field: string };
const wrong = (value: unknown): never => value as never;

const rows: Row[] = [
  { name: "T16 0 concurrent", call: () => createGate({ maxConcurrent: 0 }), field: "maxConcurrent" },
  { name: "T16 a window of 0", call: () => createGate({ windowMs: 0 }), field: "windowMs" },
  { name: "T16 0 requests", call: () => createGate({ requests: 0 }), field: "requests" },
  { name: "NaN concurrent", call: () => createGate({ maxConcurrent: Number.NaN }), field: "maxConcurrent" },
  { name: "half a slot", call: () => createGate({ maxConcurrent: 1.5 }), field: "maxConcurrent" },
  { name: "a text as limit", call: () => createGate({ requests: wrong("50") }), field: "requests" },
  { name: "an endless window", call: () => createGate({ windowMs: Number.POSITIVE_INFINITY }), field: "windowMs" },
  {
    name: "an unknown default",
    call: () => createGate({ defaultPriority: wrong("urgent") }),
    field: "defaultPriority",
  },
  { name: "a date that is no function", call: () => createGate({ now: wrong(5) }), field: "now" },
  { name: "a clock that is none", call: () => createGate({ clock: wrong(null) }), field: "clock" },
  { name: "a clock without alarms", call: () => createGate({ clock: wrong({ now: Date.now }) }), field: "clock" },
  { name: "aging in no time", call: () => createGate({ agingPerClassMs: 0 }), field: "agingPerClassMs" },
  { name: "a lease of no time", call: () => createGate({ permitTtlMs: -1 }), field: "permitTtlMs" },
  { name: "a token limit of 0", call: () => createGate({ tokens: { perMinute: 0 } }), field: "tokens.perMinute" },
  { name: "an unknown kind", call: () => createGate({ tokens: { kind: wrong("leaky") } }), field: "tokens.kind" },
  {
    name: "an unknown token limit",
    call: () => createGate({ tokens: wrong({ perWeek: 1 }) }),
    field: "tokens.perWeek",
  },
  { name: "a misspelt option", call: () => createGate(wrong({ maxConcurent: 5 })), field: "maxConcurent" },
  { name: "options that are none", call: () => createGate(wrong("fast")), field: "options" },
  { name: "options null", call: () => createGate(wrong(null)), field: "options" },
  { name: "schedule without id", call: (gate) => gate.schedule(""), field: "id" },
  { name: "schedule a number", call: (gate) => gate.schedule(wrong(7)), field: "id" },
  { name: "schedule an unknown class", call: (gate) => gate.schedule("a", wrong("urgent")), field: "priority" },
  { name: "schedule an inherited class", call: (gate) => gate.schedule("a", wrong("toString")), field: "priority" },
  { name: "acquire without id", call: (gate) => gate.acquire(wrong(undefined)), field: "id" },
  { name: "acquire an unknown class", call: (gate) => gate.acquire("a", { priority: wrong(1) }), field: "priority" },
  { name: "acquire a false signal", call: (gate) => gate.acquire("a", { signal: wrong({}) }), field: "signal" },
  { name: "acquire for no weight", call: (gate) => gate.acquire("a", { weight: 0 }), field: "weight" },
  {
    name: "acquire for a nameless project",
    call: (gate) => gate.acquire("a", { project: wrong(1) }),
    field: "project",
  },
  { name: "acquire negative tokens", call: (gate) => gate.acquire("a", { tokens: -1 }), field: "tokens" },
  { name: "acquire with a class as options", call: (gate) => gate.acquire("a", wrong("high")), field: "options" },
  { name: "acquire with a misspelt option", call: (gate) => gate.acquire("a", wrong({ prio: 1 })), field: "prio" },
  { name: "wait for nobody", call: (gate) => gate.wait(wrong(null)), field: "id" },
  { name: "complete nobody", call: (gate) => gate.complete(wrong({})), field: "id" },
  { name: "complete maybe", call: (gate) => gate.complete("a", { ok: wrong("yes") }), field: "ok" },
  { name: "complete with half a token", call: (gate) => gate.complete("a", { usage: 0.5 }), field: "usage" },
  {
    name: "complete with negative usage",
    call: (gate) => gate.complete("a", { usage: { inputTokens: -1 } }),
    field: "usage.inputTokens",
  },
  {
    name: "complete with unknown usage",
    call: (gate) => gate.complete("a", { usage: wrong({ words: 1 }) }),
    field: "usage.words",
  },
  { name: "cancel nobody", call: (gate) => gate.cancel(wrong(undefined)), field: "id" },
  { name: "a negative rest", call: (gate) => gate.rateLimited(-1), field: "retryAfterMs" },
  { name: "a rest that is no number", call: (gate) => gate.rateLimited(Number.NaN), field: "retryAfterMs" },
  { name: "an endless rest", call: (gate) => gate.rateLimited(Number.POSITIVE_INFINITY), field: "retryAfterMs" },
  { name: "a rest for nobody", call: (gate) => gate.rateLimited(1, ""), field: "id" },
  { name: "withPermit without a function", call: (gate) => gate.withPermit(wrong("a")), field: "call" },
  { name: "withPermit without id", call: (gate) => gate.withPermit(() => 1, { id: "" }), field: "id" },
  {
    name: "withPermit without a try",
    call: (gate) => gate.withPermit(() => 1, { attempts: 0 }),
    field: "attempts",
  },
];

for (const { name, call, field } of rows) {
  test(`${name} is refused`, async () => {
    const isNamed = (error: unknown): boolean => {
      assert.ok(error instanceof GateInputError, String(error));
      assert.equal(error.field, field);
      assert.ok(error.expected.length > 0 && error.message.startsWith(`${field}: got `));
      assert.ok("value" in error);
      return true;
    };
    const gate = createGate({ now: () => 0 });
    await assert.rejects(async () => call(gate), isNamed);
    const { running, queued } = gate.queueState();
    assert.deepEqual({ running, queued }, { running: 0, queued: 0 }, "and nothing has happened");
  });
}

test("a clock that breaks is refused when it is read, and acquire rejects instead of throwing", async () => {
  for (const broken of [Number.NaN, Number.POSITIVE_INFINITY, wrong("now"), wrong(undefined)]) {
    const gate = createGate({ now: () => broken });
    assert.throws(() => gate.schedule("a"), GateInputError);
    await assert.rejects(gate.acquire("a"), GateInputError);
  }
});

test("a clock with fractions, or one that steps back, is read as whole milliseconds that never go back", () => {
  let now = 10.9;
  const gate = createGate({ now: () => now, maxConcurrent: 1 });
  gate.schedule("a");
  now = 3;
  gate.schedule("b");
  now = 15.2;
  const times = gate.queueDetails().map(({ waitMs, runMs }) => [waitMs, runMs]);
  assert.deepEqual(times, [
    [0, 5],
    [5, undefined],
  ]);
});

test("Infinity means no limit", () => {
  const gate = createGate({ maxConcurrent: Number.POSITIVE_INFINITY, requests: Number.POSITIVE_INFINITY });
  for (let index = 0; index < 1000; index++) assert.equal(gate.schedule(`c${index}`).status, "ready");
  gate.close();
});

test("options of a class would be read as none, and are refused by their kind", () => {
  const given = [Promise.resolve({ requests: 1 }), new Map([["requests", 1]]), new Date(0)];
  for (const value of given) {
    const message = `got a ${value.constructor.name}, expected a plain object`;
    assert.throws(() => createGate(wrong(value)), { name: "GateInputError", message: `options: ${message}` });
    assert.throws(() => createGate({ tokens: wrong(value) }), { message: `tokens: ${message}` });
  }
  createGate(Object.assign(Object.create(null), { requests: 1 })).close();
});

test("a list is called a list, and an object an object", () => {
  assert.throws(() => createGate(wrong([])), { message: "options: got a list, expected a plain object" });
  assert.throws(() => createGate({ requests: wrong({}) }), { message: /^requests: got an object, expected/ });
});
