/**
 * Calls in this process: one place in the queue each, and no slot that is not given back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fewTurns, isPending } from "../../../test/kits/waits.ts";
import type { ConfigInput } from "../../protocol/generated/index.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { tokensOf } from "../base/charged-tokens.ts";
import { openDrover } from "../drover.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const limited = (retryAfterMs: number): Error => Object.assign(new Error("slow down"), { status: 429, retryAfterMs });

/** A call that waits for the test to end it. */
function openCall(): { call: () => Promise<string>; end(): void; fail(error: Error): void; calls: () => number } {
  let wait = Promise.withResolvers<string>();
  let calls = 0;
  return {
    call: () => {
      calls++;
      return wait.promise;
    },
    end: () => wait.resolve("done"),
    fail: (error) => {
      const { reject } = wait;
      wait = Promise.withResolvers();
      reject(error);
    },
    calls: () => calls,
  };
}

const oneAtATime = { gates: { default: { maxConcurrent: 1 } } };
const heldOf = ({ drover }: TestDrover): number => drover.state.gates.get("llm" as never)?.held.size ?? 0;
const queuedOf = ({ drover }: TestDrover): number => drover.state.gates.get("llm" as never)?.queue.entries.size ?? 0;

test("calls go out by class, then by project share, then in the order they were asked for", async () => {
  const kit = await createTestDrover({ config: { ...oneAtATime, projects: { default: { maxPriority: "critical" } } } });
  const order: string[] = [];
  const first = openCall();
  const calls: Promise<unknown>[] = [kit.drover.withPermit("llm", first.call)];
  await kit.settle();
  const ask = (name: string, options: object): void =>
    void calls.push(kit.drover.withPermit("llm", () => order.push(name), options));
  ask("low", { class: "low" });
  ask("normal 1", {});
  ask("normal 2", { project: "other" });
  ask("high", { class: "high" });
  ask("critical", { class: "critical" });
  await kit.settle();
  assert.deepEqual(order, []);
  first.end();
  await Promise.all(calls);
  assert.deepEqual(order, ["critical", "high", "normal 2", "normal 1", "low"]);
});

test("a critical call of a project that may not be critical does not go before others that are high", async () => {
  const config: ConfigInput = {
    ...oneAtATime,
    projects: { calm: { maxPriority: "critical" }, rude: { maxPriority: "high" } },
  };
  const kit = await createTestDrover({ config });
  const { permits } = kit.drover;
  await permits.ask({ gate: "llm", id: "first" });
  for (const project of ["calm", "rude"]) await permits.ask({ gate: "llm", id: project, project, class: "critical" });
  const { calls } = await kit.drover.gate("llm");
  assert.deepEqual(
    calls.map(({ id, class: given }) => `${id} ${given}`),
    ["first normal", "calm critical", "rude high"],
  );
});

test("a 429 throttles the gate, gives the slot back, and the call returns to the queue with its age", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const order: string[] = [];
  const first = openCall();
  const throttled = kit.drover.withPermit("llm", async () => {
    order.push("old");
    return first.call();
  });
  await kit.settle();
  await kit.clock.advance(1000);
  const young = kit.drover.withPermit("llm", () => void order.push("young"));
  first.fail(limited(5000));
  await kit.settle();
  assert.deepEqual([heldOf(kit), queuedOf(kit)], [0, 2]);
  const [gate] = await kit.drover.gates();
  assert.equal(gate?.blockedUntil, kit.clock.now() + 5000);
  first.end();
  await kit.clock.advance(4999);
  assert.deepEqual(order, ["old"]);
  await kit.clock.advance(1);
  await Promise.all([throttled, young]);
  assert.deepEqual(order, ["old", "old", "young"], "who asked first goes first again");
  assert.equal((await kit.drover.gates())[0]?.throttles, 0);
});

test("calls of one instant keep their order after a 429", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const order: string[] = [];
  const first = openCall();
  const calls = [
    kit.drover.withPermit("llm", async () => {
      const value = await first.call();
      order.push("first");
      return value;
    }),
    kit.drover.withPermit("llm", () => order.push("second")),
  ];
  await kit.settle();
  first.fail(limited(1000));
  first.end();
  await kit.settle();
  await kit.clock.advance(5000);
  await Promise.all(calls);
  assert.deepEqual(order, ["first", "second"]);
});

