/**
 * What a refusal says to people.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_CONFIG } from "../config/config.ts";
import { badField, type Refusal, sentence } from "./refusal.ts";

const full = { type: "queue-full", agent: "ann", queued: 5, maxQueue: 5, maxPerAgent: 5 } as const;
const limits: [refusal: Refusal, knob: string][] = [
  [{ ...full, limit: "maxQueue" }, "scheduler.maxQueue"],
  [{ ...full, limit: "maxPerAgent" }, "scheduler.maxPerAgent"],
  [{ type: "backpressure", usage: 1, rejectThreshold: 1, agent: "ann" }, "scheduler.backpressure.rejectThreshold"],
  [{ type: "no-workers", agent: "ann" }, "scheduler.backpressure.acceptWithoutWorkers"],
  [{ type: "batch-too-large", submitted: 51, max: 50 }, "scheduler.maxBatch"],
  [{ type: "bytes-per-minute", project: "web", stored: 2, max: 1, retryAfterMs: 5 }, "projects.default.bytesPerMinute"],
];
for (const [refusal, knob] of limits)
  test(`${knob}: who meets the limit is told the name of the knob, and there is such a knob`, () => {
    assert.match(sentence(refusal), new RegExp(`\\b${knob.replaceAll(".", "\\.")}\\b`));
    const value = knob
      .split(".")
      .reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], DEFAULT_CONFIG);
    assert.notEqual(value, undefined);
  });

test("a URL is refused without its user and password", () => {
  const said = (value: string): string => sentence(badField("cluster.advertise", value, "a URL"));
  assert.match(said("http://me:hunter2@h:80/x"), /^cluster\.advertise is "http:\/\/…@h:80\/x", and must be a URL$/);
  assert.doesNotMatch(said(`https://me:hunt@er/2@h/${"x".repeat(200)}`), /hunt/);
  assert.match(said("http://h/me"), /"http:\/\/h\/me"/);
});
