import assert from "node:assert/strict";
import { test } from "node:test";
import { network, type Post, pushWorld } from "../../../test/kits/push-world.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";

const nth = (posts: readonly Post[], index: number): Post => {
  const post = posts.at(index);
  assert.ok(post !== undefined, `no request ${index}`);
  return post;
};
type Kit = Awaited<ReturnType<typeof pushWorld>>;
const statusOf = async ({ drover }: Kit, id: string) => (await drover.workers()).find((one) => one.id === id)?.status;

test("a worker that answers is probed three times a lease and keeps it", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  const before = browser.probes();
  await kit.clock.advance(60_000);
  const probes = browser.probes() - before;
  assert.ok(probes >= 17 && probes <= 19, `${probes} probes in six leases`);
  assert.deepEqual([await kit.stateOf("t"), browser.posts.length, kit.changes], ["running", 1, ["b alive"]]);
});

test("a dead worker is not renewed: given up a lease after its last sign of life, its tasks queued again", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  browser.be("dead");
  await kit.clock.advance(4000);
  assert.deepEqual([kit.changes, await statusOf(kit, "b")], [["b alive", "b silent"], "busy"]);
  await kit.clock.advance(6000);
  assert.deepEqual([await statusOf(kit, "b"), await kit.stateOf("t")], ["unreachable", "queued"]);
});

test("a worker that is there again before its lease ends keeps its place; what broke is queued again", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  browser.be("dead");
  await kit.settle();
  browser.be("up");
  await kit.clock.advance(4000);
  const again = nth(browser.posts, 1);
  assert.equal(again.request.headers["X-Drover-Attempt"], "2");
  again.answer(200);
  await kit.settle();
  assert.deepEqual([await kit.stateOf("t"), kit.changes], ["done", ["b alive", "b silent", "b alive"]]);
});

test("a worker that comes back after it was given up goes on, and is posted its task again", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  browser.be("dead");
  await kit.clock.advance(600_000);
  assert.equal(await statusOf(kit, "b"), "unreachable");
  browser.be("up");
  await kit.clock.advance(4000);
  nth(browser.posts, 1).answer(200);
  await kit.settle();
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.attempt, await statusOf(kit, "b")], ["done", 2, "idle"]);
});

test("one that is gone for an hour is forgotten, and can register again", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.settle();
  browser.be("dead");
  await kit.clock.advance(3_630_000);
  assert.deepEqual([kit.driver.standing().workers, await kit.drover.workers()], [0, []]);
  browser.be("up");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  assert.equal(browser.posts.length, 1);
});

test("a silence is measured by what passes: a wall clock that is set back keeps nobody alive", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  browser.be("dead");
  await kit.clock.advance(60_000);
  kit.clock.setWall(kit.clock.now() - 86_400_000);
  await kit.clock.advance(3_600_000);
  assert.deepEqual([kit.driver.standing().workers, await kit.drover.workers()], [0, []]);
});

test("a worker that is too busy to answer a probe keeps its lease and gets nothing new", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, slots: 2 });
  await kit.submit("t");
  browser.be("busy");
  await kit.clock.advance(10_000);
  await kit.submit("u");
  await kit.clock.advance(300_000);
  assert.deepEqual([await kit.stateOf("t"), browser.posts.length, kit.changes], ["running", 1, ["b alive"]]);
  browser.be("up");
  nth(browser.posts, 0).answer(200, "done at last");
  await kit.settle();
  assert.deepEqual([await kit.stateOf("t"), browser.posts.length], ["done", 2]);
});

test("one that has nothing to do and does not answer is not there", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  browser.be("busy");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  await kit.clock.advance(20_000);
  assert.deepEqual([await statusOf(kit, "b"), browser.posts.length], ["unreachable", 0]);
  browser.be("up");
  await kit.clock.advance(10_000);
  assert.equal(browser.posts.length, 1);
});

test("an answer that comes while the probe gets none is a sign of life", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  browser.be("busy");
  await kit.clock.advance(3400);
  nth(browser.posts, 0).answer(200);
  await kit.settle();
  assert.equal(await kit.stateOf("t"), "done", "reported at once, not when the probe is over");
});

test("a worker that breaks off one request and is there has failed that one", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, capabilities: ["tab:a"] });
  await kit.submit("t", { tabId: "a" });
  nth(browser.posts, 0).cut();
  await kit.settle();
  const task = await kit.drover.task("t");
  assert.deepEqual(
    [task.state, task.error],
    ["failed", "its outcome is unknown: its worker broke off the connection: cut"],
  );
});

