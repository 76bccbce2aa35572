/**
 * A provider's 429 or 529 is nobody's fault, whoever reports it: it counts against nothing and shuts the gate of the
 * task's provider. Other requeues have a count and a rest of their own.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, MINUTE, type Report, type World } from "../../../test/kits/conformance/world.ts";
import { gateId, permitId, taskId } from "../../core/base/brand.ts";
import type { Event } from "../../core/model/events.ts";
import { restore, snapshotLines } from "../../core/snapshot/snapshot.ts";
import { createTestDrover } from "../../testing/index.ts";

const RATE_LIMITED: Report = { outcome: "requeue", error: "HTTP 429", rateLimited: true };
const gateOf = (world: World, id = "acme") => world.state.gates.get(gateId(id));
const tally = ({ ownFailures, losses, requeues }: ReturnType<World["taskOf"]>): number[] => [
  ...[ownFailures, losses, requeues],
];
const snapshotText = (state: Parameters<typeof snapshotLines>[0]): string => [...snapshotLines(state)].join("\n");
const lostIn = (log: readonly Event[]) => log.filter((event) => event.kind === "attempt-lost");

test("a 429 shuts the gate of the task's provider for as long as the provider asks, and for no other", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  world.submit("t", { provider: "acme" });
  world.finish("t", { ...RATE_LIMITED, retryAfterMs: 90_000 });
  assert.deepEqual([gateOf(world)?.blockedUntil, gateOf(world)?.throttles], [90_000, 1]);
  assert.deepEqual([world.phaseOf("t"), tally(world.taskOf("t"))], ["queued", [0, 0, 0]]);
  world.submit("same", { provider: "acme" });
  world.submit("other", { provider: "else" });
  world.wait(89_999);
  assert.deepEqual(
    [world.phaseOf("t"), world.phaseOf("same"), world.phaseOf("other")],
    ["queued", "queued", "assigned"],
  );
  world.wait(1);
  assert.deepEqual([world.phaseOf("t"), world.phaseOf("same")], ["assigned", "assigned"]);
});

test("what a provider asks for by its header holds for up to a day, and no longer", () => {
  for (const [askedMs, heldMs] of [
    [3_600_000, 3_600_000],
    [1000 * 86_400_000, 86_400_000],
  ] as const) {
    const world = createWorld();
    world.join("w");
    world.submit("t", { provider: "acme" });
    world.finish("t", { ...RATE_LIMITED, retryAfterMs: askedMs });
    assert.equal(gateOf(world)?.blockedUntil, heldMs);
  }
});

test("the gate is told, and why the task came back is in its event", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { provider: "acme" });
  world.finish("t", RATE_LIMITED);
  const [throttled, lost] = world.log.slice(-2);
  assert.partialDeepStrictEqual(throttled, { kind: "gate-throttled", gate: "acme", permit: null, retryAfterMs: 0 });
  assert.partialDeepStrictEqual(lost, { kind: "attempt-lost", cause: "rate-limited", reason: "HTTP 429" });
  world.wait(2000);
  world.finish("t", { outcome: "requeue", error: "the disk is full" });
  assert.partialDeepStrictEqual(lostIn(world.log).at(-1), { cause: "requeue", reason: "the disk is full" });
});

test("many that fail together are one throttle, also those that say so when the block is over", () => {
  const world = createWorld({ scheduler: { maxPerAgentInFlight: 50 } });
  world.join("w", { slots: 50 });
  for (let n = 0; n < 40; n++) world.submit(`t${n}`, { provider: "acme" });
  for (let n = 0; n < 20; n++) world.finish(`t${n}`, RATE_LIMITED);
  world.wait(2000);
  for (let n = 20; n < 40; n++) world.finish(`t${n}`, RATE_LIMITED);
  assert.deepEqual([gateOf(world)?.throttles, gateOf(world)?.blockedUntil], [1, 2000]);
  world.finish("t0", RATE_LIMITED);
  assert.equal(gateOf(world)?.throttles, 2, "it went out after the block");
});

test("a 429 that the gate was told of with the permit of the call is not counted again with the attempt", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { provider: "acme" });
  const counted = (): unknown => gateOf(world)?.totals.rateLimited;
  const call = (id: string, ends: "well" | "throttled", at = "acme"): void => {
    world.askPermit(id, at, "t", 0);
    const [gate, permit] = [gateId(at), permitId(id)];
    if (ends === "throttled") world.must({ type: "throttle-gate", gate, permit, retryAfterMs: 0 });
    world.must({ type: "settle-permit", permit, ok: ends === "well", tokens: 0 });
  };
  call("p1", "throttled");
  call("elsewhere", "well", "github");
  assert.equal(snapshotText(restore(snapshotLines(world.state))), snapshotText(world.state));
  world.finish("t", { ...RATE_LIMITED, retryAfterMs: 9000 });
  assert.deepEqual([world.phaseOf("t"), counted()], ["queued", 1]);
  world.wait(2000);
  assert.equal(world.phaseOf("t"), "assigned", "it waits for the gate, and for nothing else");
  call("p2", "throttled");
  world.wait(4000);
  call("p3", "well");
  world.finish("t", { ...RATE_LIMITED, retryAfterMs: 1 });
  assert.equal(counted(), 3, "a call of its own, without a permit, was turned away");
});

test("a provider that answers again is forgiven, where nobody asks for permits", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  world.submit("early", { provider: "acme" });
  world.submit("t", { provider: "acme" });
  world.finish("t", RATE_LIMITED);
  world.finish("early", { outcome: "done" });
  assert.equal(gateOf(world)?.throttles, 1, "it began before the block");
  world.wait(2000);
  world.finish("t", { outcome: "done" });
  assert.equal(gateOf(world)?.throttles, 0);
});

test("a task without a provider backs off alone: a second at least, longer each time, up to retry.max", () => {
  const world = createWorld({ scheduler: { retry: { base: "100ms", max: "1m" } } });
  world.join("w");
  world.submit("t", { maxAttempts: 1 });
  const rests: number[] = [];
  for (let n = 0; n < 300; n++) {
    world.finish("t", RATE_LIMITED);
    const { at, restUntil } = lostIn(world.log).at(-1) as { at: number; restUntil: number };
    rests.push(restUntil - at);
    world.wait(2 * MINUTE);
  }
  assert.deepEqual([world.phaseOf("t"), tally(world.taskOf("t")), world.state.gates.size], ["assigned", [0, 0, 0], 0]);
  assert.ok(rests[0] === 1000 && rests.every((rest) => rest >= 1000), `${rests.slice(0, 5)}`);
  assert.ok((rests[5] ?? 0) > 3000 && (rests.at(-1) ?? 0) >= MINUTE && (rests.at(-1) ?? 0) <= 1.25 * MINUTE);
});

test("an endless 429 is bounded by the task's deadline", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { provider: "acme", deadline: (10 * MINUTE) as never });
  let tries = 0;
  for (; world.phaseOf("t") !== "failed" && tries < 1000; tries++) {
    if (world.taskOf("t").attempt !== null) world.finish("t", RATE_LIMITED);
    world.wait(1000);
  }
  assert.match(world.taskOf("t").end?.error ?? "", /^deadline exceeded/);
  assert.ok(world.starts().length < 20, `${world.starts().length} starts in ten minutes`);
});

test("other requeues rest longer each time, and maxRequeues of them end the task", () => {
  const world = createWorld({ scheduler: { retry: { maxRequeues: 6, maxLosses: 1 } } });
  world.join("w");
  world.submit("t", { maxAttempts: 1 });
  const rests: number[] = [];
  for (let n = 0; n < 6; n++) {
    world.finish("t", { outcome: "requeue", error: "not now" });
    const { at, restUntil, kind } = world.log.findLast(({ kind }) => kind === "attempt-lost") as never as {
      at: number;
      restUntil: number;
      kind: string;
    };
    assert.equal(kind, "attempt-lost");
    rests.push(Math.floor((restUntil - at) / 1000));
    world.wait(MINUTE);
  }
  assert.equal(world.taskOf("t").end?.error, "requeued-too-often (6 times, last: not now)");
  assert.ok(
    [1, 2, 4, 8, 16].every((least, index) => least <= (rests[index] ?? 0) && (rests[index] ?? 0) <= 1.25 * least),
  );
  world.must({ type: "retry-task", task: taskId("t") });
  assert.deepEqual(tally(world.taskOf("t")), [0, 0, 0]);
});

test("a requeue rests at least as long as its worker asks", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  world.finish("t", { outcome: "requeue", retryAfterMs: 77_000 });
  assert.equal(world.taskOf("t").restUntil, 77_000);
});

test("a handler that throws { status: 429 } shuts the gate, in this process and over the wire", async () => {
  const kit = await createTestDrover();
  let calls = 0;
  await kit.drover.worker({ id: "w" }, () => {
    // One that is called again at once would be called for ever.
    if (calls++ > 0) return "called again";
    throw Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 60_000 });
  });
  await kit.drover.submit({ id: "t", agentId: "ann", action: "ask", provider: "acme" });
  await kit.settle();
  const blocked = async (): Promise<unknown> =>
    (await kit.drover.gates()).map(({ id, blockedUntil }) => [id, (blockedUntil ?? 0) - kit.clock.now()]);
  assert.deepEqual(await blocked(), [["acme", 60_000]]);
  const { session } = await kit.drover.remote.join({ id: "ann" });
  await kit.drover.submit({ id: "u", agentId: "ann", action: "ask", provider: "else", locks: ["x"] });
  await kit.settle();
  const [given] = (await kit.drover.remote.sync("ann", { session })).assignments;
  assert.equal(given?.taskId, "u");
  const told = { taskId: "u", attempt: 1, outcome: "requeue", rateLimited: true, retryAfterMs: 30_000 } as const;
  await kit.drover.remote.sync("ann", { session, results: [told] });
  assert.deepEqual(await blocked(), [
    ["acme", 60_000],
    ["else", 30_000],
  ]);
  const { summary } = await kit.drover.why("u");
  assert.match(summary, /provider else said stop/);
});
