import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRecord } from "../../core/base/readers.ts";
import { type Refusal, sentence } from "../../core/base/refusal.ts";
import { DEFAULT_CONFIG, readConfig } from "../../core/config/config.ts";
import { spanText } from "../schema/knobs.ts";
import type { Schema } from "../schema/schema.ts";
import { checkOf } from "../schema/validate.ts";
import { settingsJsonSchema, settingsSchema } from "./schema.ts";
import { readSettings, type Settings } from "./settings.ts";

const read = (value: unknown): Settings => {
  const settings = readSettings(value);
  if (!settings.ok) assert.fail(sentence(settings.failure));
  return settings.value;
};
const refusalOf = (value: unknown): Refusal => {
  const settings = readSettings(value);
  if (settings.ok) assert.fail("taken");
  return settings.failure;
};

test("without a file there are the defaults", () => {
  const defaults: Settings = {
    config: DEFAULT_CONFIG,
    server: {
      host: "127.0.0.1",
      port: 4747,
      bodyLimit: 1_048_576,
      shutdownGrace: 10_000,
      tokens: [],
      allowedHosts: [],
      allowedOrigins: [],
      telemetry: false,
    },
    webhooks: { timeout: 10_000, attempts: 8, concurrency: 16, allowPrivate: false, secret: null },
    cluster: { lease: 3000, node: null, advertise: null },
    log: { url: "sqlite:.drover/drover.db" },
  };
  for (const value of [undefined, null, {}, { server: null, gates: null }, { $schema: "x" }]) {
    assert.deepEqual(read(value), defaults);
  }
});

test("spans and sizes are taken the way people write them", () => {
  const { server, webhooks, config } = read({
    server: { bodyLimit: "512KiB", shutdownGrace: "1m" },
    webhooks: { timeout: "250ms" },
    scheduler: { resultTtl: "2h" },
  });
  assert.deepEqual([server.bodyLimit, server.shutdownGrace, webhooks.timeout], [524_288, 60_000, 250]);
  assert.equal(config.scheduler.resultTtl, 7_200_000);
  assert.equal(read({ server: { bodyLimit: 2048 } }).server.bodyLimit, 2048);
  assert.equal(read({ server: { bodyLimit: "2MB" } }).server.bodyLimit, 2_000_000);
});

test("tokens and secrets stay out of the core's config, which is written into the log", () => {
  const token = "a-very-secret-token";
  const { config, server, webhooks } = read({
    server: { tokens: [{ token, role: "admin" }] },
    webhooks: { secret: "a-very-secret-word" },
    log: { url: "sqlite:with-a-place.db" },
  });
  assert.equal(server.tokens[0]?.token, token);
  assert.equal(webhooks.secret, "a-very-secret-word");
  assert.doesNotMatch(JSON.stringify(config), /secret|with-a-place/);
});

