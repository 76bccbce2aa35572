import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nearest } from "./nearest.ts";

describe("the nearest word", () => {
  const known = ["maxInFlight", "maxQueue", "maxPerAgent", "fairness"];
  for (const [written, found] of [
    ["maxInflight", "maxInFlight"],
    ["max_in_flight", "maxInFlight"],
    ["max-queue", "maxQueue"],
    ["maxQeueu", "maxQueue"],
    ["fairnes", "fairness"],
    ["weight", null],
    ["", null],
    ["x".repeat(5000), null],
  ] as const)
    test(`to ${written.slice(0, 20)} is ${found}`, () => assert.equal(nearest(written, known), found));

  test("is looked for among so many only as fit into a bound", () => {
    const many = Array.from({ length: 100_000 }, (_, at) => `word${at}word`);
    assert.equal(nearest("wird7word", many), "word7word");
    assert.equal(nearest("weight", [...many, "weigth"]), "weigth", "those of another length cost nothing");
    assert.equal(nearest("abcdefghijk", [...many, "abcdefghikj"]), null);
  });
});
