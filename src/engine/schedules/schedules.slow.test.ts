import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ids = async ({ drover }: TestDrover) =>
  (await drover.tasks()).tasks.map(({ taskId, state }) => `${taskId} ${state}`);
const every = (cron: string, more: object = {}) => ({ cron, task: { agentId: "a", action: "go" }, ...more });

test("each instant makes a task with an id of its own", async () => {
  const kit = await createTestDrover();
  const view = await kit.drover.schedules.put("tick", every("*/10 * * * *", { overlap: "queue" }));
  assert.equal(view.nextAt, "2026-01-01T00:10:00.000Z");
  await kit.clock.advance(20 * MINUTE);
  assert.deepEqual(await ids(kit), ["sch_tick_20260101T001000Z queued", "sch_tick_20260101T002000Z queued"]);
  const after = await kit.drover.schedules.get("tick");
  assert.deepEqual([after.lastTaskId, after.nextAt], ["sch_tick_20260101T002000Z", "2026-01-01T00:30:00.000Z"]);
  await kit.drover.schedules.remove("tick");
  await kit.clock.advance(HOUR);
  assert.equal((await ids(kit)).length, 2);
  await kit.drover.close();
});

for (const [overlap, expected] of [
  ["skip", ["sch_o_20260101T001000Z running"]],
  ["queue", ["sch_o_20260101T001000Z running", "sch_o_20260101T002000Z queued"]],
  ["cancel", ["sch_o_20260101T001000Z cancelled", "sch_o_20260101T002000Z queued"]],
] as const)
  test(`where the former task still runs, overlap ${overlap} does as it says`, async () => {
    const kit = await createTestDrover({ config: { scheduler: { maxInFlight: 1 }, workers: { killGrace: "1h" } } });
    await kit.drover.worker({}, () => new Promise(() => {}));
    await kit.drover.schedules.put("o", every("*/10 * * * *", { overlap }));
    await kit.clock.advance(20 * MINUTE);
    assert.deepEqual(await ids(kit), expected);
  });

test("time zones and their summer time are respected", async () => {
  const rows: [string, string, string][] = [
    ["2026-03-28T12:00:00Z", "30 2 * * *", "2026-03-29T01:00:00.000Z"],
    ["2026-06-01T00:00:00Z", "0 9 * * *", "2026-06-01T07:00:00.000Z"],
    ["2026-12-01T00:00:00Z", "0 9 * * *", "2026-12-01T08:00:00.000Z"],
  ];
  for (const [now, cron, expected] of rows) {
    const kit = await createTestDrover({ at: Date.parse(now) });
    const { nextAt } = await kit.drover.schedules.put("z", every(cron, { timeZone: "Europe/Berlin" }));
    if (cron !== "30 2 * * *") assert.equal(nextAt, expected);
    else assert.ok(nextAt === expected || nextAt === "2026-03-29T01:30:00.000Z", `${nextAt} is in the skipped hour`);
    await kit.drover.close();
  }
});

for (const [catchUp, count] of [
  [0, 0],
  [1, 1],
  [3, 3],
] as const)
  test(`what was missed while nobody ran is made up for as catchUp ${catchUp} says, and never twice`, async () => {
    const data = await mkdtemp(join(tmpdir(), "drover-schedules-"));
    const first = await createTestDrover({ data });
    await first.drover.schedules.put("m", every("0 * * * *", { overlap: "queue", catchUp }));
    await first.drover.close();
    for (const hours of [10.5, 10.6]) {
      const kit = await createTestDrover({ data, at: first.clock.now() + hours * HOUR });
      await kit.clock.advance(1);
      const found = await ids(kit);
      assert.equal(found.length, count);
      if (count > 0) assert.equal(found.at(-1), "sch_m_20260101T100000Z queued");
      assert.equal((await kit.drover.schedules.get("m")).nextAt, "2026-01-01T11:00:00.000Z");
      await kit.drover.close();
    }
    await rm(data, { recursive: true });
  });

