/**
 * One hundred seeds of everything that can go wrong, each kind of fault alone, a crash at every append, and the
 * same bytes from the same seed. A failure prints its seed and a history shrunk to what is needed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "./chance/random.ts";
import { FAULTS, linesOf, type Step } from "./history.ts";
import { everyCrash, type PlantedBug, type RunReport, shrink, simulate } from "./simulate.ts";

const QUICK = Boolean(process.env.DROVER_QUICK);
const FIRST_SEED = Number(process.env.DROVER_SEED ?? 1);
const SEEDS = QUICK ? 2 : 100;
const STEPS = 150;
const FEW_STEPS = QUICK ? 40 : 80;

async function assertFine(report: RunReport): Promise<void> {
  if (report.complaints.length === 0) return;
  const { complaints, history } = await shrink(report);
  const broken = complaints.map(({ rule, detail }) => `[${rule}] ${detail}`).join("\n");
  assert.fail(`seed ${report.seed} breaks a rule:\n${broken}\n\n${[...linesOf(history)].join("\n")}`);
}

/** A worker joins that says which tasks it takes. */
const isChoosyJoin = (step: Step): boolean =>
  (step.do === "remote-join" && step.takes !== undefined) || (step.do === "join" && step.options.actions !== undefined);

test(`every rule holds with all faults at once, seeds ${FIRST_SEED} to ${FIRST_SEED + SEEDS - 1}`, async (context) => {
  const sums = { tasks: 0, attempts: 0, losses: 0, rateLimits: 0, crashes: 0, reopenings: 0, events: 0 };
  const rare = { resets: 0, refusedReports: 0, choosyWorkers: 0 };
  const plans = { planPuts: 0, planPauses: 0, planRemovals: 0 };
  const flows = { children: 0, rounds: 0, parkings: 0, approvals: 0, reportsWithFiles: 0 };
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    const report = await simulate({ seed, steps: STEPS });
    await assertFine(report);
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += report.figures[key];
    for (const key of ["resets", "refusedReports"] as const) rare[key] += report.figures[key];
    for (const key of Object.keys(flows) as (keyof typeof flows)[]) flows[key] += report.figures[key];
    for (const key of Object.keys(plans) as (keyof typeof plans)[]) plans[key] += report.figures[key];
    rare.choosyWorkers += report.history.steps.filter(isChoosyJoin).length;
  }
  context.diagnostic(JSON.stringify({ ...sums, ...flows, ...plans, ...rare }));
  // A simulation in which nothing goes wrong proves nothing.
  for (const [what, count] of Object.entries(QUICK ? sums : { ...sums, ...flows, ...plans, ...rare }))
    assert.ok(count > 0, `there were no ${what}`);
});

for (const fault of FAULTS)
  test(`every rule holds with faults of one kind: ${fault}`, async () => {
    for (let seed = 1; seed <= (QUICK ? 1 : 3); seed++)
      await assertFine(await simulate({ seed: FIRST_SEED + 5000 + seed, steps: FEW_STEPS, faults: new Set([fault]) }));
  });

test("every rule holds when nothing goes wrong", async () => {
  for (let seed = 1; seed <= (QUICK ? 1 : 3); seed++)
    await assertFine(await simulate({ seed: FIRST_SEED + 6000 + seed, steps: FEW_STEPS, faults: new Set() }));
});

test("a crash before or after any append loses nothing of loops, trees, approvals and files", async () => {
  for await (const report of everyCrash({ seed: 9, steps: 40, atMost: QUICK ? 5 : Number.POSITIVE_INFINITY })) {
    await assertFine(report);
    if (Object.keys(report.history.appends ?? {}).length > 0) continue;
    const { children, rounds, parkings, approvals, reportsWithFiles, refusedReports } = report.figures;
    const played = { children, rounds, parkings, approvals, reportsWithFiles, refusedReports };
    for (const [what, count] of Object.entries(played)) assert.ok(count > 0, `there were no ${what}`);
  }
});

if (!QUICK)
  test("a crash before or after any append leaves all of a plan or nothing of it", async () => {
    const played = { planPuts: 0, planPauses: 0, planRemovals: 0 };
    // In the second, workers are remote and a batch of the log has few events.
    for (const seed of [210, 126])
      for await (const report of everyCrash({ seed, steps: 30 })) {
        await assertFine(report);
        for (const key of Object.keys(played) as (keyof typeof played)[]) played[key] += report.figures[key];
      }
    for (const [what, count] of Object.entries(played)) assert.ok(count > 0, `there were no ${what}`);
  });

test("a crash before or after any append loses nothing", async () => {
  for (const seed of [FIRST_SEED + 10, FIRST_SEED + 12]) {
    for await (const report of everyCrash({ seed, steps: QUICK ? 8 : 30 })) await assertFine(report);
  }
});

if (!QUICK)
  test("a worker whose join is answered after its engine has gone does not stand for its successor", async () => {
    await assertFine(await simulate({ seed: 910_103, steps: 200 }));
  });

test("the same seed gives the same bytes", async () => {
  for (const seed of QUICK ? [21] : [21, 22, 23]) {
    const [once, again] = [await simulate({ seed, steps: 120 }), await simulate({ seed, steps: 120 })];
    assert.equal(once.headHash, again.headHash);
    assert.deepEqual(once.figures, again.figures);
  }
  assert.notEqual(
    (await simulate({ seed: 24, steps: 40 })).headHash,
    (await simulate({ seed: 25, steps: 40 })).headHash,
  );
});

test("a failing history shrinks to what is needed, and fails in the same way", async () => {
  const plant: PlantedBug = { tamper: (event) => (event.kind === "task-cancelled" ? [event, event] : [event]) };
  let failed: RunReport | null = null;
  for (let seed = 1; failed === null && seed < 20; seed++) {
    const report = await simulate({ seed, steps: 60, faults: new Set(), plant });
    if (report.complaints[0]?.rule === "ends-once") failed = report;
  }
  assert.ok(failed !== null);
  const short = await shrink(failed, plant);
  assert.equal(short.complaints[0]?.rule, "ends-once");
  assert.ok(short.history.steps.length <= 3, [...linesOf(short.history)].join("\n"));
});

test("chance is repeatable and even", () => {
  const [one, two] = [createRandom(7), createRandom(7)];
  const counts = Array.from({ length: 10 }, () => 0);
  for (let draw = 0; draw < 10_000; draw++) {
    const number = one.below(10);
    assert.equal(number, two.below(10));
    counts[number] = (counts[number] ?? 0) + 1;
  }
  for (const count of counts) assert.ok(count > 850 && count < 1150, String(counts));
});
