import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holds } from "../../../test/kits/laws/cases.ts";
import { PassingMap } from "./passing-map.ts";

const key = fc.nat(20);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("set" as const), key, value: fc.nat(9) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("delete" as const), key, value: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const), key, value: fc.nat(9) }) },
);

test("it is a Map, in what it has and in its order, however much has passed through it", () => {
  holds(100, fc.array(step, { maxLength: 1500, minLength: 500 }), (steps) => {
    const [ours, usual] = [new PassingMap<number, number>(), new Map<number, number>()];
    for (const { do: what, key: name, value } of steps) {
      if (what === "set") for (const map of [ours, usual]) map.set(name, value);
      else if (what === "clear") for (const map of [ours, usual]) map.clear();
      else assert.equal(ours.delete(name), usual.delete(name));
      assert.deepEqual([ours.size, ours.get(name), ours.has(name)], [usual.size, usual.get(name), usual.has(name)]);
    }
    assert.deepEqual([...ours], [...usual]);
    assert.deepEqual([...ours.values()], [...usual.values()]);
  });
});

test("what is taken out while it is walked over is not met any more", () => {
  const map = new PassingMap<number, string>();
  for (let round = 0; round < 1000; round++) {
    map.set(round, "a");
    map.delete(round);
  }
  for (const name of [1, 2, 3]) map.set(name, "b");
  const met: number[] = [];
  for (const [name] of map) {
    met.push(name);
    map.delete(2);
  }
  assert.deepEqual(met, [1, 3]);
});
