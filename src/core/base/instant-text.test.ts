/**
 * Instants as text, beside the calendar of the machine.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { INSTANT_MAX, instantText } from "./instant-text.ts";

const byMachine = (at: number): string => new Date(at).toISOString();

test("the ends of days, months, years, leap years and centuries are those of the calendar", () => {
  const edges = ["1970-01-01", "1972-02-29", "1999-12-31", "2000-02-29", "2000-03-01", "2100-02-28", "2400-02-29"];
  for (const at of [0, INSTANT_MAX, ...edges.map((day) => Date.parse(day))])
    for (const near of [at - 1, at, at + 1, at + 86_399_999, at + 86_400_000].filter((one) => one >= 0))
      if (near <= INSTANT_MAX) assert.equal(instantText(near), byMachine(near));
});

test("any instant up to the year 9999 is written as the machine's own calendar writes it", () => {
  const seed = Number(process.env.DROVER_SEED ?? 20_261_115);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: INSTANT_MAX }), (at) => assert.equal(instantText(at), byMachine(at))),
    { seed, numRuns: 5000 },
  );
});
