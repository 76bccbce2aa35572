/**
 * How much is ever unsigned: never more events, and never more time between them, than the rule allows.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../log/log.ts";
import { createHeadSigning } from "./head-signing.ts";

function open(rule: { events: number; time: number }) {
  const alone: object[] = [];
  const rings: (() => void)[] = [];
  const log = {
    sign: async (told: object) => {
      alone.push(told);
    },
  } as unknown as Log;
  const inForce = { rule };
  const signing = createHeadSigning({
    log,
    rule: () => inForce.rule,
    later: (_, ring) => {
      rings.push(ring);
      return () => rings.pop();
    },
  });
  const isDue = (count: number, at: number): boolean => signing.dueWith({ count, at }) !== null;
  return { isDue, rings, alone, inForce, signing };
}

test("the first batch of a life is signed, then the one that makes it so many events", () => {
  const { isDue } = open({ events: 10, time: 1000 });
  assert.deepEqual(
    [3, 4, 5, 1, 20, 9, 1].map((count) => isDue(count, 0)),
    [true, false, false, true, true, false, true],
  );
});

test("a batch is signed if its last event is so much later than the last that is signed", () => {
  const { isDue } = open({ events: 100, time: 1000 });
  assert.deepEqual(
    [500, 1499, 1500, 2499, 2500].map((at) => isDue(1, at)),
    [true, false, true, false, true],
  );
});

test("what rests unsigned is signed by an alarm, which nothing else needs then", () => {
  const { isDue, rings, alone } = open({ events: 5, time: 1000 });
  isDue(1, 0);
  assert.equal(rings.length, 0);
  isDue(1, 10);
  rings.pop()?.();
  assert.deepEqual(alone, [{ events: 5, time: 1000 }]);
  assert.deepEqual([isDue(4, 1009), isDue(1, 1009)], [false, true]);
  assert.equal(rings.length, 0);
});

test("a new rule is told to the log with the next batch, and nothing is signed once it has stopped", () => {
  const { isDue, inForce, rings, signing } = open({ events: 5, time: 1000 });
  assert.deepEqual([isDue(1, 0), isDue(1, 0)], [true, false]);
  inForce.rule = { events: 9, time: 1000 };
  assert.deepEqual([isDue(1, 0), isDue(1, 0)], [true, false]);
  signing.stop();
  assert.equal(rings.length, 0);
});
