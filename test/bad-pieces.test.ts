/**
 * The small pieces of drover/core refuse what cannot be, by the name of the field, and change nothing they are given.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as core from "../src/core/index.ts";
import { NOT_AN_OBJECT, NOT_WHOLE } from "./kits/bad-values.ts";

const wrong = (value: unknown): never => value as never;
const NOT_A_NUMBER: readonly unknown[] = [Number.NaN, Number.POSITIVE_INFINITY, "5", null, true, {}, [], 5n];
const { globalExhausted, projectExhausted, shouldAccept, shouldThrottle } = core;
const pieces = { globalExhausted, projectExhausted, shouldAccept, shouldThrottle };
const NOT_AN_AMOUNT = [...NOT_A_NUMBER, -1];

const scored = { type: "code", runnableAt: 0, depth: 0, iteration: 1 };
const load = { queued: 1, inFlight: 1, workers: 1, maxQueue: 10, perWorker: 2, rejectThreshold: 1, throttleAt: 0.5 };
const round = {
  now: 0,
  projects: [{ id: "p", status: "active", weight: 1, maxConcurrent: 1 }],
  tasks: [{ id: "t", project: "p", status: "queued" }],
  workers: [{ id: "w", status: "idle" }],
  usage: {},
  active: {},
  started: {},
  completed: {},
};
const inRound = (section: "projects" | "tasks" | "workers", more: object): never =>
  wrong({ ...round, [section]: [{ ...round[section][0], ...more }] });
const windowOf = (more: object): core.UsageWindow =>
  core.createWindow(wrong({ kind: "sliding", max: 5, windowMs: 1000, ...more }));

const sliding = { kind: "sliding", windowMs: 1000, buckets: null, ends: [1, 2], amounts: [1, 1] };
const fixed = { kind: "fixed", windowMs: 1000, startedAt: 0, used: 1 };
const restored = (more: object): core.UsageWindow => core.windowFromFacts(wrong({ max: 5, sum: sliding, ...more }));

type Row = { name: string; field: string; values: readonly unknown[]; call: (value: unknown) => unknown };
const rows: Row[] = [
  { name: "score", field: "task", values: NOT_AN_OBJECT, call: (value) => core.score(wrong(value), 0) },
  { name: "score", field: "now", values: NOT_A_NUMBER, call: (value) => core.score(scored, wrong(value)) },
  { name: "score", field: "maxAge", values: [1], call: (value) => core.score(scored, 0, wrong({ maxAge: value })) },
  {
    name: "score",
    field: "ageMax",
    values: NOT_AN_AMOUNT,
    call: (value) => core.score(scored, 0, wrong({ ageMax: value })),
  },
  ...(["runnableAt", "depth", "iteration"] as const).map(
    (field): Row => ({
      name: "score",
      field: `task.${field}`,
      values: field === "runnableAt" ? NOT_A_NUMBER : NOT_WHOLE,
      call: (value) => core.score(wrong({ ...scored, [field]: value }), 0),
    }),
  ),
  {
    name: "Q17 score",
    field: "task.type",
    values: ["None", "null", "", 5],
    call: (value) => core.score(wrong({ ...scored, type: value }), 0),
  },
  { name: "targetRatios", field: "weights", values: NOT_AN_OBJECT, call: (value) => core.targetRatios(wrong(value)) },
  {
    name: "targetRatios",
    field: "weights.p",
    values: NOT_AN_AMOUNT,
    call: (value) => core.targetRatios({ p: wrong(value) }),
  },
  {
    name: "deficits",
    field: "weights.p",
    values: NOT_AN_AMOUNT,
    call: (value) => core.deficits({ p: wrong(value) }, {}),
  },
  { name: "deficits", field: "usage", values: NOT_AN_OBJECT, call: (value) => core.deficits({ p: 1 }, wrong(value)) },
  {
    name: "deficits",
    field: "usage.p",
    values: NOT_AN_AMOUNT,
    call: (value) => core.deficits({ p: 1 }, { p: wrong(value) }),
  },
  ...(["globalExhausted", "projectExhausted"] as const).flatMap((name): Row[] => [
    {
      name,
      field: name === "globalExhausted" ? "budget" : "limit",
      values: NOT_AN_AMOUNT.filter((one) => one !== null),
      call: (value) => pieces[name](wrong(value), 0),
    },
    { name, field: "used", values: NOT_AN_AMOUNT, call: (value) => pieces[name](5, wrong(value)) },
  ]),
  ...(["shouldAccept", "shouldThrottle"] as const).flatMap((name): Row[] => [
    { name, field: "load", values: NOT_AN_OBJECT, call: (value) => pieces[name](wrong(value)) },
    ...(["queued", "inFlight", "workers"] as const).map(
      (field): Row => ({
        name,
        field: `load.${field}`,
        values: NOT_WHOLE,
        call: (value) => pieces[name](wrong({ ...load, [field]: value })),
      }),
    ),
    ...(["maxQueue", "rejectThreshold"] as const).map(
      (field): Row => ({
        name,
        field: `load.${field}`,
        values: [...NOT_AN_AMOUNT, 0],
        call: (value) => pieces[name](wrong({ ...load, [field]: value })),
      }),
    ),
    {
      name,
      field: "load.throttleAt",
      values: NOT_AN_AMOUNT,
      call: (value) => pieces[name](wrong({ ...load, throttleAt: value })),
    },
    {
      name,
      field: "load.perWorker",
      values: [...NOT_AN_AMOUNT.filter((one) => one !== null), 0],
      call: (value) => pieces[name](wrong({ ...load, perWorker: value })),
    },
  ]),
  { name: "createWindow", field: "kind", values: ["leaky", "", null, 1], call: (kind) => windowOf({ kind }) },
  { name: "createWindow", field: "max", values: NOT_AN_AMOUNT, call: (max) => windowOf({ max }) },
  { name: "createWindow", field: "windowMs", values: [...NOT_WHOLE, 0], call: (windowMs) => windowOf({ windowMs }) },
  { name: "windowFromFacts", field: "facts", values: NOT_AN_OBJECT, call: (one) => core.windowFromFacts(wrong(one)) },
  { name: "windowFromFacts", field: "max", values: NOT_AN_AMOUNT, call: (max) => restored({ max }) },
  { name: "windowFromFacts", field: "sum", values: [null, 5, "x"], call: (sum) => restored({ sum }) },
  ...(
    [
      [sliding, "kind", ["leaky", null, 1]],
      [sliding, "windowMs", [...NOT_WHOLE, 0]],
      [sliding, "buckets", [0, -1, "1"]],
      [sliding, "ends", [null, 5, ["1"], [-1, 2], [5, 5], [5, 4]]],
      [sliding, "amounts", [null, 5, [1], [1, -1], [1, "1"]]],
      [fixed, "startedAt", [-1, "1", 0.5]],
      [fixed, "used", [-1, "1", null]],
    ] as const
  ).map(
    ([sum, field, values]): Row => ({
      name: "windowFromFacts",
      field,
      values,
      call: (value) => restored({ sum: { ...sum, [field]: value } }),
    }),
  ),
  { name: "limitWindow", field: "per_week", values: [1], call: () => core.limitWindow(wrong("per_week")) },
  { name: "planRound", field: "snapshot", values: NOT_AN_OBJECT, call: (value) => core.planRound(wrong(value)) },
  { name: "planRound", field: "now", values: NOT_A_NUMBER, call: (now) => core.planRound(wrong({ ...round, now })) },
  ...(["projects", "tasks", "workers"] as const).map(
    (field): Row => ({
      name: "planRound",
      field,
      values: [null, 5, "x", {}, [null], [5]],
      call: (value) => core.planRound(wrong({ ...round, [field]: value })),
    }),
  ),
  {
    name: "Q4 planRound",
    field: "weight",
    values: [Number.NaN, -1, "1", null],
    call: (weight) => core.planRound(inRound("projects", { weight })),
  },
  {
    name: "planRound",
    field: "maxConcurrent",
    values: [Number.NaN, -1, "1", null],
    call: (maxConcurrent) => core.planRound(inRound("projects", { maxConcurrent })),
  },
  {
    name: "Q17 planRound",
    field: "type",
    values: ["None", "null", ""],
    call: (type) => core.planRound(inRound("tasks", { type })),
  },
  {
    name: "planRound",
    field: "runnableAt",
    values: [Number.NaN, "now"],
    call: (runnableAt) => core.planRound(inRound("tasks", { runnableAt })),
  },
  {
    name: "planRound",
    field: "slots",
    values: [-1, 0.5, "1"],
    call: (slots) => core.planRound(inRound("workers", { slots })),
  },
  {
    name: "planRound",
    field: "strategy",
    values: ["luck", ""],
    call: (strategy) => core.planRound(wrong(round), wrong({ strategy })),
  },
  {
    name: "planRound",
    field: "usage",
    values: [5, null, { p: -1 }, { p: "5" }],
    call: (usage) => core.planRound(wrong({ ...round, usage })),
  },
];
/** Windows stand on their own and throw what JavaScript throws, with the field, the value and what would be right. */
const isOnPurpose = (error: unknown): error is Error =>
  error instanceof core.InputError ||
  ((error instanceof RangeError || error instanceof TypeError) && /: got .*, expected /.test(error.message));

for (const { name, field, values, call } of rows)
  test(`${name} refuses a bad ${field}`, () => {
    for (const value of values)
      assert.throws(
        () => call(value),
        (error) => {
          assert.ok(isOnPurpose(error), `${String(error)} was not thrown on purpose`);
          assert.ok(error.message.includes(field), `"${error.message}" does not name ${field}`);
          return true;
        },
        `${field} = ${String(value)}`,
      );
  });

test("readConfig never throws, whatever it is given", () => {
  for (const value of [...NOT_AN_OBJECT, ...NOT_WHOLE]) {
    const read = core.readConfig(value);
    assert.equal(
      read.ok,
      value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value)),
    );
  }
});
