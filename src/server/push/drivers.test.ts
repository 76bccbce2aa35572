import assert from "node:assert/strict";
import { test } from "node:test";
import { type Post, pushWorld } from "../../../test/kits/push-world.ts";

const nth = (posts: readonly Post[], index: number): Post => {
  const post = posts.at(index);
  assert.ok(post !== undefined, `no request ${index}`);
  return post;
};

test("a worker with an endpoint is posted its task, and its answer is the result", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  const joined = await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  assert.deepEqual([joined.workerId, joined.leaseMs], ["b", 10_000]);
  await kit.submit("t", { params: { x: 1 } });
  const { request, answer } = nth(browser.posts, 0);
  assert.deepEqual([request.url.href, request.body], ["http://browser:1/action", '{"x":1,"kind":"click"}']);
  assert.equal(await kit.stateOf("t"), "running");
  answer(200, '{"ok":true}', { "content-type": "application/json" });
  await kit.settle();
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.result, task.worker, task.attempt], ["done", { ok: true }, "b", 1]);
  assert.equal(browser.posts.length, 1);
});

test("no more than its slots are posted at once, and the next follows at once", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, slots: 2 });
  for (const id of ["t1", "t2", "t3", "t4"]) await kit.submit(id);
  assert.equal(browser.posts.length, 2);
  nth(browser.posts, 0).answer(200);
  await kit.settle();
  assert.deepEqual([browser.posts.length, kit.driver.standing().underWay], [3, 2]);
});

test("what is assigned beyond its slots waits here, and can be cancelled before it is posted", async () => {
  await using kit = await pushWorld({ config: { scheduler: { placement: { maxQueuePerWorker: 2 } } } });
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  for (const id of ["t1", "t2", "t3"]) await kit.submit(id);
  assert.deepEqual([browser.posts.length, kit.driver.standing().underWay], [1, 3]);
  await kit.drover.cancel("t2");
  await kit.settle();
  nth(browser.posts, 0).answer(200);
  await kit.settle();
  assert.deepEqual(
    browser.posts.map(({ request }) => request.headers["X-Drover-Task-ID"]),
    ["t1", "t3"],
  );
  assert.equal(kit.driver.standing().underWay, 1);
});

test("a cancelled task's request is cut, its slot is free, and the state stays cancelled", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  await kit.submit("u");
  const probes = browser.probes();
  await kit.drover.cancel("t");
  await kit.settle();
  assert.equal(nth(browser.posts, 0).request.signal.aborted, true);
  assert.deepEqual([await kit.stateOf("t"), browser.posts.length], ["cancelled", 2]);
  assert.equal(browser.probes(), probes, "a connection that was cut on purpose raises no doubt");
});

test("P13 a request may take as long as the task may: no limit of the client's own", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, slots: 3 });
  await kit.submit("long");
  await kit.submit("timed", { timeoutMs: 90_000, maxAttempts: 1 });
  await kit.submit("due", { deadline: new Date(kit.clock.now() + 120_000).toISOString() });
  await kit.clock.advance(89_999);
  assert.deepEqual(
    browser.posts.map(({ request }) => request.signal.aborted),
    [false, false, false],
  );
  await kit.clock.advance(1);
  assert.deepEqual(
    browser.posts.map(({ request }) => request.signal.aborted),
    [false, true, false],
  );
  await kit.clock.advance(30_000);
  assert.equal(nth(browser.posts, 2).request.signal.aborted, true);
  await kit.clock.advance(3_600_000);
  nth(browser.posts, 0).answer(200, "late");
  await kit.settle();
  assert.equal((await kit.drover.task("long")).result, "late");
  assert.match(String((await kit.drover.task("timed")).error), /timed out after 90000 ms/);
  assert.match(String((await kit.drover.task("due")).error), /deadline exceeded/);
});

test("a failure is tried again as long as the task has attempts; a task with a tab has one", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, capabilities: ["tab:a"] });
  await kit.submit("t");
  nth(browser.posts, 0).answer(500, "boom");
  await kit.clock.advance(2000);
  assert.equal(nth(browser.posts, 1).request.headers["X-Drover-Attempt"], "2");
  nth(browser.posts, 1).answer(200);
  await kit.settle();
  assert.equal(await kit.stateOf("t"), "done");
  await kit.submit("click", { tabId: "a" });
  nth(browser.posts, 2).answer(500, "boom");
  await kit.settle();
  const task = await kit.drover.task("click");
  assert.deepEqual([task.state, task.error], ["failed", "HTTP 500: boom"]);
});

test("a client error is final, whatever attempts are left", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t", { maxAttempts: 9 });
  nth(browser.posts, 0).answer(404, "no such ref");
  await kit.settle();
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.error, task.attempt], ["failed", "HTTP 404: no such ref", 1]);
});

