/**
 * What `why` says of the workers: what they say of themselves, and what each of them lacks.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, type World, workerSettings } from "../../../test/kits/conformance/world.ts";
import { join, kitWith } from "../../../test/kits/hand-worker.ts";
import { taskId, workerId } from "../base/brand.ts";
import { instant, type Why, why } from "../index.ts";
import type { WhyCode } from "./conditions.ts";

const saidIn = ({ conditions }: Pick<Why, "conditions">, code: WhyCode): string =>
  conditions.find((one) => one.code === code)?.detail ?? "";

test("a worker that takes less than it could says why, once it is full", async () => {
  await using kit = await kitWith();
  const ann = await join(kit, { slots: 4 });
  await ann.sync({ want: 2, note: "laptop is hot" });
  const submit = async (id: string): Promise<string> => {
    await kit.drover.submit({ id, agentId: "a", action: "build" });
    await kit.settle();
    const { conditions } = await kit.drover.why(id);
    return conditions.find(({ code }) => code === "worker-room")?.detail ?? "";
  };
  assert.equal(await submit("t1"), "");
  assert.equal(await submit("t2"), "");
  assert.match(await submit("t3"), /without a free slot; worker ann: laptop is hot$/);
  await ann.sync({ want: 4, note: "no git here" });
  assert.equal(await submit("t4"), "", "it has all its slots again");
  await submit("t5");
  assert.doesNotMatch(await submit("t6"), /git/, "what it says while it is merely full is not why");
});

const whyOf = (world: World, id: string): Why => {
  const answer = why(world.state, taskId(id), instant(world.now()));
  assert.ok(answer.ok);
  return answer.value;
};

test("a worker counts under one reason, the one that would have to change first, so the counts add up", () => {
  const world = createWorld();
  const elsewhere = { actions: ["other"], types: null, projects: null };
  for (const [id, status] of [
    ["a-refuses", "overloaded"],
    ["b-refuses", "ready"],
  ] as const)
    world.must({
      type: "join-worker",
      worker: workerId(id),
      kind: "pull",
      session: "s",
      settings: workerSettings({ status }),
      takes: elsewhere,
    });
  world.join("c-lacks", { status: "draining", cpu: 100 });
  world.join("d-small", { capabilities: ["gpu"], cpu: 500 });
  world.join("e-drains", { capabilities: ["gpu"], status: "draining" });
  world.join("f-full", { capabilities: ["gpu"], cpu: 1500 });
  world.join("g-short", { capabilities: ["gpu"], cpu: 1500, slots: 2 });
  for (const id of ["1", "2"]) world.submit(id, { capabilities: ["gpu"], cpu: 1000 });
  world.submit("t", { capabilities: ["gpu"], cpu: 1000 });
  const answer = whyOf(world, "t");
  assert.equal(
    saidIn(answer, "worker-room"),
    "none of 7 workers has room for it: 2 not taking such tasks, 1 lacking gpu, 1 too small for it, " +
      "1 not taking work, 1 without a free slot, 1 short of CPU",
  );
  assert.equal(saidIn(answer, "no-workers"), "5 of 7 known workers are here");
  assert.equal(saidIn(answer, "never-fits"), "2 of 5 workers could run it if they were empty");
});

test("of a single worker no number is said, and of one of several it is one", () => {
  const world = createWorld();
  world.join("w");
  world.submit("first");
  world.submit("t");
  assert.equal(saidIn(whyOf(world, "t"), "worker-room"), "the one worker has no room for it: without a free slot");
  assert.equal(saidIn(whyOf(world, "t"), "no-workers"), "the one known worker is here");
  assert.equal(saidIn(whyOf(world, "t"), "never-fits"), "the one worker could run it if it were empty");
  world.join("x", { status: "draining" });
  assert.equal(saidIn(whyOf(world, "t"), "no-workers"), "1 of 2 known workers is here");
  world.leave("x");
  world.submit("g", { capabilities: ["gpu", "tpu"] });
  assert.equal(saidIn(whyOf(world, "g"), "worker-room"), "the one worker has no room for it: lacking gpu, tpu");
  world.finish("first");
  assert.equal(saidIn(whyOf(world, "g"), "worker-room"), "the one worker has no room for it: lacking gpu, tpu");
  world.leave("w");
  assert.equal(saidIn(whyOf(world, "g"), "worker-room"), "there is no worker");
});
