/**
 * What workers of another process fetch ahead, and give back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join, kitWith, one, submit } from "../../../test/kits/hand-worker.ts";
import type { AttemptRef } from "../../protocol/index.ts";

const names = (refs: readonly AttemptRef[]): string[] => refs.map(({ taskId, attempt }) => `${taskId}#${attempt}`);

async function withTasks(count: number, config: object = {}) {
  const kit = await kitWith(config);
  const ann = await join(kit, { slots: 2 });
  const ids = Array.from({ length: count }, (_, index) => `t${index}`);
  for (const id of ids) await submit(kit, id);
  return { kit, ann, ids };
}

test("joining says that tasks are given ahead, and a sync is given as many as it says beyond the slots", async () => {
  const { kit, ann } = await withTasks(9);
  assert.equal(ann.ahead, true);
  const first = await ann.sync({ want: 9, running: [] });
  assert.deepEqual(names(first.assignments), ["t0#1", "t1#1"], "of itself it is given no more than it has slots");
  const running = first.assignments.map(({ taskId }) => one(taskId));
  await ann.sync({ want: 3, ahead: 3, running });
  const more = await ann.sync({ want: 3, ahead: 3, running });
  assert.deepEqual(names(more.assignments), ["t2#1", "t3#1", "t4#1"]);
  await kit.drover.close();
});

test("what is fetched ahead counts in every limit", async () => {
  const { kit, ann } = await withTasks(9, { scheduler: { maxInFlight: 3 } });
  await ann.sync({ want: 9, ahead: 7, running: [] });
  const { assignments } = await ann.sync({ want: 9, ahead: 7 });
  assert.deepEqual(names(assignments), ["t0#1", "t1#1", "t2#1"]);
  await kit.drover.close();
});

test("where the express lane may be used nothing is ahead, so the next slot is for what is critical", async () => {
  const lane = (maxPriority: "critical" | "high") => ({ maxPriority });
  const { kit, ann } = await withTasks(9, { projects: { default: { ...lane("critical"), maxConcurrent: 100 } } });
  await ann.sync({ want: 9, ahead: 7, running: [] });
  const full = await ann.sync({ want: 7, ahead: 7, running: [one("t0"), one("t1")] });
  assert.deepEqual(names(full.assignments), [], "it has two slots, and nothing beyond them");
  await submit(kit, "now", { priority: "critical" });
  const told = { want: 8, ahead: 7, running: [one("t1")], results: [{ ...one("t0"), outcome: "done" as const }] };
  await ann.sync(told);
  const { assignments } = await ann.sync({ want: 8, ahead: 7, running: [one("t1")] });
  assert.deepEqual(names(assignments), ["now#1"]);
  await kit.drover.putProject("default", lane("high"));
  await ann.sync({ want: 3, ahead: 3, running: [one("t1"), one("now")] });
  const { assignments: ahead } = await ann.sync({ want: 3, ahead: 3, running: [one("t1"), one("now")] });
  assert.deepEqual(names(ahead), ["t2#1", "t3#1", "t4#1"], "the lane is shut, and short tasks are fetched ahead again");
  await kit.drover.close();
});

test("what is given back is queued again at no cost, named by then or not, and is the next to start", async () => {
  const { kit, ann } = await withTasks(4);
  await ann.sync({ want: 4, ahead: 2, running: [] });
  await ann.sync({ want: 0, running: [one("t0"), one("t1"), one("t2")] });
  const told = { want: 0, running: [one("t0"), one("t1")], unbegun: [one("t2"), one("t3")] };
  assert.deepEqual((await ann.sync(told)).assignments, []);
  for (const id of ["t2", "t3"]) {
    const { state, attempt } = await kit.drover.task(id);
    assert.deepEqual([state, attempt], ["queued", 1]);
    const record = [...kit.drover.state.tasks.values()].find((task) => task.id === id);
    const { losses, ownFailures, requeues } = record ?? {};
    assert.deepEqual([losses, ownFailures, requeues], [0, 0, 0]);
  }
  await ann.sync({ want: 1, running: [one("t0")], results: [{ ...one("t1"), outcome: "done" }] });
  const { assignments } = await ann.sync({ want: 1, running: [one("t0")] });
  assert.deepEqual(names(assignments), ["t2#2"]);
  await kit.drover.close();
});

test("what is given back charges its project nothing, and says nothing of what its kind uses", async () => {
  const { kit, ann } = await withTasks(2);
  const told = (): unknown => {
    const [project] = kit.drover.state.projects.values();
    const { charged, level, chargesOut, reserved, means } = project ?? {};
    const { ends } = kit.drover.state.totals;
    return { charged, level, chargesOut, reserved, means: [...(means ?? [])], ends };
  };
  await ann.sync({ want: 0, running: [one("t0"), one("t1")] });
  assert.deepEqual(told(), { charged: 22_000, level: 22_000, chargesOut: 22_000, reserved: 0, means: [], ends: 0 });
  await ann.sync({ want: 0, running: [], unbegun: [one("t0"), one("t1")] });
  assert.deepEqual(told(), { charged: 0, level: 0, chargesOut: 0, reserved: 0, means: [], ends: 0 });
  await kit.drover.close();
});

test("what was used under the name of an attempt that is given back is booked all the same", async () => {
  const { kit, ann } = await withTasks(1);
  await ann.sync({ want: 1, running: [] });
  await ann.sync({ want: 0, running: [{ ...one("t0"), usage: { inputTokens: 30, outputTokens: 12 } }] });
  await ann.sync({ want: 0, running: [], unbegun: [one("t0")] });
  const [project] = await kit.drover.projects();
  assert.deepEqual([project?.spent, project?.reserved, project?.charged], [42, 0, 1042]);
  await kit.drover.close();
});

test("only what the worker holds can be given back, and saying it twice changes nothing", async () => {
  const { kit, ann } = await withTasks(2);
  await ann.sync({ want: 2, running: [] });
  await ann.sync({ want: 0, running: [one("t0"), one("t1")] });
  const bob = await kit.drover.remote.join({ id: "bob" });
  const foreign = { session: bob.session, n: 1, want: 0, unbegun: [one("t0"), one("t1", 2), one("nobody")] };
  await kit.drover.remote.sync("bob", foreign);
  assert.equal((await kit.drover.task("t0")).state, "running");
  const told = { want: 0, running: [one("t0")], unbegun: [one("t1")] };
  await ann.sync(told);
  await ann.sync(told);
  assert.deepEqual([(await kit.drover.task("t0")).state, (await kit.drover.task("t1")).state], ["running", "queued"]);
  // By now it runs elsewhere, as another attempt: what is said of the first is of no concern to that.
  await kit.drover.remote.sync("bob", { session: bob.session, n: 2, want: 1, running: [] });
  await kit.drover.remote.sync("bob", { session: bob.session, n: 3, want: 0, running: [one("t1", 2)] });
  await ann.sync(told);
  assert.deepEqual((await kit.drover.task("t1")).worker, "bob");
  await kit.drover.close();
});

test("a task that is given back ten times in a row rests, longer each time, at no cost", async () => {
  const { kit, ann } = await withTasks(1);
  const giveBack = async (): Promise<string[]> => {
    const { assignments } = await ann.sync({ want: 2, running: [] });
    await ann.sync({ want: 0, running: [], unbegun: assignments.map(({ taskId, attempt }) => ({ taskId, attempt })) });
    return names(assignments);
  };
  for (let round = 1; round <= 10; round++) assert.deepEqual(await giveBack(), [`t0#${round}`]);
  assert.deepEqual(await giveBack(), []);
  await kit.clock.advance(1250);
  assert.deepEqual(await giveBack(), ["t0#11"]);
  await kit.clock.advance(1250);
  assert.deepEqual(await giveBack(), []);
  await kit.clock.advance(1250);
  const { assignments } = await ann.sync({ want: 2, running: [] });
  assert.deepEqual(names(assignments), ["t0#12"]);
  const task = [...kit.drover.state.tasks.values()][0];
  assert.deepEqual([task?.requeues, task?.losses, task?.ownFailures], [0, 0, 0]);
  const [project] = await kit.drover.projects();
  assert.deepEqual([project?.spent, project?.charged], [0, 11_000], "only the start that is under way");
  await kit.drover.close();
});

test("a task that began between two returns has not been given back in a row", async () => {
  const { kit, ann } = await withTasks(1);
  for (let round = 1; round <= 20; round++) {
    const [given] = (await ann.sync({ want: 2, running: [] })).assignments;
    const attempt = one("t0", given?.attempt);
    const hasBegun = round % 9 === 0;
    const ended = hasBegun ? { results: [{ ...attempt, outcome: "requeue" as const }] } : { unbegun: [attempt] };
    assert.equal(given?.attempt, round);
    await ann.sync({ want: 0, running: [], ...ended });
    if (hasBegun) await kit.clock.advance(5000);
  }
  await kit.drover.close();
});

test("what a worker fetches ahead is not shown as slots of its own, and waits only where no slot is free", async () => {
  const { kit, ann } = await withTasks(0);
  await ann.sync({ want: 4, ahead: 2, running: [] });
  for (const id of ["a0", "a1"]) await submit(kit, id);
  const bob = await kit.drover.remote.join({ id: "bob", slots: 4 });
  await kit.drover.remote.sync("bob", { session: bob.session, n: 1, want: 4 });
  for (const id of ["b0", "b1", "b2", "b3", "a2", "a3"]) await submit(kit, id);
  const held = (await kit.drover.workers()).map(({ id, slots, inFlight, tasks }) => ({ id, slots, inFlight, tasks }));
  assert.deepEqual(held, [
    { id: "ann", slots: 2, inFlight: 4, tasks: ["a0", "a1", "a2", "a3"] },
    { id: "bob", slots: 4, inFlight: 4, tasks: ["b0", "b1", "b2", "b3"] },
  ]);
  await kit.drover.close();
});

for (const [strategy, zone] of [
  ["least-loaded", null],
  ["affinity", "z"],
] as const)
  test(`where it would wait a task goes only if no worker has a free slot, by ${strategy}`, async () => {
    const kit = await kitWith({ scheduler: { placement: { strategy, preferLocality: true } } });
    const ann = await join(kit, { slots: 1, zone: "z" });
    await ann.sync({ want: 1, running: [] });
    await submit(kit, "a0");
    await ann.sync({ want: 1, ahead: 1, running: [one("a0")] });
    const bob = await kit.drover.remote.join({ id: "bob", slots: 4, zone: "z" });
    await kit.drover.remote.sync("bob", { session: bob.session, n: 1, want: 4, running: [] });
    for (const id of ["b0", "b1", "b2", "b3"]) await submit(kit, id, { ...(zone === null ? {} : { zone }) });
    const workers = await kit.drover.workers();
    assert.deepEqual(
      workers.map(({ tasks }) => tasks),
      [["a0"], ["b0", "b1", "b2", "b3"]],
    );
    await kit.drover.close();
  });

test("a worker that has room and never names what it was given does not keep it, however much it wanted", async () => {
  const { kit, ann } = await withTasks(6);
  const told = { want: 6, ahead: 4, running: [] as AttemptRef[] };
  await ann.sync(told);
  assert.equal((await ann.sync(told)).assignments.length, 6);
  for (let leases = 0; leases < 8; leases++) {
    await kit.clock.advance(4000);
    await ann.sync({ want: 4, ahead: 4, running: [one("t0"), one("t1")] });
  }
  assert.ok((await kit.drover.task("t2")).attempt > 1, "after three leases it is queued again");
  await kit.drover.close();
});
