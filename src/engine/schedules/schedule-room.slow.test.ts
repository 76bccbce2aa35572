/**
 * How many schedules there may be, how much they may hold, and for whom the last of it is kept.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScheduleId } from "../../core/base/brand.ts";
import { sentence } from "../../core/base/refusal.ts";
import type { Schedule } from "../../core/model/state.ts";
import { createTestDrover } from "../../testing/index.ts";
import { createScheduleRoom } from "./schedule-list.ts";

const SIZE = 64 * 1024;

/** So many schedules of one owner, all alike; with a text of so many bytes. */
function filled(count: number, owner: { project: string; agentId: string }, bytes = 0) {
  const body = JSON.stringify({ task: { ...owner, params: "" } });
  const schedules = new Map<ScheduleId, Schedule>();
  for (let index = 0; index < count; index++) {
    const id = `s${index}` as ScheduleId;
    const text = body.replace('""', `"${"x".repeat(Math.max(0, bytes - body.length))}"`);
    schedules.set(id, { id, body: text, nextAt: null, lastAt: null, lastTask: null });
  }
  return {
    schedules,
    ask: (id: string, project: string, agentId: string, size = 100): string | null => {
      const refusal = createScheduleRoom(schedules).refusalFor(id as ScheduleId, { bytes: size, project, agentId });
      return refusal === null ? null : sentence(refusal);
    },
  };
}

test("one project or agent takes nine tenths of the schedules, and another still gets one", () => {
  const owner = { project: "greedy", agentId: "g" };
  assert.equal(filled(8999, owner).ask("new", "greedy", "g"), null);
  const { ask } = filled(9000, owner);
  const kept = "of at most 10000 schedules the last 1000 are kept for projects that have few";
  assert.equal(ask("new", "greedy", "other"), kept);
  assert.equal(ask("new", "made-up", "g"), kept, "names of projects are free");
  assert.equal(ask("new", "calm", "c"), null);
  assert.equal(ask("s1", "greedy", "g"), null, "one that is there has its place");
  const full = "there are 10000 schedules already, which is the maximum";
  assert.equal(filled(10_000, owner).ask("new", "calm", "c"), full);
});

test("their bodies hold 64 MiB together, the last tenth for projects that have little", () => {
  const owner = { project: "greedy", agentId: "g" };
  const { ask, schedules } = filled(923, owner, SIZE);
  const kept = /^of at most 67108864 bytes of schedules the last 6710886 are kept for projects that have few$/;
  assert.match(ask("new", "greedy", "g") ?? "", kept);
  assert.equal(ask("new", "calm", "c", SIZE), null);
  assert.equal(ask("s1", "greedy", "g", SIZE), null, "a change that takes no more");
  assert.match(ask("s1", "greedy", "g", SIZE + 1) ?? "", kept);
  assert.equal(
    ask("new", "calm", "c", 7_000_000),
    `there is no room for this: ${923 * SIZE} of at most 67108864 bytes of schedules are taken`,
  );
  schedules.delete("s1" as ScheduleId);
  schedules.delete("s2" as ScheduleId);
  assert.equal(ask("new", "greedy", "g"), null);
});

test("what is put, changed and removed is added up", async () => {
  const kit = await createTestDrover({ config: { projects: { default: { bytesPerMinute: null } } } });
  const { schedules } = kit.drover;
  const put = (id: string, more = "") =>
    schedules.put(id, {
      cron: "@daily",
      task: { agentId: "a", action: "x", params: { text: "ü".repeat(65_000) + more } },
    });
  let count = 0;
  const full = { code: "limit", message: /^of at most 67108864 bytes of schedules the last 6710886 are kept/ };
  await assert.rejects(async () => {
    for (;;) await put(`s${++count}`);
  }, full);
  assert.equal(count - 1, 465);
  await schedules.remove("s1");
  await schedules.remove("s2");
  for (const more of ["1", "12", "123", "1234", "12345"]) await put("s3", more);
  await put("s1");
  await put("s2");
  await assert.rejects(put(`s${count}`), full);
});
