/**
 * Snapshots, restarts and what is kept of the past.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { agentId, projectId, taskId } from "../../core/base/brand.ts";
import { emptyState } from "../../core/empty-state.ts";
import { checkInvariants } from "../../core/invariants/invariants.ts";
import { snapshotLines } from "../../core/snapshot/snapshot.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { readTaskBody } from "../tasks/task-body.ts";
import { recover } from "./recovery.ts";
import { startWriter } from "./writer.ts";

const AT = 1_000_000_000;
const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const busy = {
  projects: { p: { weight: 3, budget: { limit: 100_000 } } },
  scheduler: { retry: { base: 1000 } },
};

/** A little of everything: done, failed, resting, waiting, skipped, held back, paused. */
async function live(kit: TestDrover): Promise<void> {
  const { drover } = kit;
  const worker = await drover.worker({ slots: 3, capabilities: ["git"] }, async ({ taskId }, { usage, withPermit }) => {
    await withPermit("llm", (permit) => permit.usage({ inputTokens: 10 }));
    usage({ inputTokens: 50 });
    if (taskId.startsWith("bad")) throw new Error("no");
    return taskId;
  });
  for (let index = 0; index < 8; index++) {
    await drover.submit(task(`ok${index}`, { project: index % 2 ? "p" : "q", payload: "x".repeat(index * 100) }));
    await drover.submit(task(`bad${index}`, { priority: index, maxAttempts: 2 }));
    await drover.submit(task(`child${index}`, { parent: `ok${index}`, needs: [`bad${index}`] }));
  }
  await drover.submit(task("later", { notBefore: AT + 9_000_000, locks: ["repo:x"], deadline: AT + 9_900_000 }));
  await drover.submit(task("artifact", { inputArtifact: "x", capabilities: ["gpu"] }));
  await drover.submit(task("paused"));
  await kit.clock.advance(1500);
  await worker.drain();
  await drover.submit(task("queued"));
  await drover.pause({ project: "q" });
}

test("a log from when . and .. could be names is read, and what they name goes on", async () => {
  const store = createMemoryStore();
  const clock = createHandClock({ at: AT });
  const hooks = { onApplied: () => {}, isAwaited: () => false, onCommitted: () => {}, onStopped: () => {} };
  const writer = startWriter({
    state: emptyState(),
    log: createMemoryLog({ store }),
    epoch: 0,
    clock,
    newId: randomUUID,
    hooks,
  });
  const { submission, text } = readTaskBody(task("old"));
  for (const name of [".", ".."]) {
    const named = { ...submission, id: taskId(name), project: projectId(name), agent: agentId(name) };
    await writer.run({ type: "submit-task", submission: named }, text);
  }
  await writer.close();
  await using kit = await createTestDrover({ at: AT, log: createMemoryLog({ store }) });
  const ran: string[] = [];
  await kit.drover.worker({}, ({ taskId: id }) => void ran.push(id));
  await kit.settle();
  assert.deepEqual(ran.sort(), [".", ".."]);
  const { tasks } = await kit.drover.tasks();
  assert.deepEqual(
    tasks.map(({ taskId: id, project, state }) => [id, project, state]),
    [".", ".."].map((name) => [name, name, "done"]),
  );
  await assert.rejects(kit.drover.submit(task("..")), /^DroverError: id is "\.\.", .* steps in the path of a URL/);
});

test("C17 a restart finds the state to the byte, from the log, from a snapshot, and from both", async () => {
  const store = createMemoryStore();
  const first = await createTestDrover({ at: AT, config: busy, log: createMemoryLog({ store }) });
  await live(first);
  assert.deepEqual(checkInvariants(first.drover.state), []);
  const seq = await first.drover.snapshot();
  assert.equal(seq, first.drover.state.seq);
  assert.equal(await first.drover.snapshot(), seq, "nothing new: the same one");
  await first.drover.submit(task("after the snapshot".replaceAll(" ", "-")));
  await first.drover.close();
  const lines = [...snapshotLines(first.drover.state)].join("\n");
  for (const withSnapshot of [true, false]) {
    const twin = createMemoryStore();
    Object.assign(twin, { head: store.head, base: store.base, rows: [...store.rows] });
    for (const [at, bytes] of store.payloads) twin.payloads.set(at, bytes);
    if (withSnapshot) {
      twin.checkpoints = store.checkpoints;
      for (const [at, chunks] of store.snapshots) twin.snapshots.set(at, chunks);
    }
    const { state } = await recover(createMemoryLog({ store: twin }));
    assert.ok([...snapshotLines(state)].join("\n") === lines, `with${withSnapshot ? "" : "out"} a snapshot`);
    const again = await createTestDrover({
      at: first.clock.now(),
      config: busy,
      log: createMemoryLog({ store: twin }),
    });
    assert.deepEqual(checkInvariants(again.drover.state), []);
    assert.equal((await again.drover.task("ok3")).result, "ok3");
    assert.equal((await again.drover.task("queued")).action, "build");
    await again.drover.close();
  }
});