test("an instant that finds no room is tried again, and is not lost", async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxQueue: 1 } } });
  await kit.drover.submit({ agentId: "a", action: "x", id: "full" });
  await kit.drover.schedules.put("r", every("*/10 * * * *"));
  await kit.clock.advance(10 * MINUTE + 5000);
  assert.deepEqual(await ids(kit), ["full queued"]);
  await kit.drover.cancel("full");
  await kit.clock.advance(1000);
  assert.ok((await ids(kit)).includes("sch_r_20260101T001000Z queued"));
  await kit.drover.close();
});

test("startAt, endAt and paused bound a schedule; the same body again changes nothing", async () => {
  const kit = await createTestDrover();
  const { schedules } = kit.drover;
  const later = await schedules.put("s", every("0 * * * *", { startAt: "2026-01-01T05:30:00Z" }));
  assert.equal(later.nextAt, "2026-01-01T06:00:00.000Z");
  await schedules.put("e", every("0 * * * *", { endAt: "2026-01-01T01:30:00Z" }));
  assert.equal((await schedules.put("p", every("0 * * * *", { paused: true }))).nextAt, undefined);
  const { seq } = kit.drover.state;
  await schedules.put("s", every("0 * * * *", { startAt: "2026-01-01T05:30:00Z" }));
  assert.equal(kit.drover.state.seq, seq);
  assert.deepEqual(
    (await schedules.list()).schedules.map(({ id }) => id),
    ["e", "p", "s"],
  );
  await kit.drover.close();
});

test("a list is pages by id, which end by their limit or their bytes, and a cursor outlives its schedule", async () => {
  const kit = await createTestDrover();
  const { schedules } = kit.drover;
  const params = { text: "ü".repeat(30_000) };
  for (let count = 0; count < 40; count++) {
    const id = `s${count % 10}${Math.floor(count / 10)}`;
    const project = count < 20 ? "web" : "default";
    await schedules.put(id, { cron: "@daily", task: { agentId: `a${count % 2}`, project, action: "go", params } });
  }
  const first = await schedules.list();
  assert.deepEqual([first.count, first.nextCursor], [17, "s40"], "a mebibyte of bodies, in UTF-8");
  await schedules.remove("s40");
  const pages = [first];
  for (let page = first; page.nextCursor !== undefined; pages.push(page))
    page = await schedules.list({ limit: 10, cursor: page.nextCursor });
  assert.deepEqual(
    pages.map(({ count }) => count),
    [17, 10, 10, 3],
  );
  const ids = pages.flatMap((page) => page.schedules.map(({ id }) => id));
  assert.deepEqual(ids, [...new Set(ids)].sort());
  const some = await schedules.list({ project: ["web", "other"], agentId: "a1", limit: 5 });
  assert.deepEqual(
    some.schedules.map(({ id }) => id),
    ["s10", "s11", "s30", "s31", "s50"],
  );
  await assert.rejects(schedules.list({ limit: 0 }), /limit is 0, and must be a whole number from 1 to 1000/);
  await assert.rejects(schedules.list({ cursor: "" }), /cursor is "", and must be the nextCursor of a former page/);
  await assert.rejects(schedules.list({ page: 2 } as never), /page is not a known field.*limit, cursor/);
  await kit.drover.close();
});

