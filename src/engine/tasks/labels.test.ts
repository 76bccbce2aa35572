/**
 * Tasks found by their labels: in pages, when many are cancelled, and in the feed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { candidates } from "./read-tasks.ts";

const task = (id: string, labels?: Record<string, string>) => ({
  id,
  agentId: "ann",
  action: "build",
  ...(labels === undefined ? {} : { labels }),
});

async function some(config = {}): Promise<TestDrover> {
  const kit = await createTestDrover({ config });
  const { drover } = kit;
  await drover.submit(task("plain"));
  await drover.submit(task("a", { team: "web", run: "1" }));
  await drover.submit(task("b", { team: "web", run: "2" }));
  await drover.submit(task("c", { team: "ops", where: "a=b,c" }));
  return kit;
}

const idsOf = async ({ drover }: TestDrover, label: string | readonly string[], more = {}): Promise<string[]> =>
  (await drover.tasks({ label, ...more })).tasks.map(({ taskId }) => taskId);

test("a page has the tasks with a label, or with all of several, in the order of submission", async () => {
  await using kit = await some();
  assert.deepEqual(await idsOf(kit, "team=web"), ["a", "b"]);
  assert.deepEqual(await idsOf(kit, ["team=web", "run=2"]), ["b"]);
  assert.deepEqual(await idsOf(kit, ["team=web", "team=ops"]), []);
  assert.deepEqual(await idsOf(kit, "where=a=b,c"), ["c"]);
  assert.deepEqual(await idsOf(kit, "team=we"), [], "all of its text, or nothing");
  assert.deepEqual(await idsOf(kit, "team=web", { state: "done" }), []);
  const first = await kit.drover.tasks({ label: "team=web", limit: 1 });
  assert.deepEqual(await idsOf(kit, "team=web", { cursor: first.nextCursor }), ["b"]);
  assert.deepEqual((await kit.drover.task("c")).labels, { team: "ops", where: "a=b,c" });
});

test("what is looked at are the tasks of the rarest label, and no others", async () => {
  await using kit = await some();
  const { state } = kit.drover;
  const looked = (...labels: string[]): string[] =>
    Array.from(candidates(state, { labels, group: null, parent: null, root: null }), ({ id }) => id);
  assert.deepEqual(looked("team=web", "run=2"), ["b"]);
  assert.deepEqual(looked("run=2", "team=web"), ["b"]);
  assert.deepEqual(looked("team=web", "no=such"), []);
});

test("one that was turned away is found by its labels too", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { maxQueue: 1 } } });
  await kit.drover.submit(task("a", { team: "web" }));
  for (const id of ["b", "c"])
    await assert.rejects(kit.drover.submit(task(id, { team: id === "b" ? "web" : "ops" })), { code: "queue_full" });
  assert.deepEqual(await idsOf(kit, "team=web", { state: ["queued", "rejected"] }), ["a", "b"]);
});

test("what has a label is cancelled, and a misspelt one is refused", async () => {
  await using kit = await some();
  assert.equal((await kit.drover.cancelWhere({ label: ["team=web", "run=1"] })).count, 1);
  assert.equal((await kit.drover.cancelWhere({ label: "team=web" })).count, 1);
  assert.deepEqual(
    (await kit.drover.tasks()).tasks.map(({ state }) => state),
    ["queued", "cancelled", "cancelled", "queued"],
  );
  for (const label of ["", "team", "=web", "a b=c", 5, [], ["team"], Array(33).fill("a=b")])
    await assert.rejects(kit.drover.cancelWhere({ label } as never), { code: "bad_request", message: /^label/ });
});

test("the feed has the events of tasks with a label, also of one whose record is gone", async () => {
  await using kit = await some({ scheduler: { resultTtl: "1m" } });
  await kit.drover.worker({}, () => 1);
  await kit.settle();
  const eventsOf = async (label: string): Promise<string[]> => {
    const events: string[] = [];
    for await (const { task: id, kind } of kit.drover.events({ label })) events.push(`${id} ${kind}`);
    return events;
  };
  const life = ["task-submitted", "task-assigned", "task-done"].map((kind) => `c ${kind}`);
  assert.deepEqual(await eventsOf("team=ops"), life);
  await kit.clock.advance(120_000);
  assert.equal(kit.drover.state.tasks.size, 0);
  assert.deepEqual(await eventsOf("team=ops"), life);
  assert.deepEqual(await eventsOf("team=none"), []);
  await kit.drover.submit(task("d", { team: "ops" }));
  await kit.settle();
  assert.deepEqual((await eventsOf("team=ops")).length, life.length + 3);
});
