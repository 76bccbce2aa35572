/**
 * How much may be stored: by a project in a minute, and by all in the log.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { projectId } from "../../core/index.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { DroverError } from "../base/drover-error.ts";
import { createStorageGuard } from "./storage-guard.ts";

const KIB = 1024;
const SCHEDULES = 10_000;
const big = (size: number) => ({ params: { text: "x".repeat(size) } });
let count = 0;
const submit = ({ drover }: TestDrover, project: string, size: number): Promise<string> =>
  drover.submit({ id: `t${++count}`, agentId: `of-${project}`, action: "x", project, ...big(size) }).then(
    () => "ok",
    ({ code, details }: DroverError) =>
      details.retryAfterMs === undefined ? code : `${code} in ${details.retryAfterMs} ms`,
  );

test("a project stores so much in a minute, however soon it cancels, and others go on", async () => {
  const kit = await createTestDrover({
    at: 1_000_000,
    config: { projects: { default: { bytesPerMinute: 100 * KIB } } },
  });
  for (let index = 0; index < 9; index++) {
    assert.equal(await submit(kit, "rude", 10 * KIB), "ok", `${index}`);
    await kit.drover.cancel(`t${count}`);
    await kit.clock.advance(1000);
  }
  const { seq } = kit.drover.state;
  assert.equal(await submit(kit, "rude", 10 * KIB), "bytes_per_minute in 51999 ms");
  assert.equal(kit.drover.state.seq, seq, "what is refused is not stored");
  assert.equal(await submit(kit, "calm", 90 * KIB), "ok");
  await kit.clock.advance(51_998);
  assert.match(await submit(kit, "rude", 10 * KIB), /^bytes_per_minute/);
  await kit.clock.advance(1);
  assert.equal(await submit(kit, "rude", 10 * KIB), "ok");
});

test("one body is taken though it is larger than what a minute has", async () => {
  const kit = await createTestDrover({ config: { projects: { p: { bytesPerMinute: "16KiB" } } } });
  assert.equal(await submit(kit, "p", 40 * KIB), "ok");
  assert.match(await submit(kit, "p", 1), /^bytes_per_minute/);
  assert.equal(await submit(kit, "another", 40 * KIB), "ok", "the limit is that project's own");
});

test("results count and are never refused; schedules, retries and calls count and are", async () => {
  const config = { projects: { default: { bytesPerMinute: 64 * KIB } } };
  const kit = await createTestDrover({ config });
  const { drover } = kit;
  for (const id of ["a", "b", "c"]) await drover.submit({ id, agentId: "ann", action: "x" });
  const worker = await drover.worker({ slots: 9 }, () => "y".repeat(40 * KIB));
  await kit.settle();
  assert.deepEqual(
    await Promise.all(["a", "b", "c"].map(async (id) => (await drover.task(id)).state)),
    Array(3).fill("done"),
  );
  await worker.close();
  assert.match(await submit(kit, "default", 1), /^bytes_per_minute/);
  const codeOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => "ok",
      ({ code }: DroverError) => code,
    );
  const task = { agentId: "ann", action: "x" };
  assert.equal(await codeOf(drover.schedules.put("s", { cron: "@daily", task })), "bytes_per_minute");
  assert.equal(await codeOf(drover.permits.ask({ gate: "g" })), "bytes_per_minute");
  assert.equal(await codeOf(drover.permits.ask({ gate: "g", project: "calm" })), "ok");
  await kit.clock.advance(61_000);
  assert.equal(await codeOf(drover.schedules.put("s", { cron: "@daily", task })), "ok");
});

test("the same submit again is the same task, also when there is no room for another", async () => {
  const kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: 16 * KIB } } } });
  const body = { id: "same", agentId: "ann", action: "x", ...big(20 * KIB) };
  await kit.drover.submit(body);
  assert.equal((await kit.drover.submit(body)).taskId, "same");
});

test("a log that is full takes no more work and all reports; its last tenth is for who stored little", async () => {
  const store = createMemoryStore();
  const config = { log: { maxBytes: 1000 * KIB } };
  const kit = await createTestDrover({ config, log: createMemoryLog({ store }) });
  const taken: string[] = [];
  for (let index = 0; index < 110; index++) taken.push(await submit(kit, "rude", 10 * KIB));
  const first = taken.indexOf("log_full");
  assert.ok(first > 80 && first < 92, `${first} of 110 were taken`);
  assert.deepEqual(new Set(taken.slice(first)), new Set(["log_full"]));
  assert.equal(await submit(kit, "calm", 5 * KIB), "ok");
  assert.equal(await submit(kit, "calm", 60 * KIB), "ok", "it had stored less than a hundredth");
  assert.equal(await submit(kit, "calm", 1), "log_full");
  assert.equal(await submit(kit, "third", 60 * KIB), "log_full", "that would be more than all");
  await kit.drover.cancel("t1").catch(() => {});
  await kit.drover.worker({ slots: 50 }, () => "done");
  await kit.settle();
  assert.ok((await kit.drover.stats()).metrics.tasksCompleted > 0, "what was let in goes on");
  const again = await createTestDrover({ config, log: createMemoryLog({ store }) });
  assert.equal(await submit(again, "rude", 60 * KIB), "log_full", "a new engine asks the log how large it is");
});

test("room that comes back is noticed", async () => {
  const log = createMemoryLog();
  let bytes = 900 * KIB;
  const kit = await createTestDrover({
    config: { log: { maxBytes: 800 * KIB } },
    log: { ...log, bytes: async () => bytes },
  });
  assert.equal(await submit(kit, "p", 1), "log_full");
  bytes = 100 * KIB;
  await kit.clock.advance(1000);
  assert.equal(await submit(kit, "p", 1), "log_full", "this one makes it look again");
  await kit.settle();
  assert.equal(await submit(kit, "p", 1), "ok");
});

test("an agent that names many projects stores what one may store, and others go on", async () => {
  const kit = await createTestDrover({
    config: { projects: { default: { bytesPerMinute: 50 * KIB }, own: { bytesPerMinute: 200 * KIB } } },
  });
  const store = (agentId: string, project: string): Promise<string> =>
    kit.drover.submit({ agentId, project, action: "x", ...big(10 * KIB) }).then(
      () => "ok",
      ({ code, message }: DroverError) => `${code}: ${message}`,
    );
  const answers: string[] = [];
  for (let index = 0; index < 200; index++) answers.push(await store("rude", `x${index}`));
  assert.equal(answers.filter((answer) => answer === "ok").length, 9);
  assert.match(answers.at(-1) ?? "", /^bytes_per_minute: agent rude has stored \d+ bytes .*in all its projects/);
  assert.equal(await store("calm", "x1"), "ok");
  for (let index = 0; index < 19; index++) assert.equal(await store("rude", "own"), "ok", "it has its own limit");
  assert.match(await store("rude", "own"), /^bytes_per_minute: project own/);
  await kit.clock.advance(61_000);
  assert.equal(await store("rude", "x199"), "ok");
});

test("a project that stores under the name of another's agent leaves that agent its own part", async () => {
  const kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: 100 * KIB } } } });
  const store = (project: string): Promise<string> =>
    kit.drover.submit({ agentId: "ann", project, action: "x", ...big(10 * KIB) }).then(
      () => "ok",
      ({ code }: DroverError) => code,
    );
  for (let index = 0; index < 50; index++) await store("rude");
  for (let index = 0; index < 9; index++) assert.equal(await store("calm"), "ok");
});

const wide = "ü".repeat(1000);
const ends: [what: string, end: (kit: TestDrover, ids: readonly string[]) => Promise<unknown>][] = [
  ["reasons", ({ drover }, ids) => Promise.all(ids.map((id) => drover.cancel(id, { reason: wide })))],
  ["errors", ({ drover }) => drover.worker({ slots: 9 }, () => Promise.reject(new Error(wide)))],
];
for (const [what, end] of ends)
  test(`${what} count in bytes, not in characters`, async () => {
    const kit = await createTestDrover({ config: { projects: { p: { bytesPerMinute: 16 * KIB } } } });
    const ids = ["a", "b", "c", "d"];
    for (const id of ids) await kit.drover.submit({ id, agentId: "ann", project: "p", action: "x" });
    await end(kit, ids);
    await kit.settle();
    // 9 KiB in UTF-8, 5 KiB in characters.
    assert.match(await submit(kit, "p", 9 * KIB), /^bytes_per_minute/);
    assert.equal(await submit(kit, "p", 5 * KIB), "ok");
  });

test("what a schedule comes to counts for its project: its id, its body in bytes, and each move", async () => {
  const kit = await createTestDrover({ config: { projects: { p: { bytesPerMinute: 16 * KIB } } } });
  const { schedules } = kit.drover;
  const task = { agentId: "ann", project: "p", action: "x" };
  const put = (id: string, text: string) =>
    schedules.put(id, { cron: "* * * * * *", task: { ...task, params: { text } } });
  await put("first", "");
  await assert.rejects(put("wide", "ü".repeat(8 * KIB)), { code: "bytes_per_minute" });
  await put("plain", "u".repeat(8 * KIB));
  await schedules.remove("plain");
  await kit.clock.advance(61_000);
  await kit.drover.cancelWhere({ all: true });
  await kit.clock.advance(61_000);
  // Each second passes over the instant, since the former task lives: that is a move, and nothing else.
  const { seq } = kit.drover.state;
  await kit.clock.advance(30_000);
  assert.equal(kit.drover.state.seq, seq + 30);
  await kit.clock.advance(30_000);
  await assert.rejects(put("plain", "u".repeat(10 * KIB)), { code: "bytes_per_minute" });
  await schedules.put("first", { cron: "@yearly", task });
  await kit.clock.advance(61_000);
  await put("plain", "u".repeat(10 * KIB));
});

test("a schedule that is refused counts for nothing", async () => {
  const kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: 256 * KIB } } } });
  const put = (id: string) =>
    kit.drover.schedules.put(id, { cron: "@daily", task: { agentId: "ann", action: "x", ...big(32 * KIB) } });
  await put("first");
  const schedules = kit.drover.state.schedules as Map<unknown, unknown>;
  const [first] = schedules.values() as Iterable<object>;
  const other = { ...first, body: '{"task":{"agentId":"bob","project":"other"}}' };
  for (let index = 1; index < SCHEDULES; index++) schedules.set(`s${index}`, other);
  for (let index = 0; index < 20; index++) await assert.rejects(put("more"), { code: "limit" });
  schedules.delete("s1");
  await put("more");
});

test("a plan is weighed with its document and all that comes with it, before any of it is stored", async () => {
  await using kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: 64 * KIB } } } });
  const { drover } = kit;
  await drover.submit({ agentId: "me", action: "x" });
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`t${index}`, "true"]));
  const { seq } = drover.state;
  await assert.rejects(drover.plans.put("p", { tasks: many }), { code: "bytes_per_minute" });
  assert.equal(drover.state.seq, seq, "nothing is left of it");
  await kit.clock.advance(120_000);
  assert.equal((await drover.plans.put("p", { tasks: many })).submitted, 200, "whoever has stored nothing may");
  await kit.clock.advance(120_000);
  const again = async (): Promise<void> => {
    for (let times = 0; times < 20; times++)
      await drover.plans.put("p", { tasks: many }, { failFast: times % 2 === 0 });
  };
  await assert.rejects(
    again(),
    { code: "bytes_per_minute" },
    "a document that is put in another way again and again counts",
  );
});

test("that a plan is cut or renewed counts, and is never refused", async () => {
  await using kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: KIB } } } });
  const { plans, state } = kit.drover;
  await plans.put("p", { tasks: { a: "true" } });
  const keeper = { project: projectId("default"), agent: null };
  for (const type of ["cut-plan", "renew-plan"] as const) {
    const guard = createStorageGuard({ state, log: createMemoryLog() });
    for (let times = 0; times < 20; times++) assert.equal(guard.weigh({ type, plan: "p" }, 0), null);
    assert.equal(guard.room(keeper, 10, 0)?.type, "bytes-per-minute");
  }
});
