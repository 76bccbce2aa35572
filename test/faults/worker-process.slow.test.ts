/**
 * Workers in processes of their own, blocked, killed and stopped; and a server that goes away and comes back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FeedEvent } from "../../src/engine/index.ts";
import { createWorld, type World } from "../kits/faults/worker-processes.ts";

/** A worker must not lose it because others keep its process from running for a moment. */
const LEASE_MS = 4000;
const DEFAULT_LEASE_MS = 10_000;
const BLOCKED_MS = 30_000;
const settings = { workers: { lease: LEASE_MS }, scheduler: { retry: { base: 1 } } };
type Work = { action: string; params?: Record<string, unknown>; capabilities?: string[] };
const submit = ({ served }: World, id: string, more: Work) => served.drover.submit({ id, agentId: "ann", ...more });
const at = (events: readonly FeedEvent[], kind: string): number =>
  events.find((event) => event.kind === kind)?.at ?? Number.NaN;

test("a handler that blocks its event loop for 30 s keeps its task, with the lease as it is by default", async (t) => {
  const world = await createWorld(t, {});
  const { lease } = world.served.drover.effectiveConfig().workers;
  assert.ok(lease === DEFAULT_LEASE_MS && lease * 3 <= BLOCKED_MS, `a lease is ${lease} ms`);
  const ada = await world.startWorker("ada");
  await submit(world, "t", { action: "block", params: { ms: BLOCKED_MS } });
  await ada.said({ began: "t" });
  // Somebody is there who would take it at once.
  const bob = await world.startWorker("bob");
  const { state, attempt, result } = await world.served.drover.wait("t");
  assert.deepEqual([state, attempt, result], ["done", 1, "blocked by ada"]);
  const story = (await world.events()).filter(({ task }) => task === "t");
  assert.deepEqual(
    story.map(({ kind }) => kind),
    ["task-submitted", "task-assigned", "attempt-started", "task-done"],
    "it was named while its loop stood still, and neither lost nor begun again",
  );
  assert.ok(at(story, "task-done") - at(story, "task-assigned") >= BLOCKED_MS, "it was blocked that long");
  assert.deepEqual(
    (await world.served.drover.workers()).map(({ id, status }) => [id, status]),
    [
      ["ada", "idle"],
      ["bob", "idle"],
    ],
  );
  assert.equal(
    bob.lines.some((line) => "began" in line),
    false,
  );
});

test("what was handed to a worker whose event loop stands still goes to another", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", 2);
  // He is here before anything stands still, since starting takes its time, and has no room yet.
  const bob = await world.startWorker("bob");
  await submit(world, "busy", { action: "line", capabilities: ["bob"] });
  await submit(world, "block", { action: "block", capabilities: ["ada"], params: { ms: 4 * LEASE_MS } });
  await Promise.all([bob.said({ began: "busy" }), ada.said({ began: "block" })]);
  await submit(world, "next", { action: "quick" });
  assert.equal((await world.event("task-assigned", "next")).attempt, 1);
  bob.write("go");
  const { attempt, result } = await world.served.drover.wait("next");
  assert.deepEqual([attempt, result], [2, "by bob"]);
  assert.equal((await world.served.drover.wait("block")).attempt, 1);
  assert.equal(
    ada.lines.some((line) => line.began === "next"),
    false,
  );
});

test("a worker that is killed loses its tasks, and they finish elsewhere", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", 2);
  for (const id of ["t", "u"]) await submit(world, id, { action: "linger" });
  await Promise.all([ada.said({ began: "t" }), ada.said({ began: "u" })]);
  await world.event("attempt-started", "t");
  const bob = await world.startWorker("bob", 2);
  ada.signal("SIGKILL");
  await Promise.all([world.event("attempt-lost", "t"), world.event("attempt-lost", "u")]);
  await Promise.all([bob.said({ began: "t", attempt: 2 }), bob.said({ began: "u", attempt: 2 })]);
  for (const id of ["t", "u"]) await world.served.drover.cancel(id);
  await Promise.all([bob.said({ stopped: "t", why: "cancelled" }), bob.said({ stopped: "u", why: "cancelled" })]);
  bob.signal("SIGTERM");
  await bob.said({ left: "bob" });
});

test("a worker stopped past its lease stops its handlers when it goes on; its late word is refused", async (t) => {
  const world = await createWorld(t, settings);
  const ada = await world.startWorker("ada", 2);
  await submit(world, "long", { action: "linger" });
  await submit(world, "late", { action: "continued" });
  await Promise.all([ada.said({ began: "long" }), ada.said({ began: "late" })]);
  await Promise.all([world.event("attempt-started", "long"), world.event("attempt-started", "late")]);
  ada.signal("SIGSTOP");
  await Promise.all([world.event("attempt-lost", "long"), world.event("attempt-lost", "late")]);
  const bob = await world.startWorker("bob", 2);
  await Promise.all([bob.said({ began: "long", attempt: 2 }), bob.said({ began: "late", attempt: 2 })]);
  // The handler runs before the server has been told so.
  await world.event("attempt-started", "late", 2);
  ada.signal("SIGCONT");
  await ada.said({ stopped: "long", attempt: 1 });
  await ada.said({ warning: /^the result of task late, attempt 1, was not taken: stale_attempt$/ });
  const { state, attempt, worker } = await world.served.drover.task("late");
  assert.deepEqual([state, attempt, worker], ["running", 2, "bob"]);
  await submit(world, "next", { action: "quick" });
  assert.equal((await world.served.drover.wait("next")).result, "by ada", "it is a good worker again");
});

test("a server that comes back on its log finds its workers at work, and takes their results", async (t) => {
  const world = await createWorld(t, { ...settings, workers: { lease: 20_000 } });
  const ada = await world.startWorker("ada");
  await submit(world, "t", { action: "line" });
  await ada.said({ began: "t" });
  await world.event("attempt-started", "t");
  await world.restart();
  ada.write("go");
  const { state, attempt, result } = await world.served.drover.wait("t");
  assert.deepEqual([state, attempt, result], ["done", 1, "line for ada"]);
  const joins = (await world.events()).filter(({ kind }) => kind === "worker-joined");
  assert.equal(joins.length, 1, "its session has survived");
  assert.deepEqual(
    ada.lines.filter((line) => "stopped" in line),
    [],
  );
});