test("a worker that cannot be reached costs the task no attempt, and another takes it", async () => {
  await using kit = await pushWorld();
  const [gone, there] = [kit.instance("gone:1"), kit.instance("there:1")];
  await kit.driver.join({ id: "a-gone", endpoint: gone.endpoint });
  await kit.settle();
  gone.be("dead");
  await kit.submit("t", { maxAttempts: 1 });
  await kit.driver.join({ id: "b-there", endpoint: there.endpoint });
  await kit.clock.advance(12_000);
  nth(there.posts, 0).answer(200);
  await kit.settle();
  assert.equal(await kit.stateOf("t"), "done");
});

test("one that registers before it listens joins once it does", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  browser.be("dead");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  await kit.clock.advance(5000);
  assert.deepEqual([browser.posts.length, kit.changes], [0, []]);
  browser.be("up");
  await kit.clock.advance(4000);
  assert.deepEqual([browser.posts.length, kit.changes], [1, ["b alive"]]);
});

test("a lease that is changed while it runs is the one that counts", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  await kit.drover.reload({ workers: { lease: "1s" } });
  await kit.clock.advance(60_000);
  assert.equal(await kit.stateOf("t"), "running");
  const before = browser.probes();
  await kit.clock.advance(10_000);
  assert.ok(browser.probes() - before >= 28, `${browser.probes() - before} probes in ten leases`);
  assert.equal(browser.posts.length, 1);
});

test("stop waits for what is under way and reports it; the rest is the next server's", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, slots: 3 });
  for (const id of ["t", "u"]) await kit.submit(id);
  const stopped = kit.driver.stop({ graceMs: 5000 });
  await kit.submit("late");
  nth(browser.posts, 0).answer(200);
  await kit.clock.advance(4999);
  assert.deepEqual([await kit.stateOf("t"), browser.posts.length], ["done", 2]);
  assert.equal(nth(browser.posts, 1).request.signal.aborted, false);
  await kit.clock.advance(1);
  await stopped;
  assert.equal(nth(browser.posts, 1).request.signal.aborted, true);
  await kit.driver.stop();
  assert.deepEqual(await kit.stateOf("late"), "queued");
});

test("stop ends as soon as the last is reported", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  const stopped = kit.driver.stop({ graceMs: 60_000 });
  await kit.settle();
  nth(browser.posts, 0).answer(200);
  await stopped;
  assert.equal(await kit.stateOf("t"), "done");
});

test("after a restart the push workers of the log are taken up, under their ids, with all they offer", async () => {
  const net = network();
  const browser = net.instance("browser:1");
  const [drained, gone] = [net.instance("drained:1"), net.instance("gone:1")];
  const first = createMemoryLog();
  const kit = await pushWorld({ net, log: { ...first, close: async () => {} } });
  const offer = { slots: 2, capabilities: ["tab:a"], zone: "z", resources: { cpuMillicores: 500, memoryBytes: 1024 } };
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, path: "/do/{taskId}", ...offer });
  await kit.driver.join({ id: "drained", endpoint: drained.endpoint });
  await kit.drover.remote.drain("drained");
  await kit.driver.join({ id: "gone", endpoint: gone.endpoint });
  await kit.drover.remote.leave("gone");
  await kit.submit("t", { tabId: "a", onLoss: "retry" });
  assert.equal(browser.posts.length, 1);
  await kit[Symbol.asyncDispose]();

  await using next = await pushWorld({ net, log: first, at: kit.clock.now() + 1000 });
  await next.driver.resume();
  await next.settle();
  assert.deepEqual([next.driver.standing().workers, next.changes], [1, ["b alive"]]);
  const [worker] = (await next.drover.workers()).filter(({ id }) => id === "b");
  assert.partialDeepStrictEqual(worker, {
    kind: "push",
    endpoint: "http://browser:1/",
    path: "/do/{taskId}",
    ...offer,
  });
  const { request, answer } = nth(browser.posts, 1);
  assert.deepEqual([request.url.href, request.headers["X-Drover-Attempt"]], ["http://browser:1/do/t", "2"]);
  answer(200);
  await next.settle();
  assert.equal(await next.stateOf("t"), "done");
});
