import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRecord, readSection } from "../../core/base/readers.ts";
import type { Refusal } from "../../core/base/refusal.ts";
import type { Result } from "../../core/base/result.ts";
import { DEFAULT_CONFIG, projectFields } from "../../core/config/config.ts";
import { amendPatch } from "../../core/config/config-patch.ts";
import { CALLS } from "../calls/calls.ts";
import type { Schema } from "../schema/schema.ts";
import { readShape } from "../schema/validate.ts";

/**
 * The config is the core's, and the core imports no schema: it reads a project and a patch by readers of its own. For
 * bodies that are mostly right, with something wrong in them, readers and schemas must say the same and name the same
 * field.
 */

/** How many bodies, and how many of them at least must be taken, and refused. */
const { CASES, ENOUGH } =
  process.env.DROVER_QUICK === undefined ? { CASES: 1500, ENOUGH: 40 } : { CASES: 400, ENOUGH: 5 };

const fieldOf = (refusal: Refusal): string => ("field" in refusal ? refusal.field : "");

const text = (length: number, letter: string = "x"): string => letter.repeat(length);
const names = [
  "...",
  ".a",
  "a",
  "ann",
  "plan",
  "repo:x",
  "ä",
  "😀",
  text(256),
  text(128, "😀"),
  "constructor",
  "__proto__",
  "0",
];
const badNames = [
  ".",
  "..",
  "",
  " ",
  "a b",
  "None",
  "none",
  "null",
  "NaN",
  text(257),
  text(129, "😀"),
  "a\n",
  "\u0000",
  "\ud800",
  "a\u00a0b",
];
const instants = [
  "2030-01-31T12:00:00Z",
  "2030-01-31T12:00:00.123456+02:00",
  "2030-01-31 12:00:00Z",
  "1970-01-01T00:00:00Z",
];
const badInstants = [
  "2030-01-31",
  "tomorrow",
  "2030-13-01T00:00:00Z",
  "1969-12-31T23:59:59Z",
  "2030-01-31T24:61:00Z",
  "2016-12-31T23:59:60Z",
  "2030-02-29T00:00:00Z",
  "2030-06-31T00:00:00Z",
];
const numbers = [
  0,
  1,
  -1,
  1.5,
  -0,
  2,
  64,
  100,
  101,
  65_535,
  1e6,
  1e6 + 1,
  1e9,
  1e9 + 1,
  -1e9,
  -1e9 - 1,
  1e12,
  1e12 + 1,
];
const large = [
  31_556_952_000_000,
  31_556_952_000_001,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  1e21,
  Number.NaN,
  Number.POSITIVE_INFINITY,
];
const lists = [
  [],
  ["a"],
  ["a", "a"],
  ["a b"],
  [1],
  [null],
  [["a"]],
  ...[64, 65, 1000, 1001, 10_001].map((n) => Array.from({ length: n }, (_, i) => `n${i}`)),
];
const objects = [
  {},
  { a: 1 },
  { cpuMillicores: 1 },
  { cpuMillicores: -1 },
  { memoryBytes: 1.5 },
  { cpu: 1 },
  { cpuMillicores: null, memoryBytes: 2 },
];
const words = [
  "skip",
  "run",
  "queue",
  "cancel",
  "critical",
  "low",
  "ready",
  "draining",
  "done",
  "requeue",
  "Skip",
  "60s",
  "1ms",
  "0ms",
  "5x",
];
const urls = [
  "http://a.example/x",
  "https://a.example",
  "ftp://a.example",
  "/x",
  "x",
  "http://u:p@a.example",
  "http://",
];
const oddities = [null, true, false, undefined, text(1024), text(1025), text(4096), text(4097)];
const POOL: readonly unknown[] = [
  ...[names, badNames, instants, badInstants, numbers, large, lists, objects, words, urls, oddities].flat(),
  ...lists,
];
const ODD_KEYS = ["id", "agent_id", "x", "", "__proto__", "constructor", "toString", "agentId", "tasks", "deadline"];

type Good = Readonly<Record<string, readonly unknown[]>>;

