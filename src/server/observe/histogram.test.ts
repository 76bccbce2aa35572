/**
 * A histogram says what the library's own says of the same values.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Histogram, type Metric, Registry } from "prom-client";
import { createHistogram } from "./histogram.ts";

const BOUNDS = [1, 5, 25, 1000];
const ABOUT = { name: "drover_test_seconds", help: "How long it took." };
const value = fc.oneof(fc.constantFrom(0, 1, 5, 25, 1000), fc.integer({ min: 0, max: 2000 }));

test("it is shown as the library shows its own, whatever was added and under whichever labels", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom("done", "failed"), value)), async (added) => {
      const [own, theirs] = [new Registry(), new Registry()];
      const histogram = createHistogram({ ...ABOUT, bounds: BOUNDS });
      own.registerMetric(histogram as unknown as Metric);
      const library = new Histogram({ ...ABOUT, labelNames: ["outcome"], buckets: BOUNDS, registers: [theirs] });
      const cells = new Map<string, (value: number) => void>();
      for (const [outcome, one] of added) {
        if (!cells.has(outcome)) cells.set(outcome, histogram.of({ outcome }));
        cells.get(outcome)?.(one);
        library.observe({ outcome }, one);
      }
      assert.equal(await own.metrics(), await theirs.metrics());
    }),
    { numRuns: 50 },
  );
});

test("what is added in one unit may be shown in another, and zero before anything was", async () => {
  const register = new Registry();
  const histogram = createHistogram({ ...ABOUT, bounds: BOUNDS, perUnit: 1000 });
  register.registerMetric(histogram as unknown as Metric);
  const add = histogram.of({});
  assert.match(await register.metrics(), /_bucket\{le="\+Inf"\} 0\n/);
  add(250);
  const text = await register.metrics();
  assert.match(text, /_bucket\{le="0.025"\} 0\n.*_bucket\{le="1"\} 1\n/s);
  assert.match(text, /_sum 0.25\n/);
});
