/**
 * How much is ever unsigned: never more time between events than the rule allows. The log counts them itself.
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
  const isDue = (at: number): boolean => signing.dueWith(at) !== null;
  return { isDue, rings, alone, inForce, signing };
}

test("a batch is signed if its last event is so much later than the last that is signed", () => {
  const { isDue } = open({ events: 100, time: 1000 });
  assert.deepEqual([500, 1499, 1500, 2499, 2500].map(isDue), [true, false, true, false, true]);
});

test("what rests unsigned is signed by an alarm, which nothing else needs then", () => {
  const { isDue, rings, alone } = open({ events: 5, time: 1000 });
  isDue(0);
  assert.equal(rings.length, 0);
  isDue(10);
  rings.pop()?.();
  assert.deepEqual(alone, [{ events: 5, time: 1000 }]);
  assert.deepEqual([isDue(1009), isDue(1010)], [false, true]);
  assert.equal(rings.length, 0);
});

test("a new rule is told to the log with the next batch, and nothing is signed once it has stopped", () => {
  const { isDue, inForce, rings, signing } = open({ events: 5, time: 1000 });
  assert.deepEqual([isDue(0), isDue(0)], [true, false]);
  inForce.rule = { events: 9, time: 1000 };
  assert.deepEqual([isDue(0), isDue(0)], [true, false]);
  signing.stop();
  assert.equal(rings.length, 0);
});