test("429 with Retry-After puts it back in the queue for so long, at no cost to its attempts", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t", { maxAttempts: 1 });
  nth(browser.posts, 0).answer(429, "", { "retry-after": "60" });
  await kit.clock.advance(59_000);
  assert.equal(browser.posts.length, 1);
  await kit.clock.advance(20_000);
  nth(browser.posts, 1).answer(200);
  await kit.settle();
  assert.equal(await kit.stateOf("t"), "done");
});

test("a task that no request can be made of fails for good, and holds up nobody", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, path: "/{tabId}" });
  await kit.submit("t");
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.attempt], ["failed", 1]);
  assert.match(String(task.error), /needs \{tabId\}/);
});

test("a worker that leaves is spoken for no longer, and its request is cut", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  await kit.drover.remote.leave("b");
  kit.driver.left("b");
  await kit.settle();
  assert.equal(nth(browser.posts, 0).request.signal.aborted, true);
  assert.deepEqual(kit.driver.standing(), { workers: 0, alive: 0, underWay: 0 });
  await kit.clock.advance(60_000);
  assert.deepEqual([await kit.stateOf("t"), await kit.drover.workers()], ["queued", []]);
  kit.driver.left("nobody");
});

test("a worker that left without the driver being told is noticed as well", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.settle();
  await kit.drover.remote.leave("b");
  await kit.settle();
  assert.deepEqual([kit.changes, kit.driver.standing().workers], [["b alive", "b ended"], 0]);
});

test("a worker that registers anew has started anew: what it had is queued again, and posted again", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.submit("t");
  const moved = kit.instance("browser:2");
  await kit.driver.join({ id: "b", endpoint: moved.endpoint });
  await kit.settle();
  assert.equal(nth(browser.posts, 0).request.signal.aborted, true);
  nth(moved.posts, 0).answer(200);
  await kit.settle();
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.attempt, kit.driver.standing().workers], ["done", 2, 1]);
});

test("a pull worker that takes its name ends it", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.settle();
  await kit.drover.remote.join({ id: "b" });
  await kit.clock.advance(10_000);
  assert.deepEqual(kit.changes, ["b alive", "b ended"]);
});

test("a drained worker finishes what it has and gets nothing more", async () => {
  await using kit = await pushWorld();
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, slots: 2 });
  await kit.submit("t");
  await kit.drover.remote.drain("b");
  await kit.submit("u");
  await kit.clock.advance(30_000);
  assert.equal(browser.posts.length, 1);
  nth(browser.posts, 0).answer(200);
  await kit.settle();
  assert.deepEqual([await kit.stateOf("t"), await kit.stateOf("u")], ["done", "queued"]);
});

test("a bad endpoint is refused by name, and nobody joins", async () => {
  await using kit = await pushWorld();
  for (const body of [
    { endpoint: "ftp://x" },
    { endpoint: "http://u:p@x" },
    { endpoint: "http://x", path: "/{a}" },
    {},
  ])
    await assert.rejects(kit.driver.join(body), { code: "bad_request" });
  assert.deepEqual(await kit.drover.workers(), []);
});

test("an engine that has closed ends every drive quietly", async () => {
  const kit = await pushWorld();
  await kit.driver.join({ id: "b", endpoint: kit.instance("browser:1").endpoint });
  await kit.settle();
  await kit.drover.close();
  await kit.clock.advance(10_000);
  assert.deepEqual([kit.changes, kit.problems], [["b alive", "b ended"], []]);
});

test("an answer lists files that its worker has put; one that lists what it has not fails, by name", async () => {
  await using kit = await pushWorld({ config: { scheduler: { retry: { base: 1 } } } });
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  const left = await kit.drover.files.put("# spec");
  const file = { path: "spec.md", ...left };
  await kit.submit("t");
  nth(browser.posts, 0).answer(200, JSON.stringify({ files: [file], result: { ok: true } }));
  await kit.settle();
  const { state, files, result } = await kit.drover.task("t");
  assert.deepEqual([state, files, result], ["done", [file], { ok: true }]);
  await kit.submit("u", { maxAttempts: 2 });
  nth(browser.posts, 1).answer(200, JSON.stringify({ files: [{ ...file, hash: "ab".repeat(32) }] }));
  await kit.settle();
  await kit.clock.advance(1000);
  nth(browser.posts, 2).answer(200, JSON.stringify({ files: [{ ...file, size: 7 }] }));
  await kit.settle();
  const failed = await kit.drover.task("u");
  assert.deepEqual([failed.state, failed.attempt, failed.files], ["failed", 2, undefined]);
  assert.match(failed.error ?? "", /its file spec\.md was not put/);
});