const refused: [claim: string, value: unknown, said: string | RegExp][] = [
  ["a list", [], /^drover\.yml is \[\], and must be sections: scheduler/],
  ["a section nobody knows", { sched: {} }, /^sched is not a known field; known here: scheduler, budget/],
  [
    "a section of another kind",
    { server: 1 },
    "server is hidden, since it may be a secret, and must be an object such as { host: …, port: …, bodyLimit: …, … }",
  ],
  ["a number for a budget", { budget: 5 }, "budget is 5, and must be an object such as { limit: …, window: … }"],
  [
    "a list of gates",
    { gates: [1] },
    "gates is [1], and must be an object of objects by name, such as { NAME: { … } }",
  ],
  [
    "a core section of another kind",
    { log: 1 },
    "log is 1, and must be an object such as { snapshotEvery: …, retain: …, maxClockJump: …, … }",
  ],
  [
    "a knob nobody knows",
    { server: { hosts: 1 } },
    /^server\.hosts is not a known field \(did you mean host\?\); known here: host, port/,
  ],
  [
    "a core knob of zero",
    { scheduler: { maxInFlight: 0 } },
    /^scheduler\.maxInFlight is 0, and must be a whole number/,
  ],
  [
    "a port out of range",
    { server: { port: 65_536 } },
    "server.port is 65536, and must be a whole number from 0 to 65535",
  ],
  ["a size that is none", { server: { bodyLimit: "1 MB" } }, /^server\.bodyLimit is "1 MB", and must be a size from/],
  ["a size of nothing", { server: { bodyLimit: 0 } }, /^server\.bodyLimit is 0, and must be a size from/],
  ["a span that is none", { webhooks: { timeout: "10" } }, /^webhooks\.timeout is "10", and must be a span/],
  [
    "a place of another kind",
    { log: { url: 5 } },
    "log.url is hidden, since it is a secret, and must be text of 1 to 2048 characters",
  ],
  [
    "a secret with half of a character",
    { webhooks: { secret: "a\ud800" } },
    "webhooks.secret is hidden, since it is a secret, which holds half of a character (a lone surrogate), " +
      "and must be text of 1 to 1024 characters, or null",
  ],
  [
    "a role nobody has",
    { server: { tokens: [{ tokenEnv: "T", role: "root" }] } },
    /^server\.tokens\[0\]\.role is "root"/,
  ],
  ["a token without a role", { server: { tokens: [{ tokenEnv: "T" }] } }, /^server\.tokens\[0\]\.role is nothing/],
  [
    "a role without a token",
    { server: { tokens: [{ role: "admin" }] } },
    /exactly one of token, tokenHash and tokenEnv$/,
  ],
  [
    "two tokens in one",
    { server: { tokens: [{ role: "admin", tokenEnv: "A", tokenHash: "0".repeat(64) }] } },
    /exactly one of/,
  ],
];
for (const [claim, value, said] of refused)
  test(`a file is refused in words: ${claim}`, () => {
    const told = sentence(refusalOf(value));
    if (typeof said === "string") assert.equal(told, said);
    else assert.match(told, said);
  });

test("a refusal never repeats a secret", () => {
  const secret = "hunter2-hunter2";
  for (const value of [
    { server: { tokens: [{ token: secret.slice(0, 9), role: "admin" }] } },
    { server: { tokens: [{ token: secret.repeat(100), role: "admin" }] } },
    { server: { tokens: [{ tokenHash: secret, role: "admin" }] } },
    { server: { tokens: [{ token: `${secret}-and-more`, tokenEnv: "A", role: "admin" }] } },
    { server: { tokens: [{ token: `${secret}-and-more`, role: "root" }] } },
    { server: { tokens: { token: secret } } },
    { webhooks: { secret: [secret] } },
    { webhooks: { secret: "", [secret]: 1 }, server: {} },
  ]) {
    assert.doesNotMatch(JSON.stringify({ ...refusalOf(value), field: "" }), /hunter2/);
  }
});

/** A knob of the schema by its path; what a table holds by name is found under `*`. */
type Knob = Schema & {
  readonly properties?: Record<string, Knob>;
  readonly default?: unknown;
  readonly anyOf?: unknown;
};

function* knobs(schema: Knob, path: readonly string[]): Generator<[path: readonly string[], knob: Knob]> {
  if (schema.properties === undefined) yield [path, schema];
  for (const [key, inner] of Object.entries(schema.properties ?? {})) yield* knobs(inner, [...path, key]);
}
const at = (path: readonly string[], value: unknown): unknown =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), value);

/** The core's own spelling of a knob of a gate. */
const INSIDE: Record<string, string> = {
  window: "windowMs",
  agingPerClass: "agingPerClassMs",
  permitTtl: "permitTtlMs",
};
const inside = (path: readonly string[]): string[] =>
  path.map((key, depth) => (path[0] === "gates" && depth === 2 ? (INSIDE[key] ?? key) : key));

const core = [...knobs(settingsSchema as Knob, [])].filter(
  ([[section = "", knob]]) => Object.hasOwn(DEFAULT_CONFIG, section) && !(section === "log" && knob === "url"),
);

test("every default of the core is in the schema, and every knob of the schema is the core's", () => {
  const leaves: string[] = [];
  const walk = (value: unknown, path: readonly string[]): void => {
    const isTable = ["perType", "base"].includes(path.at(-1) ?? "") && path[0] === "scheduler" && isRecord(value);
    if (isRecord(value) && !isTable) for (const key of Object.keys(value)) walk(value[key], [...path, key]);
    else leaves.push(path.join("."));
  };
  walk(
    {
      ...DEFAULT_CONFIG,
      projects: { ...DEFAULT_CONFIG.projects, named: 0 },
      gates: { default: DEFAULT_CONFIG.gates.default },
    },
    [],
  );
  const told = core.map(([path]) => inside(path).join("."));
  assert.deepEqual(told.sort(), leaves.filter((leaf) => leaf !== "projects.named").sort());
});