test("a bad schedule is refused by field, and nothing changes", async () => {
  const kit = await createTestDrover();
  const bad: [object, string][] = [
    [every("every day"), "cron"],
    [every("99 * * * *"), "cron"],
    [every("2030-01-01T00:00:00"), "cron"],
    [every("0 * * * *", { timeZone: "Mars/Base" }), "timeZone"],
    [{ cron: "0 * * * *" }, "task"],
    [{ task: { agentId: "a", action: "b" } }, "cron"],
    [every("0 * * * *", { task: { agentId: "a" } }), "task.action"],
    [every("0 * * * *", { task: { agentId: "a", action: "b", id: "x" } }), "task.id"],
    [every("0 * * * *", { task: { agentId: "a", action: "b", surprise: 1 } }), "task.surprise"],
    [every("0 * * * *", { overlap: "maybe" }), "overlap"],
    [every("0 * * * *", { catchUp: -1 }), "catchUp"],
    [every("0 0 30 2 *"), "cron"],
    [every("0 * * * *", { endAt: "2026-01-01T00:30:00Z" }), "endAt"],
    [every("0 * * * *", { startAt: "2026-01-02T00:00:00Z", endAt: "2026-01-01T00:00:00Z" }), "endAt"],
  ];
  for (const [body, field] of bad)
    await assert.rejects(kit.drover.schedules.put("x", body as never), (error: unknown) => {
      const { code, details } = error as { code: string; details: { field: string } };
      assert.deepEqual([code, details.field], ["bad_request", field]);
      return true;
    });
  // In our words, without the name of the library's class.
  await assert.rejects(kit.drover.schedules.put("x", every("99 * * * *")), /@weekly; (?!CronPattern)\S/);
  await assert.rejects(kit.drover.schedules.get("x"), /no schedule is called x/);
  await assert.rejects(kit.drover.schedules.remove("x"), /no schedule is called x/);
  await kit.drover.close();
});

test("what was missed is made up for only within the schedule's life", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-"));
  const at = Date.parse("2026-01-01T11:30:00Z");
  const first = await createTestDrover({ data, at });
  const life = { endAt: "2026-01-01T13:00:00Z", catchUp: 3, overlap: "queue" };
  await first.drover.schedules.put("e", every("0 * * * *", life));
  await first.drover.close();
  const second = await createTestDrover({ data, at: at + 9 * HOUR });
  await second.clock.advance(1000);
  assert.deepEqual(await ids(second), ["sch_e_20260101T120000Z queued", "sch_e_20260101T130000Z queued"]);
  assert.equal((await second.drover.schedules.get("e")).nextAt, undefined);
  await second.drover.close();
  await rm(data, { recursive: true });
});

test("however many are due together, all run at their instant, and those without room keep nobody out", async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxPerAgent: 30 } } });
  for (let count = 0; count < 150; count++) {
    const task = { agentId: count < 140 ? "crowded" : "free", action: "go" };
    await kit.drover.schedules.put(`s${count}`, { cron: "0 * * * *", catchUp: 0, task });
  }
  await kit.clock.advance(HOUR);
  const { tasks } = await kit.drover.tasks({ limit: 100 });
  assert.equal(tasks.filter(({ agentId }) => agentId === "free").length, 10);
  assert.equal(tasks.length, 40);
  await kit.drover.cancelWhere({ all: true });
  await kit.clock.advance(1000);
  assert.equal((await kit.drover.tasks({ limit: 100 })).tasks.length, 70);
  await kit.drover.close();
});

test("nobody takes the id of an instant before it comes, alone or in a batch; others like it are free", async () => {
  const kit = await createTestDrover();
  await kit.drover.schedules.put("tick", every("*/10 * * * *"));
  const taken = { agentId: "b", action: "mine", id: "sch_tick_20260101T001000Z" };
  const expected =
    /^(tasks\[0\]\.)?id is "sch_tick_20260101T001000Z", and must be an id not of the form sch_<schedule>/;
  await assert.rejects(kit.drover.submit(taken), { code: "bad_request", message: expected });
  const { agentId, ...item } = taken;
  const batch = await kit.drover.submitBatch({ agentId, tasks: [item] });
  assert.match(batch.tasks[0]?.error ?? "", expected);
  for (const id of ["sch_tick", "sch_tick_20260101", "my_sch_tick_20260101T001000Z"])
    assert.equal((await kit.drover.submit({ ...taken, id })).taskId, id);
  await kit.clock.advance(10 * MINUTE);
  assert.equal((await kit.drover.task(taken.id)).agentId, "a");
  await kit.drover.close();
});

test("a schedule that is removed while it is put is answered all the same", async () => {
  const kit = await createTestDrover();
  const put = kit.drover.schedules.put("s", every("0 * * * *"));
  await kit.drover.schedules.remove("s");
  assert.equal((await put).id, "s");
  await kit.drover.close();
});
