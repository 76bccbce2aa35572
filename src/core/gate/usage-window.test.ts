/**
 * Windows as stories, both sides of every edge, and the sliding one against a plain list of everything ever recorded.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createWindow, limitWindow, RollingSum, type WindowOptions, windowFromFacts } from "./usage-window.ts";

const RUNS = { numRuns: process.env.DROVER_QUICK === "1" ? 200 : 2000 };

type Row = {
  name: string;
  window: WindowOptions;
  records: [amount: number, at: number][];
  at: number;
  gives: { used: number; exceeded: boolean; untilReset: number };
};

const sliding = (max: number): WindowOptions => ({ kind: "sliding", max, windowMs: 1000 });
const fixed = (max: number): WindowOptions => ({ kind: "fixed", max, windowMs: 1000 });

const rows: Row[] = [
  {
    name: "a sliding window nobody used is open",
    window: sliding(1),
    records: [],
    at: 5,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "one below max is not exceeded",
    window: sliding(3),
    records: [[2, 0]],
    at: 1,
    gives: { used: 2, exceeded: false, untilReset: 0 },
  },
  {
    name: "max itself is exceeded",
    window: sliding(3),
    records: [[3, 0]],
    at: 1,
    gives: { used: 3, exceeded: true, untilReset: 999 },
  },
  {
    name: "T9 one millisecond before the edge the wait is one millisecond, not none",
    window: sliding(1),
    records: [[1, 0]],
    at: 999,
    gives: { used: 1, exceeded: true, untilReset: 1 },
  },
  {
    name: "T9 at the edge it is over",
    window: sliding(1),
    records: [[1, 0]],
    at: 1000,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "T10 the wait is for the sample whose expiry brings the use below max, not for the oldest",
    window: sliding(3),
    records: [
      [1, 0],
      [1, 100],
      [1, 200],
      [2, 300],
    ],
    at: 400,
    gives: { used: 5, exceeded: true, untilReset: 800 },
  },
  {
    name: "an amount above max is exceeded until it has gone",
    window: sliding(3),
    records: [[50, 0]],
    at: 10,
    gives: { used: 50, exceeded: true, untilReset: 990 },
  },
  {
    name: "Q10 a burst at the edge of a sliding window still counts",
    window: sliding(10),
    records: [
      [10, 999],
      [0, 1000],
    ],
    at: 1000,
    gives: { used: 10, exceeded: true, untilReset: 999 },
  },
  {
    name: "Q10 a fixed window forgets the burst at its edge, which is why it is only used on request",
    window: fixed(10),
    records: [
      [1, 0],
      [9, 999],
    ],
    at: 1000,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "Q11 a fixed window is never exceeded with nothing to wait for: just before",
    window: fixed(1),
    records: [[1, 0]],
    at: 999,
    gives: { used: 1, exceeded: true, untilReset: 1 },
  },
  {
    name: "Q11 a fixed window is never exceeded with nothing to wait for: at the edge",
    window: fixed(1),
    records: [[1, 0]],
    at: 1000,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "Q12 a window that started at instant 0 has started",
    window: fixed(5),
    records: [[1, 0]],
    at: 400,
    gives: { used: 1, exceeded: false, untilReset: 600 },
  },
  {
    name: "Q12 a fixed window nobody used has not started",
    window: fixed(5),
    records: [],
    at: 400,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "a fixed window tells its boundary also below max",
    window: fixed(5),
    records: [[1, 100]],
    at: 300,
    gives: { used: 1, exceeded: false, untilReset: 800 },
  },
  {
    name: "a fixed window restarts at the first record after its end, not at the end",
    window: fixed(5),
    records: [
      [4, 0],
      [2, 1500],
    ],
    at: 1600,
    gives: { used: 2, exceeded: false, untilReset: 900 },
  },
  {
    name: "a record in the very last millisecond belongs to the old fixed window",
    window: fixed(5),
    records: [
      [4, 0],
      [2, 999],
    ],
    at: 999,
    gives: { used: 6, exceeded: true, untilReset: 1 },
  },
  {
    name: "recording nothing does not start a fixed window",
    window: fixed(5),
    records: [[0, 0]],
    at: 10,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "buckets expire late: the record at 3 lives as long as one at 9",
    window: { kind: "sliding", max: 1, windowMs: 100, buckets: 10 },
    records: [[1, 3]],
    at: 108,
    gives: { used: 1, exceeded: true, untilReset: 1 },
  },
  {
    name: "buckets expire late, not never",
    window: { kind: "sliding", max: 1, windowMs: 100, buckets: 10 },
    records: [[1, 3]],
    at: 109,
    gives: { used: 0, exceeded: false, untilReset: 0 },
  },
  {
    name: "a clock that steps back stands still",
    window: sliding(5),
    records: [
      [1, 500],
      [1, 400],
    ],
    at: 1499,
    gives: { used: 2, exceeded: false, untilReset: 0 },
  },
];

for (const { name, window: options, records, at, gives } of rows) {
  test(name, () => {
    const window = createWindow(options);
    for (const [amount, when] of records) window.record(amount, when);
    const seen = { used: window.used(at), exceeded: window.exceeded(at), untilReset: window.untilReset(at) };
    assert.deepEqual(seen, gives);
  });
}

test("limit names give their windows", () => {
  assert.deepEqual([limitWindow("per_minute"), limitWindow("per_hour"), limitWindow("per_day")], [6e4, 36e5, 864e5]);
});

const badCalls: { name: string; call: () => unknown; field: string; value: string }[] = [
  { name: "an unknown limit", call: () => limitWindow("per_week" as never), field: "limit", value: '"per_week"' },
  { name: "no limit", call: () => limitWindow(undefined as never), field: "limit", value: "undefined" },
  { name: "a limit inherited from objects", call: () => limitWindow("toString" as never), field: "limit", value: "to" },
  {
    name: "an unknown kind",
    call: () => createWindow({ ...sliding(1), kind: "tumbling" as never }),
    field: "kind",
    value: "tumbling",
  },
  { name: "no options", call: () => createWindow(undefined as never), field: "options", value: "undefined" },
  { name: "max 0", call: () => createWindow(sliding(0)), field: "max", value: "0" },
  { name: "max NaN", call: () => createWindow(sliding(Number.NaN)), field: "max", value: "NaN" },
  { name: "max below 0", call: () => createWindow(fixed(-1)), field: "max", value: "-1" },
  { name: "max 1.5", call: () => createWindow(fixed(1.5)), field: "max", value: "1.5" },
  { name: "a text as max", call: () => createWindow(fixed("7" as never)), field: "max", value: '"7"' },
  { name: "window 0", call: () => createWindow({ ...sliding(1), windowMs: 0 }), field: "windowMs", value: "0" },
  {
    name: "a fixed window of 0",
    call: () => createWindow({ ...fixed(1), windowMs: 0 }),
    field: "windowMs",
    value: "0",
  },
  {
    name: "window null",
    call: () => createWindow({ ...sliding(1), windowMs: null as never }),
    field: "windowMs",
    value: "null",
  },
  {
    name: "buckets 0",
    call: () => createWindow({ kind: "sliding", max: 1, windowMs: 10, buckets: 0 }),
    field: "buckets",
    value: "0",
  },
  {
    name: "buckets for a fixed window",
    call: () => createWindow({ ...fixed(1), buckets: 5 }),
    field: "buckets",
    value: "5",
  },
  { name: "a negative amount", call: () => createWindow(sliding(1)).record(-1, 0), field: "amount", value: "-1" },
  {
    name: "an amount that is no number",
    call: () => createWindow(sliding(1)).record(Number.NaN, 0),
    field: "amount",
    value: "NaN",
  },
  { name: "half a token", call: () => createWindow(sliding(1)).record(0.5, 0), field: "amount", value: "0.5" },
  { name: "half a millisecond", call: () => createWindow(sliding(1)).record(1, 0.5), field: "now", value: "0.5" },
  {
    name: "no instant",
    call: () => createWindow(sliding(1)).exceeded(undefined as never),
    field: "now",
    value: "undefined",
  },
  {
    name: "an endless instant",
    call: () => createWindow(fixed(1)).untilReset(Number.POSITIVE_INFINITY),
    field: "now",
    value: "Infinity",
  },
  {
    name: "an object as instant",
    call: () => createWindow(fixed(1)).used({} as never),
    field: "now",
    value: "an object",
  },
];

for (const { name, call, field, value } of badCalls) {
  test(`${name} is refused, and the message names the field, the value and what is right`, () => {
    assert.throws(call, (error: Error) => {
      assert.ok(error instanceof TypeError || error instanceof RangeError);
      assert.ok(error.message.startsWith(`${field}: got `), error.message);
      assert.ok(error.message.includes(value), error.message);
      assert.match(error.message, /expected ./);
      return true;
    });
  });
}

const steps = fc.array(fc.tuple(fc.nat(5), fc.nat(60)), { maxLength: 60 });

test("a sliding window agrees with a plain list of all records", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 200 }), (records, max, windowMs) => {
      const window = createWindow({ kind: "sliding", max, windowMs });
      const list: [amount: number, at: number][] = [];
      const naive = (at: number): number =>
        list.reduce((sum, [amount, when]) => sum + (at - when < windowMs ? amount : 0), 0);
      let now = 0;
      for (const [amount, pause] of records) {
        now += pause;
        window.record(amount, now);
        list.push([amount, now]);
        for (const at of [now, now + 1, now + windowMs - 1, now + windowMs]) {
          assert.equal(window.used(at), naive(at));
          let until = 0;
          while (naive(at + until) >= max) until++;
          assert.equal(window.untilReset(at), until);
          assert.equal(window.exceeded(at), until > 0);
        }
      }
    }),
    RUNS,
  );
});

test("a bucketed sum holds at least the exact one, at most what a bucket more would hold, in bounded room", () => {
  fc.assert(
    fc.property(
      steps,
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 10 }),
      (records, windowMs, buckets) => {
        const sum = new RollingSum(windowMs, buckets);
        const exact = new RollingSum(windowMs, null);
        const wider = new RollingSum(windowMs + Math.ceil(windowMs / buckets), null);
        let now = 0;
        for (const [amount, pause] of records) {
          now += pause;
          for (const each of [sum, exact, wider]) each.add(amount, now);
          assert.ok(sum.total(now) >= exact.total(now) && sum.total(now) <= wider.total(now));
          assert.ok(sum.facts().ends.length <= buckets + 2);
          const next = sum.nextExpiry(now);
          assert.equal(next === null, sum.total(now) === 0);
          if (next !== null) assert.ok(sum.total(next) < sum.total(now) && sum.total(next - 1) === sum.total(now));
        }
      },
    ),
    RUNS,
  );
});

test("reading leaves no mark, and facts rebuild a window that goes on alike", () => {
  const kind = fc.constantFrom<WindowOptions>(sliding(9), fixed(9), { ...sliding(9), buckets: 7 });
  fc.assert(
    fc.property(kind, steps, steps, (options, before, after) => {
      const window = createWindow({ ...options, windowMs: 120 });
      let now = 0;
      for (const [amount, pause] of before) {
        now += pause;
        window.record(amount, now);
      }
      const facts = JSON.stringify(window.facts());
      for (const at of [now, now + 60, now + 500]) [window.used(at), window.exceeded(at), window.untilReset(at)];
      assert.equal(JSON.stringify(window.facts()), facts);
      const restored = windowFromFacts(JSON.parse(facts));
      for (const [amount, pause] of after) {
        now += pause;
        window.record(amount, now);
        restored.record(amount, now);
        assert.deepEqual([restored.used(now), restored.untilReset(now)], [window.used(now), window.untilReset(now)]);
        assert.deepEqual(restored.facts(), window.facts());
      }
    }),
    RUNS,
  );
});

test("a million records in one window take one entry per millisecond, and 24 h in 1000 buckets about 1000", () => {
  const exact = new RollingSum(100, null);
  for (let count = 0; count < 1_000_000; count++) exact.add(1, Math.floor(count / 1000));
  assert.equal(exact.total(999), 100_000);
  assert.equal(exact.facts().ends.length, 100);
  const day = new RollingSum(86_400_000, 1000);
  for (let minute = 0; minute < 3 * 1440; minute++) day.add(1, minute * 60_000);
  assert.ok(day.facts().ends.length <= 1001);
  assert.ok(day.total(3 * 86_400_000) >= 1440 && day.total(3 * 86_400_000) <= 1442);
});

test("a smaller window binds at once, and its facts restore", () => {
  const sum = new RollingSum(1000, null);
  sum.add(1, 0);
  sum.add(1, 900);
  sum.resize(100);
  assert.equal(sum.total(950), 1);
  assert.equal(RollingSum.fromFacts(sum.facts()).total(950), 1);
  assert.equal(sum.nextExpiry(950), 1000);
});