test("every knob of the schema has the default of the core", () => {
  for (const [path, knob] of core) {
    const effective = readConfig(at(path, knob.default));
    assert.ok(effective.ok, path.join("."));
    assert.deepEqual(effective.value, DEFAULT_CONFIG, path.join("."));
    assert.notEqual(valueAt(DEFAULT_CONFIG, inside(path)), undefined, path.join("."));
  }
});

const CANDIDATES: readonly unknown[] = [
  ...[
    0,
    1,
    -1,
    0.5,
    1.5,
    50,
    99,
    100,
    101,
    999,
    1000,
    1001,
    10_000,
    10_001,
    100_000,
    100_001,
    1e6,
    1e6 + 1,
    -1e6,
    -1e6 - 1,
  ],
  ...[5e6, 5e6 + 1, 1e7, 1e7 + 1, 1e9, 1e9 + 1, -1e9, -1e9 - 1, 1e12, 1e12 + 1, 31_556_952_000_000, 31_556_952_000_001],
  ...[
    Number.MAX_SAFE_INTEGER,
    2 ** 53,
    Number.NaN,
    null,
    true,
    false,
    "",
    "x",
    "None",
    "a b",
    "0ms",
    "1ms",
    "99ms",
    "10s",
    "24h",
  ],
  ...["1y", "level", "deficit", "fair", "none", "least-loaded", "best-fit", "sliding", "fixed", "high", "critical"],
  ...[[], {}, { a: 1 }, { a: null }, { a: 1.5 }, { a: 0 }, { "a b": 1 }, { a: "x" }, ["a"]],
];

test("the schema takes of every knob just what the core takes", () => {
  const check = checkOf(settingsSchema);
  for (const [path] of core) {
    for (const candidate of CANDIDATES) {
      const file = at(path, candidate);
      // Apart from one rule over two knobs, which a schema cannot say.
      const withRoom =
        path.join(".") === "scheduler.retry.base"
          ? { scheduler: { retry: { base: candidate, max: 31_556_952_000_000 } } }
          : file;
      const taken =
        path.join(".") === "scheduler.retry.max" ? { scheduler: { retry: { base: 1, max: candidate } } } : withRoom;
      assert.equal(check(taken), readConfig(taken).ok, `${path.join(".")}: ${JSON.stringify(candidate)}`);
    }
  }
});

test("a project or gate by its own name takes what the default of its kind takes", () => {
  const check = checkOf(settingsSchema);
  for (const file of [
    { projects: { site: { weight: 2 }, "a b": {} } },
    { projects: { site: { weight: 2, budget: { limit: 5, window: "1h" } } } },
    { projects: { site: { weights: 2 } } },
    { projects: { site: 1 } },
    { gates: { "anthropic/default": { maxConcurrent: 2, window: "1m", tokens: { perMinute: 100 } } } },
    { gates: { "anthropic/default": { maxConcurrent: 0 } } },
  ]) {
    assert.equal(check(file), readConfig(file).ok, JSON.stringify(file));
  }
});

test("every knob has words and a default, for whoever writes the file", () => {
  for (const [path, knob] of knobs(settingsSchema as Knob, [])) {
    if (path[0] === "$schema") continue;
    const { description } = knob as { description?: string };
    assert.ok((description ?? "").length > 5, `${path.join(".")} is described`);
    assert.ok("default" in knob, `${path.join(".")} has a default`);
  }
});

test("a span is written in the largest unit that divides it, and a day as 24h", () => {
  const spans: [number, string][] = [
    [0, "0ms"],
    [250, "250ms"],
    [1500, "1500ms"],
    [10_000, "10s"],
    [600_000, "10m"],
    [3_600_000, "1h"],
    [86_400_000, "24h"],
    [30 * 86_400_000, "30d"],
  ];
  for (const [ms, told] of spans) assert.equal(spanText(ms), told);
});

test("the file that editors read is this schema", () => {
  const path = join(import.meta.dirname, "../../../schema/drover.schema.json");
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), JSON.parse(JSON.stringify(settingsJsonSchema())));
});
