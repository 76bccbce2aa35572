/**
 * How far a tree may grow, by real numbers: the bound of one root is reached over many parents, and by none of them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../../../test/kits/conformance/world.ts";
import { PLAIN } from "../../../test/kits/laws/histories.ts";
import { taskId } from "../base/brand.ts";
import { sentence } from "../base/refusal.ts";
import { checkInvariants } from "../invariants/index.ts";

test("100 000 tasks grow from one root and no more, and the root is done when the last has ended", () => {
  const room = { maxQueue: 1_000_000, maxPerAgent: 1_000_000, maxInFlight: 200, maxPerAgentInFlight: 200 };
  const world = createWorld({ scheduler: { ...room, resultMax: 1 }, projects: { default: { maxConcurrent: 200 } } });
  const { state } = world;
  world.join("w", { slots: 200 });
  const grow = (parent: string, id: string): ReturnType<typeof world.tryTo> =>
    world.tryTo({
      type: "submit-task",
      submission: { ...PLAIN, project: "p" as never, type: "other", id: taskId(id), parent: taskId(parent) },
      ofRunning: 1,
    });
  const fill = (parent: string): number => {
    for (let count = 0; ; count++) if (!grow(parent, `${parent}.${count}`).ok) return count;
  };
  world.submit("root", { project: "p", wait: "children", agent: PLAIN.agent });
  world.start("root");
  assert.equal(fill("root"), 1000);
  world.finish("root");
  assert.equal(state.tasks.get(taskId("root"))?.phase, "parked");
  let grown = 1000;
  for (let index = 0; index < 100; index++) {
    world.pump();
    grown += fill(`root.${index}`);
  }
  assert.equal(grown, 100_000);
  const refused = grow("root.99", "one-more");
  assert.match(refused.ok ? "" : sentence(refused.failure), /100000 tasks in the tree of root\.99/);
  assert.equal(state.tasks.get(taskId("root"))?.extra?.growth?.open, 100_000);
  world.atOnce(() => {
    for (const { id } of [...state.tasks.values()]) if (id !== taskId("root")) world.cancel(id);
    world.leave("w");
  });
  assert.equal(world.phaseOf("root"), "done");
  assert.deepEqual([state.closing.size, checkInvariants(state)], [0, []]);
});
