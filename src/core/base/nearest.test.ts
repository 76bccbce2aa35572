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
});
