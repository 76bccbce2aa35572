/**
 * The config as it is read.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant } from "./brand.ts";
import { type Config, DEFAULT_CONFIG, readConfig, typeLimit } from "./config.ts";
import { emptyState } from "./empty-state.ts";
import { evolve } from "./evolve.ts";
import { fixedScore } from "./priority.ts";
import { restore, snapshotLines } from "./snapshot.ts";

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

test("a config of an older log or snapshot has the defaults of what was added since", () => {
  const { killGrace, artifactPoll } = DEFAULT_CONFIG.workers;
  const { artifacts: _, ...rest } = DEFAULT_CONFIG;
  const { bytesPerMinute: __, ...settings } = DEFAULT_CONFIG.projects.default;
  const { maxBytes: ___, ...log } = DEFAULT_CONFIG.log;
  const former = { ...rest, projects: { ...rest.projects, default: settings }, log };
  const old = { ...former, workers: { killGrace, artifactPoll } } as Config;
  const state = emptyState();
  evolve(state, { kind: "config-changed", at: 1 as Instant, config: old, patch: null });
  assert.deepEqual(state.config, DEFAULT_CONFIG);
  const rows = [...snapshotLines(state)].map((line) => JSON.parse(line) as unknown[]);
  const lines = rows.map((row) => JSON.stringify(row[0] === "config" ? ["config", old] : row));
  assert.deepEqual(restore(lines).config, DEFAULT_CONFIG);
});