/** A body mostly right: some of the fields, each with a value that may be right, and up to two that are not. */
function bodies(good: Good, needed: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const known = Object.keys(good);
  const right = fc
    .subarray(known)
    .chain((keys) =>
      fc.record(
        Object.fromEntries(
          [...new Set([...needed, ...keys])].map((key) => [key, fc.constantFrom(...(good[key] as unknown[]))]),
        ),
      ),
    );
  const wrong = fc.array(fc.tuple(fc.constantFrom(...known, ...ODD_KEYS), fc.constantFrom(...POOL)), { maxLength: 2 });
  const left = fc.option(fc.constantFrom(...known), { freq: 8 });
  return fc.tuple(right, wrong, left).map(([body, extra, out]) => {
    const made = new Map(Object.entries(body));
    for (const [key, value] of extra) made.set(key, value);
    if (out !== null) made.delete(out);
    return Object.fromEntries(made);
  });
}

type Agreement = {
  readonly schema: Schema | null;
  readonly core: (body: unknown) => Result<unknown, Refusal>;
  readonly bodies: fc.Arbitrary<unknown>;
  /** Fields the core judges by more than their shape. */
  readonly coreKnowsMore?: (field: string) => boolean;
  /** Fields of which the wire takes less than the core, on purpose. */
  readonly wireTakesLess?: (field: string, body: Record<string, unknown>) => boolean;
};

const PROJECT: Good = {
  weight: [1, 0.5, 1e6],
  maxConcurrent: [1],
  budget: [{}, { limit: null }, { limit: 0 }, { window: "24h" }, { window: 999 }, { weight: 1 }],
  maxPriority: ["high", -200],
  provider: [null, "anthropic/default"],
};
const PATCH: Good = {
  maxInFlight: [1, 50, null],
  resultTtl: ["5m", 1, null],
  perType: [{ plan: 1 }, { plan: null }, { plan: 0 }, { "a b": 1 }, null],
  priority: [{ base: { code: 1.5 } }, { ageMax: -1 }, { starvationAfter: "60m" }, null],
  fairness: [{ rule: "deficit" }, { rule: "x" }, { halfLife: 999 }, null],
  placement: [{ strategy: "best-fit", preferLocality: true }, { affinityWait: 0 }],
  backpressure: [{ perWorker: null }, { rejectThreshold: 0 }, { throttleAt: 0 }],
  retry: [{ base: 1, max: "5m" }, { maxLosses: 0 }],
};

const BASE = DEFAULT_CONFIG.projects.default;
const agreements: Record<string, Agreement> = {
  "a project": {
    schema: CALLS.putProject.body,
    core: (body) => readSection(projectFields(BASE), BASE, body, ""),
    bodies: bodies(PROJECT, []),
  },
  "a patch of the config": {
    schema: CALLS.patchConfig.body,
    core: (body) => amendPatch(DEFAULT_CONFIG, null, body),
    bodies: bodies(PATCH, []),
    coreKnowsMore: (field) => field === "retry.max",
    // To the core null takes back what is not there, whatever it is called.
    wireTakesLess: (field, body) => (body[field] ?? null) === null,
  },
};

/** What both agree on, where a field is named: one may name a field within the other's. */
const sameField = (left: string, right: string): boolean =>
  left === right || left.startsWith(right) || right.startsWith(left);

for (const [what, { schema, core, bodies, coreKnowsMore, wireTakesLess }] of Object.entries(agreements)) {
  test(`the wire and the core agree about ${what}`, () => {
    let taken = 0;
    let refused = 0;
    const agree = (body: unknown): void => {
      const wire = readShape(schema as Schema, body);
      const said = core(body);
      if (wire.ok) taken++;
      else refused++;
      if (wire.ok && said.ok) return;
      if (wire.ok && !said.ok) {
        assert.ok(coreKnowsMore?.(fieldOf(said.failure)) === true, `only the core: ${JSON.stringify(said.failure)}`);
        return;
      }
      if (wire.ok) return;
      const field = fieldOf(wire.failure);
      if (said.ok) {
        const mayDiffer = isRecord(body) && wireTakesLess?.(field, body) === true;
        assert.ok(mayDiffer, `only the wire: ${JSON.stringify(wire.failure)}`);
        return;
      }
      const other = fieldOf(said.failure);
      const explained = coreKnowsMore?.(other) === true || (isRecord(body) && wireTakesLess?.(field, body) === true);
      assert.ok(explained || field === "(body)" || sameField(field, other), `${field} or ${other}?`);
    };
    fc.assert(fc.property(bodies, agree), { numRuns: CASES });
    assert.ok(taken > ENOUGH && refused > ENOUGH, `${taken} taken, ${refused} refused`);
    for (const value of POOL.filter((one) => one !== null && one !== undefined)) agree(value);
  });
}