test("retention forgets events, and keeps the payloads and results that live tasks still need", async () => {
  const store = createMemoryStore();
  const config = { log: { retain: "1h" }, scheduler: { resultTtl: "12h" } };
  const kit = await createTestDrover({ at: AT, config, log: createMemoryLog({ store }) });
  await kit.drover.submit(task("live", { payload: "still needed", notBefore: AT + 90_000_000 }));
  await kit.drover.submit(task("gone", { payload: "no longer" }));
  const worker = await kit.drover.worker({}, ({ payload }) => payload);
  await kit.settle();
  await worker.close();
  for (let hour = 0; hour < 3; hour++) {
    await kit.drover.snapshot();
    await kit.clock.set(kit.clock.now() + 3_600_001);
    await kit.drover.submit(task(`h${hour}`));
  }
  await kit.drover.snapshot();
  assert.ok(store.base.seq > 0, "something was pruned");
  assert.equal((await kit.drover.task("live")).payload, "still needed");
  assert.equal((await kit.drover.task("gone")).result, "no longer");
  await kit.drover.close();
  const again = await createTestDrover({ at: kit.clock.now(), config, log: createMemoryLog({ store }) });
  assert.equal((await again.drover.task("live")).payload, "still needed");
  assert.ok((await again.drover.verify()).ok);
  await again.clock.set(AT + 43_300_000);
  for (let hour = 0; hour < 3; hour++) {
    await again.drover.submit(task(`late${hour}`));
    await again.drover.snapshot();
    await again.clock.set(again.clock.now() + 3_600_001);
  }
  const { result } = await again.drover.task("gone");
  assert.equal(result, undefined, "its record expired, and the log has forgotten it");
  assert.equal((await again.drover.task("gone")).state, "done");
  await again.drover.close();
});

test("a snapshot is made by itself after log.snapshotEvery events", async () => {
  const store = createMemoryStore();
  const config = { log: { snapshotEvery: 10 } };
  const kit = await createTestDrover({ config, log: createMemoryLog({ store }) });
  for (let index = 0; index < 30; index++) await kit.drover.submit(task(`t${index}`));
  await kit.settle();
  assert.ok(store.checkpoints.length >= 2, `${store.checkpoints.length} checkpoints`);
  await kit.drover.close();
});

test("D13 a tombstone keeps the id and satisfies needs, and its result is read back from the log", async () => {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000, failedTtl: 1000, remember: "1h" } } });
  await kit.drover.worker({}, ({ taskId }) => {
    if (taskId === "failed") throw Object.assign(new Error("because"), { permanent: true });
    return { from: taskId };
  });
  await kit.drover.submit(task("done", { payload: { deep: 1 } }));
  await kit.drover.submit(task("failed"));
  await kit.drover.submit(task("cancelled", { notBefore: kit.clock.now() + 1 }));
  await kit.drover.cancel("cancelled", { reason: "why not" });
  await kit.settle();
  await kit.clock.advance(1000);
  assert.equal(kit.drover.state.tasks.size, 0);
  const done = await kit.drover.task("done");
  assert.deepEqual([done.state, done.result, done.payload, done.attempt], ["done", { from: "done" }, { deep: 1 }, 1]);
  assert.deepEqual(await kit.drover.task("failed").then(({ state, error }) => [state, error]), ["failed", "because"]);
  assert.equal((await kit.drover.task("cancelled")).error, "why not");
  assert.equal((await kit.drover.wait("done")).state, "done");
  assert.equal((await kit.drover.submit(task("next", { needs: ["done"] }))).taskId, "next");
  await assert.rejects(kit.drover.retry("failed"), {
    code: "conflict",
    message: /record has expired .*; submit it under a new id$/,
  });
  await kit.clock.set(kit.clock.now() + 3_600_000);
  await assert.rejects(kit.drover.task("done"), { code: "not_found" });
});

test("a task whose record has expired still knows when it was created, also after a restart", async () => {
  const config = { scheduler: { resultTtl: 1000, remember: "1h" } };
  const store = createMemoryStore();
  const kit = await createTestDrover({ at: AT, config, log: createMemoryLog({ store }) });
  const { createdAt } = await kit.drover.submit(task("t"));
  await kit.clock.advance(5000);
  await kit.drover.cancel("t");
  await kit.clock.advance(1000);
  assert.equal(kit.drover.state.tasks.size, 0);
  const endedAt = new Date(Date.parse(createdAt) + 5000).toISOString();
  async function timesIn({ drover }: TestDrover): Promise<unknown> {
    const again = await drover.submit(task("t"));
    const { createdAt: shown, completedAt } = await drover.task("t");
    return [again.state, again.createdAt, shown, completedAt];
  }
  assert.deepEqual(await timesIn(kit), ["cancelled", createdAt, createdAt, endedAt]);
  await kit.drover.snapshot();
  await kit.drover.close();
  const next = await createTestDrover({ at: kit.clock.now(), config, log: createMemoryLog({ store }) });
  assert.deepEqual(await timesIn(next), ["cancelled", createdAt, createdAt, endedAt]);
  await next.drover.close();
});

test("a config that was reloaded is in force after a restart, unless another is given", async () => {
  const store = createMemoryStore();
  const open = (config?: object) =>
    createTestDrover({ log: createMemoryLog({ store }), ...(config === undefined ? {} : { config }) });
  const first = await open({ scheduler: { maxInFlight: 7 } });
  await first.drover.reload({ scheduler: { maxInFlight: 9 }, projects: { web: { weight: 3 } } });
  await first.drover.close();
  const second = await open();
  assert.equal(second.drover.state.config.scheduler.maxInFlight, 9);
  await second.drover.close();
  const third = await open({});
  assert.equal(third.drover.state.config.scheduler.maxInFlight, 50);
  await third.drover.close();
});
