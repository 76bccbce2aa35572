/**
 * The config as it is read.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_CONFIG, readConfig, typeLimit } from "./config.ts";
import { fixedScore } from "./priority.ts";

test("nothing given is the defaults", () => {
  assert.deepEqual(readConfig(undefined), { ok: true, value: DEFAULT_CONFIG });
});

test("an effective config, given back, is the same config", () => {
  const given = {
    projects: { default: { weight: 2 }, web: { weight: 3 }, docs: {} },
    gates: { "llm/a": { window: "10s", maxConcurrent: 3 } },
    scheduler: { perType: { plan: 1 } },
  };
  const once = readConfig(given);
  assert.ok(once.ok);
  assert.deepEqual(once.value.projects.named.docs?.weight, 2);
  assert.deepEqual(readConfig(once.value), once);
});

test("a type that is called like something every object has is a type like any other", () => {
  for (const type of ["constructor", "toString", "__proto__"]) {
    assert.equal(fixedScore({ type, depth: 0, iteration: 1 }, DEFAULT_CONFIG.scheduler.priority), 100);
    assert.equal(typeLimit(DEFAULT_CONFIG, type), Number.POSITIVE_INFINITY);
  }
});