test("a gate that the config names is listed before its first use, and looking changes nothing", async () => {
  const config = (maxConcurrent: number) => ({ gates: { llm: { maxConcurrent, tokens: { perMinute: 500 } } } });
  const kit = await createTestDrover({ config: config(3) });
  await kit.drover.withPermit("other", async () => undefined);
  const { seq } = kit.drover.state;
  const [other, llm, ...more] = await kit.drover.gates();
  assert.deepEqual([other?.id, llm?.id, more], ["other", "llm", []]);
  assert.deepEqual(Object.keys(llm ?? {}), Object.keys(other ?? {}));
  assert.deepEqual([llm?.running, llm?.queued, llm?.limit, llm?.requestsUsed, llm?.held], [0, 0, 3, 0, null]);
  assert.deepEqual(llm?.tokensUsed.perMinute, { limit: 500, used: 0 });
  assert.deepEqual([[...kit.drover.state.gates.keys()], kit.drover.state.seq], [["other"], seq]);
  await kit.drover.reload(config(4));
  assert.equal((await kit.drover.gates())[1]?.limit, 4);
  await kit.drover.withPermit("llm", async () => undefined);
  const used = (await kit.drover.gates()).map(({ id, requestsUsed }) => [id, requestsUsed]);
  assert.deepEqual(used, [
    ["other", 1],
    ["llm", 1],
  ]);
});

test("a call that is throttled ten times is given up with the provider's error", async () => {
  const kit = await createTestDrover();
  let calls = 0;
  const throttled = kit.drover.withPermit("llm", () => {
    calls++;
    throw limited(0);
  });
  const refused = assert.rejects(throttled, { message: "slow down", status: 429 });
  await kit.clock.advance(20 * 64_000);
  await refused;
  assert.equal(calls, 10);
  assert.deepEqual([heldOf(kit), queuedOf(kit)], [0, 0]);
});

test("the permit is given back when the call throws, also at once", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const throwing = () => {
    throw new Error("boom");
  };
  for (const call of [throwing, async () => throwing()])
    await assert.rejects(kit.drover.withPermit("llm", call), { message: "boom" });
  assert.equal(heldOf(kit), 0);
  assert.equal(await kit.drover.withPermit("llm", () => 5), 5);
});

test("a call that is given up while it waits leaves the queue; one given up before never enters it", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const first = openCall();
  const held = kit.drover.withPermit("llm", first.call);
  const controller = new AbortController();
  const second = openCall();
  const waiting = kit.drover.withPermit("llm", second.call, { signal: controller.signal });
  await kit.settle();
  assert.equal(queuedOf(kit), 1);
  controller.abort(new Error("never mind"));
  await assert.rejects(waiting, { message: "never mind" });
  await assert.rejects(kit.drover.withPermit("llm", second.call, { signal: controller.signal }), {
    message: "never mind",
  });
  assert.equal(queuedOf(kit), 0);
  first.end();
  await held;
  assert.equal(second.calls(), 0);
});

test("a call of a task gives up when the attempt must stop, also if the caller has a signal of its own", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const first = openCall();
  const held = kit.drover.withPermit("llm", first.call);
  const outcomes: string[] = [];
  await kit.drover.worker({ slots: 3 }, async ({ taskId }, { withPermit }) => {
    const own =
      taskId === "plain" ? undefined : { signal: taskId === "own" ? new AbortController().signal : undefined };
    await withPermit("llm", () => 1, own as never).catch((error: Error) =>
      outcomes.push(`${taskId}: ${error.message}`),
    );
  });
  for (const id of ["plain", "own", "absent"]) await kit.drover.submit(task(id));
  await kit.settle();
  assert.equal(queuedOf(kit), 3);
  for (const id of ["plain", "own", "absent"]) await kit.drover.cancel(id);
  await kit.settle();
  assert.deepEqual(
    outcomes,
    ["plain", "own", "absent"].map((id) => `${id}: cancelled: cancelled`),
  );
  assert.equal(queuedOf(kit), 0);
  first.end();
  await held;
});

test("W2 W5 a call inherits its class: from the call, else the task's priority, else its type", async () => {
  const kit = await createTestDrover({ config: { ...oneAtATime, projects: { default: { maxPriority: -200 } } } });
  const first = openCall();
  const held = kit.drover.withPermit("llm", first.call);
  const order: string[] = [];
  await kit.drover.worker({ slots: 9 }, async ({ taskId }, { withPermit }) => {
    await withPermit("llm", () => order.push(taskId), taskId === "own" ? { class: "critical" } : {});
  });
  const bodies = { low: { priority: "low" }, normal: {}, plan: { type: "plan" }, urgent: { priority: -200 }, own: {} };
  for (const [id, more] of Object.entries(bodies)) await kit.drover.submit(task(id, more));
  await kit.settle();
  first.end();
  await held;
  await kit.settle();
  assert.deepEqual(order.slice(0, 2).sort(), ["own", "urgent"]);
  assert.deepEqual(order.slice(2), ["plan", "normal", "low"]);
});

