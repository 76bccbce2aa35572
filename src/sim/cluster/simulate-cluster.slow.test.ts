/**
 * Clusters under faults, from seeds; and bugs put in on purpose, each of which the auditor must notice.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulateCluster } from "./simulate-cluster.ts";

type Options = Parameters<typeof simulateCluster>[0];

const FIRST = Number(process.env.DROVER_SEED ?? 4000);
const RUNS = 6;

test(`nothing is lost or doubled under faults and set clocks (seeds ${FIRST} to ${FIRST + RUNS - 1})`, async () => {
  let [epochs, settled] = [0, 0];
  for (let seed = FIRST; seed < FIRST + RUNS; seed++) {
    const report = await simulateCluster({ seed, steps: 120, nodes: 2 + (seed % 3) });
    assert.deepEqual(report.complaints, [], `seed ${seed}`);
    epochs += report.figures.epochs;
    settled += report.figures.settled;
  }
  assert.ok(epochs > 3 * RUNS, "the lead went over often");
  assert.ok(settled > 0, "calls went out and were settled");
});

test("the same seed gives the same bytes", async () => {
  const [first, second] = [
    await simulateCluster({ seed: 7, steps: 50 }),
    await simulateCluster({ seed: 7, steps: 50 }),
  ];
  assert.deepEqual(second, first);
});

const PLANTED: { readonly name: string; readonly rule: string; readonly plant: NonNullable<Options["plant"]> }[] = [
  {
    name: "a journal says that it stored what it did not",
    rule: "durable",
    plant: {
      journal: (journal, store) => ({
        ...journal,
        append: async ({ lastSeq }) => ({ type: "appended", head: { ...store.head, seq: lastSeq } }),
      }),
    },
  },
  {
    name: "two nodes get the lead of one epoch",
    rule: "one-leader",
    plant: {
      journal: (journal, store) => ({
        ...journal,
        acquireLead: (...call) => {
          Object.assign(store, { head: { ...store.head, epoch: 0 } });
          return journal.acquireLead(...call);
        },
      }),
    },
  },
  {
    name: "a node measures what passes by a clock that is set",
    rule: "time",
    plant: {
      clock: ({ now, elapsed, ringAt, ...clock }) => ({
        ...clock,
        now,
        elapsed: now,
        ringAt: (at, ring) => ringAt(at - now() + elapsed(), ring),
      }),
    },
  },
  {
    name: "a caller is told of a result that is not stored",
    rule: "durable",
    plant: { tamper: (event) => (event.kind === "task-done" ? [] : [event]) },
  },
];

for (const { name, rule, plant } of PLANTED)
  test(`a planted bug is noticed: ${name}`, async () => {
    const rules = new Set<string>();
    for (let seed = 1; seed <= 5 && !rules.has(rule); seed++)
      for (const complaint of (await simulateCluster({ seed, steps: 120, plant })).complaints)
        rules.add(complaint.rule);
    assert.ok(rules.has(rule), `complaints: ${[...rules].join(", ")}`);
  });
