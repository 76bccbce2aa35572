/**
 * Wherever a person writes a span, it has its unit.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsIn } from "../../plan/check.ts";
import { planSchema } from "../../plan/schema.ts";
import { isSpan, type JsonSchema, knobs, schemaAt } from "../../protocol/schema/index.ts";
import { milliseconds } from "../shell/verb.ts";
import { loadSettings } from "./load.ts";
import { SETTINGS_SCHEMA } from "./settings.ts";

const load = (sets: readonly string[], env: Record<string, string> = {}): unknown =>
  loadSettings({ env, cwd: "/nowhere", home: "/nowhere", sets });
const spans = [...knobs(SETTINGS_SCHEMA)].filter((path) => isSpan(schemaAt(SETTINGS_SCHEMA, path) as JsonSchema));

test("every span of the config is refused without a unit, and says both readings", () => {
  assert.ok(spans.length > 15);
  for (const path of spans) {
    const field = path.join(".");
    const says = {
      message: new RegExp(`${field.replaceAll(".", "\\.")} is 5000, which has no unit: say 5000s or 5000ms`),
    };
    assert.throws(() => load([`${field}=5000`]), says);
  }
});

test("also by a variable, inside a section, and for a project of one's own", () => {
  assert.throws(() => load([], { DROVER_SCHEDULER__RETRY__BASE: "10" }), /retry\.base is 10, .*say 10s or 10ms/);
  assert.throws(() => load(["scheduler.retry={base: 10}"]), /--set scheduler\.retry: scheduler\.retry\.base is 10/);
  assert.throws(() => load(["projects.web.budget={limit: 5, window: 3600}"]), /projects\.web\.budget\.window is 3600/);
  assert.throws(() => load(["gates.a/b.window=60"]), /gates\.a\/b\.window is 60, .*say 60s or 60ms/);
});

test("with a unit it is taken, and zero is zero in every unit", () => {
  load(["scheduler.retry.base=10s", "server.shutdownGrace=0", "scheduler.placement.unresolvedAfter=0s"]);
  assert.deepEqual([milliseconds("10s"), milliseconds("10ms"), milliseconds("0")], [10_000, 10, 0]);
});

test("a flag without a unit is refused", () => {
  assert.throws(() => milliseconds("10"), { message: "It must be a span, and this one has no unit: say 10s or 10ms." });
});

test("a fraction is refused with the whole span that is meant", () => {
  for (const [given, says] of [
    ["10.5", "has no unit: say 10500ms"],
    ["'10.5'", "has no unit: say 10500ms"],
    [".5", "has no unit: say 500ms"],
    ["10.5s", "has a fraction: say 10500ms"],
    ["1.5h", "has a fraction: say 5400000ms"],
    ["1.5ms", "has a fraction: say 2ms"],
  ] as const) {
    const message = new RegExp(`scheduler\\.retry\\.base is [\\d.a-z]+, which ${says}$`, "m");
    assert.throws(() => load([`scheduler.retry.base=${given}`]), { message }, given);
    if (!given.startsWith("'"))
      assert.throws(() => milliseconds(given), { message: `It must be a span, and this one ${says}.` });
  }
});

test("whoever writes something else is not told of numbers, which would be refused", () => {
  for (const given of ["-5", "0.0001", "10sec", "1e300", "soon"]) {
    const message = /retry\.base is .*, and must be a span of at least 1 ms: text such as 250ms, 30s, 5m, 24h, 30d$/m;
    assert.throws(() => load([`scheduler.retry.base=${given}`]), { message }, given);
    assert.throws(() => milliseconds(given), { message: "It must be a span such as 250ms, 30s, 5m, 24h." });
  }
});

test("a plan's span without a unit is refused", () => {
  const told = (plan: unknown): string[] => [...problemsIn(planSchema, plan, [])].map(({ message }) => message);
  assert.deepEqual(told({ tasks: { a: { run: "x", timeout: 10 } } }), [
    "tasks.a.timeout is 10, which has no unit: say 10s or 10ms",
  ]);
  assert.deepEqual(told({ defaults: { idleTimeout: 5 }, budget: { limit: 1, window: 60 }, tasks: {} }), [
    "defaults.idleTimeout is 5, which has no unit: say 5s or 5ms",
    "budget.window is 60, which has no unit: say 60s or 60ms",
  ]);
  assert.deepEqual(told({ scheduler: { retry: { base: 7 } }, tasks: { a: { run: "x", timeout: null } } }), [
    "scheduler.retry.base is 7, which has no unit: say 7s or 7ms",
  ]);
  assert.deepEqual(told({ tasks: { a: { run: "x", timeout: 1.5 }, b: { run: "x", timeout: "10" } } }), [
    "tasks.a.timeout is 1.5, which has no unit: say 1500ms",
    "tasks.b.timeout is 10, which has no unit: say 10s or 10ms",
  ]);
});
