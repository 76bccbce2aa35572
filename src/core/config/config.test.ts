/**
 * The config as it is read.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant } from "../base/brand.ts";
import { emptyState } from "../empty-state.ts";
import { evolve } from "../evolve.ts";
import { restore, snapshotLines } from "../snapshot/snapshot.ts";
import { fixedScore } from "../turn/priority.ts";
import { type Config, completed, DEFAULT_CONFIG, readConfig, typeLimit } from "./config.ts";

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

test("under `named` every name is that of a project, also one that a section has for itself", () => {
  for (const name of ["named", "autoCreate", "default", "__proto__"]) {
    const named = Object.fromEntries([[name, { weight: 3 }]]);
    const once = readConfig({ projects: { autoCreate: false, named } });
    assert.ok(once.ok, name);
    const { projects } = once.value;
    assert.deepEqual(Object.entries(projects.named), [[name, { ...projects.default, weight: 3 }]]);
    assert.deepEqual([projects.autoCreate, projects.default.weight], [false, 1]);
    assert.deepEqual(readConfig(once.value), once);
  }
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

/** Every field of a config at any depth, by its way from the top. Entries of tables are none. */
function fieldsOf(value: object, way: readonly string[] = []): string[][] {
  return Object.entries(value).flatMap(([key, field]) => {
    const here = [...way, key];
    const isTable = ["perType", "base", "named"].includes(key);
    return typeof field === "object" && field !== null && !isTable ? [here, ...fieldsOf(field, here)] : [here];
  });
}

function without(value: object, [key, ...rest]: readonly string[]): object {
  const copy: Record<string, unknown> = { ...value };
  if (rest.length === 0) delete copy[key as string];
  else copy[key as string] = without(copy[key as string] as object, rest);
  return copy;
}

test("whichever field an older config lacks has its default, whoever added it", () => {
  const fields = fieldsOf(DEFAULT_CONFIG);
  assert.ok(fields.length > 60 && fields.some((way) => way.join(".") === "scheduler.retry.maxRequeues"));
  for (const way of fields) {
    assert.deepEqual(completed(without(DEFAULT_CONFIG, way) as Config), DEFAULT_CONFIG, way.join("."));
  }
  const named = {
    projects: { ...DEFAULT_CONFIG.projects, named: { web: DEFAULT_CONFIG.projects.default } },
    gates: { ...DEFAULT_CONFIG.gates, named: { llm: DEFAULT_CONFIG.gates.default } },
  };
  const config: Config = { ...DEFAULT_CONFIG, ...named };
  const items = [
    ["projects", "named", "web"],
    ["gates", "named", "llm"],
  ].flatMap((way) =>
    fieldsOf(
      way.reduce((value, key) => (value as Record<string, object>)[key] as object, config as object),
      way,
    ),
  );
  for (const way of items) assert.deepEqual(completed(without(config, way) as Config), config, way.join("."));
});

test("an entry that was taken out of a table stays out of an older config", () => {
  const scheduler = { ...DEFAULT_CONFIG.scheduler, perType: { plan: 1 } };
  assert.deepEqual(completed({ ...DEFAULT_CONFIG, scheduler }).scheduler.perType, { plan: 1 });
});
