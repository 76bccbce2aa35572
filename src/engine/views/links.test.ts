import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskId } from "../../core/base/index.ts";
import { LINKS_MAX } from "../../protocol/index.ts";
import { createTestDrover } from "../../testing/index.ts";
import { linksOf, readLinks } from "./links.ts";

test("of very many that wait for a task the first are listed and the others counted, each once", async () => {
  const few = 3;
  await using kit = await createTestDrover({ config: { scheduler: { maxBatch: LINKS_MAX + few + 2 } } });
  const { drover } = kit;
  const later = Array.from({ length: LINKS_MAX + few }, (_, index) => ({ id: `t${index}`, action: "x", needs: ["a"] }));
  const tasks = [{ id: "a", action: "x" }, { id: "child", action: "x", parent: "a", needs: ["a"] }, ...later];
  await drover.submitBatch({ agentId: "ann", tasks });
  const { down, downTotal, omitted } = linksOf(drover.state, "a" as TaskId, () => true);
  assert.deepEqual([down.length, downTotal, omitted], [LINKS_MAX, LINKS_MAX + few + 1, few + 1]);
  assert.deepEqual(
    down.slice(0, 3).map(({ taskId, kind }) => `${kind} ${taskId}`),
    ["child child", "dependent t0", "dependent t1"],
  );
  const own = linksOf(drover.state, "a" as TaskId, (id) => id !== "child" && id !== "t0");
  assert.deepEqual([own.down[0]?.taskId, own.down.length, own.omitted], ["t1", LINKS_MAX, few - 1]);
});

test("every link is reached part by part, each direction by itself", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { maxBatch: 40 } } });
  const { drover } = kit;
  const needs = Array.from({ length: 7 }, (_, index) => ({ id: `n${index}`, action: "x" }));
  const later = Array.from({ length: 12 }, (_, index) => ({ id: `d${index}`, action: "x", needs: ["a"] }));
  const child = { id: "child", action: "x", parent: "a" };
  await drover.submitBatch({
    agentId: "ann",
    tasks: [...needs, { id: "a", action: "x", needs: needs.map(({ id }) => id) }, child, ...later],
  });
  const isSeen = (id: TaskId): boolean => id !== "d3";
  const whole = linksOf(drover.state, "a" as TaskId, isSeen);
  assert.deepEqual([whole.upTotal, whole.downTotal, whole.omitted], [7, 12, undefined]);
  for (const limit of [1, 3, 5, 12]) {
    const [up, down] = [[], []] as [string[], string[]];
    for (let page = 0; ; page++) {
      const part = linksOf(drover.state, "a" as TaskId, isSeen, {
        limit,
        upSkip: up.length,
        downSkip: down.length,
      });
      up.push(...part.up.map(({ taskId }) => taskId));
      down.push(...part.down.map(({ taskId }) => taskId));
      assert.equal(part.omitted ?? 0, 19 - up.length - down.length);
      if (part.omitted === undefined) break;
      assert.ok(page < 12, "it comes to an end");
    }
    const ids = (list: typeof whole.up): string[] => list.map(({ taskId }) => taskId);
    assert.deepEqual([up, down], [ids(whole.up), ids(whole.down)]);
  }
  const beyond = linksOf(drover.state, "a" as TaskId, isSeen, { upSkip: 99, downSkip: 99 });
  assert.deepEqual([beyond.up, beyond.down, beyond.downTotal, beyond.omitted], [[], [], 12, undefined]);
});

test("a task whose record has expired still tells what it needed, and is tied to what is remembered", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000, remember: "1h" } } });
  const { drover, clock } = kit;
  const below = { action: "x", parent: "p" };
  await drover.submitBatch({
    agentId: "ann",
    tasks: [
      { id: "p", action: "x" },
      { id: "n", action: "x" },
      { id: "a", needs: ["n", "n"], ...below },
      { id: "b", needs: { first: "a", other: "n" }, ...below },
    ],
  });
  await drover.worker({}, () => "ok");
  const up = async (id: string, isSeen = (_: TaskId) => true): Promise<string> => {
    const { up, upTotal } = await readLinks(drover, id as TaskId, isSeen);
    assert.equal(upTotal, up.length);
    return up.map(({ kind, taskId, state }) => `${kind} ${taskId} ${state}`).join();
  };
  await kit.settle();
  const before = [await up("a"), await up("b"), await up("p")];
  assert.deepEqual(before, ["parent p done,need n done", "parent p done,need a done,need n done", ""]);
  await clock.advance(5000);
  assert.deepEqual([drover.state.tasks.size, drover.state.tombstones.size], [0, 4]);
  assert.deepEqual([await up("a"), await up("b"), await up("p")], before);
  assert.equal(await up("b", (id) => id !== "n"), "parent p done,need a done", "what one may not see is left out");
  await assert.rejects(
    readLinks(drover, "z" as TaskId, () => true),
    { code: "not_found" },
  );
});