test("W3 W4 the 429 handler has a caller: a provider that says no holds back every task of its gate", async () => {
  const kit = await createTestDrover();
  const started: string[] = [];
  await kit.drover.worker({ slots: 4 }, ({ taskId }) => void started.push(taskId));
  await assert.rejects(
    kit.drover.withPermit(
      "anthropic",
      () => {
        throw limited(30_000);
      },
      { signal: AbortSignal.abort() },
    ),
  );
  const throttled = kit.drover.withPermit("anthropic", () => {
    if (started.length === 0) throw limited(30_000);
  });
  await kit.settle();
  await kit.drover.submit(task("held", { provider: "anthropic" }));
  await kit.drover.submit(task("free", { provider: "openai" }));
  await kit.settle();
  assert.deepEqual(started, ["free"]);
  await kit.clock.advance(29_999);
  assert.deepEqual(started, ["free"]);
  await kit.clock.advance(1);
  assert.deepEqual(started, ["free", "held"]);
  await throttled;
});

test("an answer that comes after the engine stopped is still the caller's", async () => {
  const kit = await createTestDrover();
  const out = openCall();
  const answer = kit.drover.withPermit("llm", out.call);
  await kit.settle();
  const queued = kit.drover.withPermit("llm", out.call);
  await kit.drover.close();
  out.end();
  assert.equal(await answer, "done");
  await assert.rejects(queued, { code: "closed" });
});

test("grants do not wait for the disk, and what was asked before a restart waits no more after it", async () => {
  const kit = await createTestDrover({ config: oneAtATime });
  const out = openCall();
  const call = kit.drover.withPermit("llm", out.call, { tokens: 10 });
  assert.ok(await isPending(call));
  assert.equal(out.calls(), 1);
  out.end();
  await call;
  await fewTurns();
});

test("tokens are input, output and cache creation", () => {
  assert.equal(tokensOf({ inputTokens: 1, outputTokens: 2, cacheCreationTokens: 4 }), 7);
  assert.equal(tokensOf({}), 0);
});

const badUsage: { usage: unknown; says: RegExp }[] = [
  {
    usage: { input_tokens: 500 },
    says: /^usage\.input_tokens is not .*did you mean inputTokens\?.*: inputTokens, output/,
  },
  {
    usage: { inputTokens: 1, inptTokens: 5 },
    says: /^usage\.inptTokens is not a known field \(did you mean inputTokens\?\); known here: inputTokens/,
  },
  { usage: { inputTokens: -1 }, says: /^usage\.inputTokens is -1, and must be a whole number from 0/ },
  { usage: { outputTokens: 1.5 }, says: /^usage\.outputTokens is 1\.5, / },
  { usage: { cacheCreationTokens: "7" }, says: /^usage\.cacheCreationTokens is "7", / },
  { usage: 500, says: /^usage is 500, / },
];
for (const { usage, says } of badUsage)
  test(`usage ${JSON.stringify(usage)} is refused by name, for a call and for an attempt`, async () => {
    const kit = await createTestDrover();
    const told = { code: "bad_request", message: says };
    await assert.rejects(
      kit.drover.withPermit("llm", (permit) => permit.usage(usage as never)),
      told,
    );
    let heard: unknown;
    await kit.drover.worker({}, (_task, context) => {
      try {
        context.usage(usage as never);
      } catch (error) {
        heard = error;
      }
    });
    await kit.drover.submit(task("t"));
    await kit.settle();
    assert.throws(() => {
      throw heard;
    }, told);
  });

test("a signal that fires between the grant and the call gives the permit back, and nothing is called", async () => {
  const clock = createHandClock({ at: 1000 });
  const { settle } = clock;
  const controller = new AbortController();
  let afterTurn = (): void => {};
  const defer = (turn: () => void): void =>
    clock.defer(() => {
      turn();
      afterTurn();
    });
  const drover = await openDrover({ clock: { ...clock, defer } });
  let [calls, grants] = [0, 0];
  afterTurn = () => {
    const [gate] = drover.state.gates.values();
    if (gate === undefined || gate.held.size === 0 || controller.signal.aborted) return;
    grants++;
    controller.abort(new Error("enough"));
  };
  const made = drover.withPermit("llm", () => ++calls, { signal: controller.signal });
  await assert.rejects(made, { message: "enough" });
  await settle();
  assert.deepEqual([grants, calls, drover.state.permits.size], [1, 0, 0]);
  await drover.close();
});
