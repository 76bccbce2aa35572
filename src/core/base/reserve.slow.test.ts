/**
 * What is kept for those who have little, at its edges.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";
import { isKeptForOthers, keptOf } from "./reserve.ts";

const rows: [max: number, used: number, mine: number, isKept: boolean][] = [
  [1000, 899, 899, false],
  [1000, 900, 10, true],
  [1000, 900, 9, false],
  [1000, 999, 9, false],
  [10, 8, 8, false],
  [10, 9, 9, true],
  [10, 9, 0, false],
  [9, 8, 8, false],
];
for (const [max, used, mine, isKept] of rows)
  test(`${used} of ${max} taken, ${mine} by one: what is left is ${isKept ? "" : "not "}kept from it`, () =>
    assert.equal(isKeptForOthers(max, used, mine), isKept));

test("where there are fewer than ten nothing is kept", () => assert.deepEqual([9, 10].map(keptOf), [0, 1]));

test("providers that only reports of tasks name use up nine tenths of the gates", async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxInFlight: 2000, maxPerAgentInFlight: 2000 } } });
  const limited = Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 1000 });
  for (let n = 0; n < 1000; n++)
    await kit.drover.submit({ agentId: "rude", action: "x", project: `p${n % 20}`, provider: `made-up-${n}` });
  await kit.drover.worker({ slots: 2000 }, () => Promise.reject(limited));
  await kit.settle();
  await kit.clock.advance(2000);
  assert.equal(kit.drover.state.gates.size, 900);
  assert.equal((await kit.drover.permits.ask({ gate: "of-calm", project: "calm" })).status, "granted");
  const closed = kit.drover.close();
  await kit.clock.advance(10_000);
  await closed;
});
