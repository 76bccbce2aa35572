/**
 * What workers in processes of their own have fetched ahead: long tasks behind short ones, a drain, a kill.
 *
 * Whether a worker fetches ahead hangs on how fast the machine is just then; what is promised holds either way.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, type World } from "../kits/faults/worker-processes.ts";
import { within } from "../kits/waits.ts";

const LEASE_MS = 4000;
const settings = { workers: { lease: LEASE_MS } };
const SLOTS = 2;
const BURST = 40;
const BURSTS_MAX = 200;

/** Short tasks, until the worker is given tasks ahead; answers whether it came to that. */
async function hurry({ served: { drover } }: World): Promise<boolean> {
  for (let burst = 0; burst < BURSTS_MAX; burst++) {
    await submit(drover, `quick-${burst}`, BURST, "quick");
    const ids = Array.from({ length: BURST }, (_, index) => `quick-${burst}-${index}`);
    await within("a burst of short tasks", Promise.all(ids.map((id) => drover.wait(id))));
    const [worker] = await drover.workers();
    if ((worker?.slots ?? 0) > SLOTS) return true;
  }
  return false;
}

async function submit(
  drover: World["served"]["drover"],
  name: string,
  count: number,
  action: string,
): Promise<string[]> {
  const tasks = Array.from({ length: count }, (_, index) => ({ id: `${name}-${index}`, action }));
  await drover.submitBatch({ agentId: "ann", tasks });
  return tasks.map(({ id }) => id);
}

type Worker = Awaited<ReturnType<World["startWorker"]>>;
const begunBy = ({ lines }: Worker, of: readonly string[]): string[] =>
  lines.flatMap(({ began, attempt }) => (of.includes(String(began)) ? [`${String(began)}#${String(attempt)}`] : []));

/** Each was begun once: what was given back never was before; and that cost nothing. */
function areBegunOnce(world: World, of: readonly string[], ...workers: readonly Worker[]): void {
  const begun = workers.flatMap((worker) => begunBy(worker, of).map((name) => name.replace(/#.*/, "")));
  assert.deepEqual(begun.sort(), [...of].sort());
  for (const task of world.served.drover.state.tasks.values())
    if (of.includes(task.id)) assert.deepEqual([task.losses, task.requeues, task.ownFailures], [0, 0, 0], task.id);
}

test("long tasks that were fetched ahead go to whoever has a slot for them", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", SLOTS);
  t.diagnostic(`fetches ahead: ${await hurry(world)}`);
  const ids = await submit(world.served.drover, "long", 2 * SLOTS, "linger");
  const bob = await world.startWorker("bob", SLOTS);
  await Promise.all(ids.map((id) => Promise.race([ada.said({ began: id }), bob.said({ began: id })])));
  assert.deepEqual([begunBy(ada, ids).length, begunBy(bob, ids).length], [SLOTS, SLOTS]);
  areBegunOnce(world, ids, ada, bob);
});

test("a worker that drains gives back at once what it has fetched ahead, and ends the rest", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", SLOTS);
  t.diagnostic(`fetches ahead: ${await hurry(world)}`);
  const ids = await submit(world.served.drover, "line", 2 * SLOTS, "line");
  ada.signal("SIGTERM");
  const bob = await world.startWorker("bob", 2 * SLOTS);
  await Promise.all(ids.map((id) => Promise.race([ada.said({ began: id }), bob.said({ began: id })])));
  ada.write("go");
  await ada.said({ left: "ada" });
  bob.write("go");
  const ended = await Promise.all(ids.map((id) => world.served.drover.wait(id)));
  assert.ok(ended.every(({ state }) => state === "done"));
  areBegunOnce(world, ids, ada, bob);
});

test("what a killed worker had fetched ahead is done elsewhere, no attempt of it twice", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", SLOTS);
  t.diagnostic(`fetches ahead: ${await hurry(world)}`);
  const ids = await submit(world.served.drover, "last", 20 * SLOTS, "quick");
  await ada.said({ began: ids[0] as string });
  ada.signal("SIGKILL");
  const bob = await world.startWorker("bob", SLOTS);
  const ended = await within("all that it had", Promise.all(ids.map((id) => world.served.drover.wait(id))));
  assert.ok(ended.every(({ state }) => state === "done"));
  const begun = [ada, bob].flatMap((worker) => begunBy(worker, ids));
  assert.equal(new Set(begun).size, begun.length, begun.join());
  const ends = (await world.events()).filter(({ kind }) => kind === "task-done");
  assert.equal(new Set(ends.map(({ task }) => task)).size, ends.length);
});
