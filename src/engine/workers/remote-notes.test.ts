/**
 * A worker that takes nothing may say why, and whoever asks why a task does not start hears it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join, kitWith } from "../../../test/kits/hand-worker.ts";

test("why a worker takes nothing is said by why, and taken back by the next sync", async () => {
  await using kit = await kitWith();
  const ann = await join(kit);
  await ann.sync({ want: 0, note: "50 worktrees of 50" });
  await kit.drover.submit({ id: "t", agentId: "a", action: "build" });
  const room = async (): Promise<string | undefined> =>
    (await kit.drover.why("t")).conditions.find(({ code }) => code === "worker-room")?.detail;
  assert.match(
    (await room()) ?? "",
    /^the one worker has no room for it: not taking work; worker ann: 50 worktrees of 50$/,
  );
  assert.equal((await kit.drover.workers())[0]?.note, "50 worktrees of 50");
  assert.deepEqual((await kit.drover.task("t")).state, "queued");
  await ann.sync({ want: 0 });
  assert.doesNotMatch((await room()) ?? "", /worktrees/);
});

test("a worker that wants nothing and has nothing is listed with the slots it has", async () => {
  await using kit = await kitWith();
  const ann = await join(kit, { slots: 4 });
  await ann.sync({ want: 0 });
  const [worker] = await kit.drover.workers();
  assert.deepEqual([worker?.status, worker?.inFlight, worker?.slots], ["overloaded", 0, 4]);
  await kit.drover.submit({ id: "t", agentId: "a", action: "build" });
  await kit.settle();
  assert.equal((await kit.drover.task("t")).state, "queued", "it gets nothing all the same");
});
