/**
 * People: tasks that are parked until somebody answers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { Handler } from "../workers/local-workers.ts";

async function story(more: object, handler: Handler = () => "ran", options: object = {}): Promise<TestDrover> {
  const kit = await createTestDrover(options);
  await kit.drover.worker({ id: "w", slots: 1 }, handler);
  await kit.drover.submit({ id: "t", agentId: "ann", action: "ship", ...more });
  await kit.settle();
  return kit;
}
const stateOf = async ({ drover }: TestDrover): Promise<string> => (await drover.task("t")).state;

test("a task that must be approved is parked, says who is asked what, and runs when it is", async () => {
  const seen: unknown[] = [];
  const kit = await story({ approval: { question: "ship it?" } }, ({ approval }) => void seen.push(approval));
  assert.deepEqual([await stateOf(kit), seen], ["parked", []]);
  assert.match((await kit.drover.why("t")).summary, /parked until somebody approves.*ship it\?/);
  assert.equal((await kit.drover.approve("t", { note: "go" })).state, "queued");
  await kit.settle();
  const { state, approval } = await kit.drover.task("t");
  const given = { question: "ship it?", at: new Date(kit.clock.now()).toISOString(), note: "go" };
  assert.deepEqual([state, approval, seen], ["done", given, [given]]);
});

test("a question that was denied, cancelled or not answered is no approval when its task is retried", async () => {
  const seen: unknown[] = [];
  const kit = await story({}, ({ approval }, { ask }) => {
    seen.push(approval);
    if (seen.length < 4) ask("really?", { timeoutMs: 1000 });
  });
  const { drover } = kit;
  for (const refuse of [
    () => drover.approve("t", { deny: true, note: "never" }),
    () => drover.cancel("t"),
    () => kit.clock.advance(1000),
  ]) {
    assert.equal(await stateOf(kit), "parked");
    await refuse();
    assert.match(await stateOf(kit), /^(failed|cancelled)$/);
    await drover.retry("t");
    await kit.settle();
  }
  assert.deepEqual([await stateOf(kit), seen], ["done", [undefined, undefined, undefined, undefined]]);
  assert.equal((await drover.task("t")).approval, undefined);
});

test("an approval is asked for when the task would be queued: after its needs and its earliest start", async () => {
  const kit = await createTestDrover();
  await kit.drover.submit({ id: "need", agentId: "ann", action: "x" });
  const notBefore = kit.clock.now() + 5000;
  await kit.drover.submit({ id: "t", agentId: "ann", action: "x", needs: ["need"], approval: true, notBefore });
  await assert.rejects(kit.drover.approve("t"), {
    code: "conflict",
    message: /t is waiting; only a task that is parked for/,
  });
  await kit.drover.worker({ id: "w" }, () => null);
  await kit.settle();
  assert.equal(await stateOf(kit), "waiting");
  await kit.clock.advance(5000);
  await kit.settle();
  assert.equal(await stateOf(kit), "parked");
});

test("a file that its parent has left is not waited for: it is parked at once, and again by a retry", async () => {
  const kit = await createTestDrover();
  const { drover } = kit;
  await drover.worker({ id: "w" }, async ({ taskId }, context) => {
    if (taskId === "plan") await context.output("spec.md", "# spec");
  });
  await drover.submit({ id: "plan", agentId: "ann", action: "x" });
  await kit.settle();
  const child = { agentId: "ann", action: "x", parent: "plan", approval: true } as const;
  assert.equal((await drover.submit({ ...child, id: "t", inputArtifact: "spec.md" })).state, "parked");
  assert.equal((await drover.submit({ ...child, id: "other", inputArtifact: "nothing.md" })).state, "waiting");
  await drover.approve("t", { deny: true });
  await drover.retry("t");
  await kit.settle();
  assert.equal(await stateOf(kit), "parked");
  await drover.cancel("other");
  await drover.retry("other");
  await kit.settle();
  assert.equal((await drover.task("other")).state, "waiting");
  kit.artifacts.add("nothing.md");
  await drover.lookForArtifacts();
  await kit.settle();
  assert.equal((await drover.task("other")).state, "parked");
});

test("denied, it has failed with the note, and its dependents are skipped", async () => {
  const kit = await story({ approval: true });
  await kit.drover.submit({ id: "next", agentId: "ann", action: "x", needs: ["t"] });
  await kit.drover.approve("t", { deny: true, note: "not now" });
  await kit.settle();
  const { state, error } = await kit.drover.task("t");
  assert.deepEqual([state, error], ["failed", "denied: not now"]);
  assert.equal((await kit.drover.task("next")).state, "skipped");
  await kit.drover.retry("t");
  assert.equal(await stateOf(kit), "parked");
});

test("the first answer counts, an unknown task is not found, and a note has its limit", async () => {
  const { drover } = await story({ approval: true }, () => new Promise(() => {}));
  await drover.approve("t");
  await assert.rejects(drover.approve("t"), { code: "conflict", message: /first answer counts/ });
  await assert.rejects(drover.approve("t", { deny: true }), { code: "conflict" });
  await assert.rejects(drover.approve("nobody"), { code: "not_found" });
  await assert.rejects(drover.approve("t", { note: "x".repeat(1 << 20) }), { code: "bad_request", message: /note/ });
  await assert.rejects(drover.approve("t", { denied: true } as never), { code: "bad_request", message: /denied/ });
});

test("without an answer in time it has failed, and an answer after that is too late", async () => {
  const kit = await story({ approval: { question: "now?", timeoutMs: 1000 } });
  await kit.clock.advance(999);
  assert.equal(await stateOf(kit), "parked");
  await kit.clock.advance(1);
  await kit.settle();
  const { state, error } = await kit.drover.task("t");
  assert.deepEqual([state, error], ["failed", "nobody approved it in time: now?"]);
  await assert.rejects(kit.drover.approve("t"), { code: "conflict", message: /t is failed/ });
});

test("a handler asks: its slot and locks are free, and the next attempt on its worker sees the answer", async () => {
  const seen: unknown[] = [];
  const kit = await story({ locks: ["l"] }, ({ approval, taskId }, { ask }) => {
    if (taskId === "other") return null;
    seen.push(approval?.note);
    return approval?.at === undefined ? ask("which colour?", { timeoutMs: 60_000 }) : approval.note;
  });
  assert.equal(await stateOf(kit), "parked");
  await kit.drover.submit({ id: "other", agentId: "ann", action: "x", locks: ["l"] });
  await kit.settle();
  assert.equal((await kit.drover.task("other")).state, "done");
  await kit.drover.approve("t", { note: "blue" });
  await kit.settle();
  const { state, result, attempt, worker } = await kit.drover.task("t");
  assert.deepEqual([state, result, attempt, worker, seen], ["done", "blue", 2, "w", [undefined, "blue"]]);
});

test("a parked task can be cancelled, has its deadline, and counts against its agent's limit", async () => {
  const limited = { config: { scheduler: { maxPerAgent: 1 } } };
  const kit = await story({ approval: true }, undefined, limited);
  await assert.rejects(kit.drover.submit({ agentId: "ann", action: "x" }), { code: "queue_full" });
  await kit.drover.cancel("t");
  assert.equal(await stateOf(kit), "cancelled");
  const late = await createTestDrover();
  await late.drover.submit({ id: "t", agentId: "ann", action: "x", approval: true, deadline: late.clock.now() + 5000 });
  await late.clock.advance(5000);
  await late.settle();
  assert.match((await late.drover.task("t")).error ?? "", /deadline exceeded while parked/);
});

test("what is asked, and until when, survives a restart", async () => {
  const store = createMemoryStore();
  const first = await story({ approval: { question: "q", timeoutMs: 5000 } }, () => 1, {
    log: createMemoryLog({ store }),
  });
  await first.drover.close();
  const second = await createTestDrover({ log: createMemoryLog({ store }) });
  assert.equal((await second.drover.task("t")).approval?.question, "q");
  await second.clock.advance(60_000);
  await second.settle();
  assert.equal(await stateOf(second), "failed");
});
