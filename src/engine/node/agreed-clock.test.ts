/**
 * A node whose clock is the odd one out goes by the date of the others, and no log is taken along by it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, type TestNode } from "../../../test/kits/cluster.ts";
import { expireLead } from "../../log/journal/memory-journal.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createAgreedClock } from "./agreed-clock.ts";

const HOUR_MS = 3_600_000;
const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

function world() {
  const own = createHandClock({ at: 1_767_225_600_000 });
  let changes = 0;
  const { clock, judge } = createAgreedClock(own, () => changes++);
  return { own, judge, byMs: () => clock.now() - own.now(), changes: () => changes };
}

test("what most of all clocks agree on is the date, this node's own counted", () => {
  const cases: readonly [aheadMs: number[], byMs: number][] = [
    [[], 0],
    [[-HOUR_MS], 0],
    [[-HOUR_MS, -HOUR_MS - 900], -HOUR_MS],
    [[HOUR_MS, HOUR_MS + 900, HOUR_MS + 400], HOUR_MS + 400],
    [[-HOUR_MS, 0], 0],
    [[-HOUR_MS, HOUR_MS], 0],
    [[-HOUR_MS, -HOUR_MS, 0], 0],
    [[-HOUR_MS, -HOUR_MS, -HOUR_MS, 0], -HOUR_MS],
    [[4000, 4900], 0],
  ];
  for (const [aheadMs, expected] of cases) {
    const { judge, byMs } = world();
    judge(aheadMs, 0);
    assert.equal(byMs(), expected, aheadMs.join());
  }
});

test("nodes of whose clocks nothing is sure yet count among all, and stand for no date", () => {
  const cases: readonly [aheadMs: number[], unsure: number, byMs: number][] = [
    [[HOUR_MS, HOUR_MS], 1, 0],
    [[HOUR_MS, HOUR_MS, HOUR_MS], 1, HOUR_MS],
    [[HOUR_MS, HOUR_MS, HOUR_MS], 2, 0],
    [[], 3, 0],
  ];
  for (const [aheadMs, unsure, expected] of cases) {
    const { judge, byMs } = world();
    judge(aheadMs, unsure);
    assert.equal(byMs(), expected, `${aheadMs.join()} and ${unsure}`);
  }
  const { judge, byMs } = world();
  judge([HOUR_MS, HOUR_MS], 0);
  judge([0], 1);
  assert.equal(byMs(), 0, "two of three have its date again");
});

test("a move stays where nobody can say better, and is not made anew for what is measured a little differently", () => {
  const { judge, byMs, changes } = world();
  judge([-HOUR_MS, -HOUR_MS], 0);
  for (const aheadMs of [[-HOUR_MS], [], [-HOUR_MS - 3000, -HOUR_MS - 3000]]) {
    judge(aheadMs, 0);
    assert.equal(byMs(), -HOUR_MS, aheadMs.join());
  }
  assert.equal(changes(), 1);
  judge([-2 * HOUR_MS, -2 * HOUR_MS], 0);
  assert.equal(byMs(), -2 * HOUR_MS);
  judge([0, -HOUR_MS], 0);
  assert.equal(byMs(), 0, "most have its date again");
  assert.equal(changes(), 3);
});

test("a clock that is set is not moved any more by what was measured before", () => {
  const { own, judge, byMs } = world();
  judge([-HOUR_MS, -HOUR_MS], 0);
  own.turn(HOUR_MS);
  assert.equal(byMs(), -HOUR_MS, "time that passes sets no clock");
  own.setWall(own.now() - HOUR_MS);
  assert.equal(byMs(), 0);
});

test("a node that starts with a clock far ahead, and leads, does not take log time along", async (context) => {
  for (const aheadMs of [24 * HOUR_MS, 240_000]) {
    const { nodes, store, settle, clock, aheadMs: skews, open } = await createCluster(context, ["a", "b"]);
    const [a, b] = nodes as [TestNode, TestNode];
    await a.life().drover.submit(task("t", { deadline: clock.now() + 200_000 }));
    skews.set("c", aheadMs);
    const c = await open("c");
    await clock.advance(6000);
    for (const node of [a, b]) {
      node.journal.fault({ cut: "both" });
      expireLead(store);
      await clock.advance(4000);
    }
    await settle();
    assert.equal(c.life().role, "leader");
    await clock.advance(120_000);
    const { drover } = c.life();
    await drover.submit(task("u"));
    assert.ok(Math.abs(drover.state.at - clock.now()) <= 1000, "log time is where the others' clocks were");
    assert.equal((await drover.task("t")).state, "queued");
    const said = (word: RegExp): string[] => c.warnings.filter((line) => word.test(line));
    assert.ok(said(/THE CLOCKS .* log time goes by theirs/).length > 0);
    assert.deepEqual(said(/THE CLOCK /), [], "its own is compared with nothing that it wrote");
  }
});

test("a leader whose clock is found to be the odd one brings log time back slowly", async (context) => {
  const { nodes, clock, aheadMs, open } = await createCluster(context, []);
  aheadMs.set("a", HOUR_MS);
  for (const id of ["a", "b", "c"]) await open(id);
  const { drover } = (nodes[0] as TestNode).life();
  await drover.submit(task("t"));
  const ahead = (): number => drover.state.at - clock.now();
  assert.ok(ahead() > HOUR_MS - 5000, "who starts alone is believed");
  await clock.advance(HOUR_MS);
  await drover.submit(task("u"));
  assert.ok(ahead() > 0 && ahead() < HOUR_MS / 2 + 10_000, `${ahead()}`);
  assert.ok(
    nodes[0]?.warnings.some((line) => /THE CLOCK that most nodes agree on was found 3[56]\d\d s behind/.test(line)),
  );
});
