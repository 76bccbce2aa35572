import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { seq } from "../core/base/brand.ts";
import { restore, snapshotLines } from "../core/snapshot/snapshot.ts";
import { createMemoryLog, createMemoryStore } from "../log/memory/memory-log.ts";
import { createTestDrover } from "../testing/index.ts";
import { again } from "./index.ts";
import { neededPayloads } from "./snapshots/snapshotter.ts";
import { recover, snapshotChunks } from "./writer/recovery.ts";

const callbackUrl = "https://example.com/done";

test("every end of a task that wants it is due once, until it is settled, also after a restart", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-callbacks-"));
  const first = await createTestDrover({ data });
  const { drover } = first;
  let heard = 0;
  drover.callbacks.onDue(() => heard++);
  await drover.submit({ agentId: "a", action: "x", id: "quiet" });
  await drover.submitBatch({
    agentId: "a",
    callbackUrl,
    tasks: [
      { action: "x", id: "loud" },
      { action: "x", id: "other" },
    ],
  });
  for (const id of ["quiet", "loud", "other"]) await drover.cancel(id);
  await first.settle();
  const due = [...drover.callbacks.pending()];
  assert.deepEqual(
    due.map(({ taskId, state }) => [taskId, state]),
    [
      ["loud", "cancelled"],
      ["other", "cancelled"],
    ],
  );
  assert.equal(heard > 0, true);
  await drover.callbacks.settle(due[0]?.seq as number, { ok: true, status: 200, attempts: 1 });
  await drover.callbacks.settle(due[0]?.seq as number, { ok: true, status: 200, attempts: 1 });
  await drover.snapshot();
  await drover.close();
  const second = await createTestDrover({ data, at: first.clock.now() });
  assert.deepEqual(
    Array.from(second.drover.callbacks.pending(), ({ taskId, host, project }) => [taskId, host, project]),
    [["other", "example.com", "default"]],
  );
  await second.drover.retry("other");
  await second.drover.cancel("other");
  assert.deepEqual(
    Array.from(second.drover.callbacks.pending(), ({ taskId }) => taskId),
    ["other", "other"],
  );
  // Its record expires; what is due stays due.
  await second.clock.advance(301_000);
  assert.equal([...second.drover.callbacks.pending()].length, 2);
  assert.equal((await second.drover.task("other")).callbackUrl, callbackUrl);
  await second.drover.close();
  await rm(data, { recursive: true });
});

test("what is told of an end is the same ever after: retried, ended again, expired, reopened", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-callbacks-"));
  const first = await createTestDrover({ data, config: { scheduler: { retry: { base: 1, max: 1 } } } });
  const { drover, clock } = first;
  const outcomes = [new Error("first time"), { deep: [1] }];
  const handler = () => {
    const outcome = outcomes.shift();
    if (outcome instanceof Error) throw Object.assign(outcome, { permanent: true });
    return outcome;
  };
  const worker = await drover.worker({ id: "w" }, handler);
  await drover.submit({ agentId: "a", action: "x", id: "t", callbackUrl, priority: "high", params: { a: 1 } });
  await first.settle();
  const atFirst = await drover.task("t");
  assert.deepEqual([atFirst.state, atFirst.error], ["failed", "first time"]);
  const [failed] = [...drover.callbacks.pending()];
  const tellAgain = async (who: typeof drover, seq: number | undefined) => who.callbacks.snapshot(seq ?? -1);
  assert.deepEqual(await tellAgain(drover, failed?.seq), atFirst, "as GET shows it");
  await clock.advance(5000);
  await drover.patch("t", { priority: 5 }).catch(() => {});
  await drover.retry("t");
  assert.deepEqual(await tellAgain(drover, failed?.seq), atFirst, "while it is queued again");
  await first.settle();
  const atLast = await drover.task("t");
  const [, done] = [...drover.callbacks.pending()];
  assert.deepEqual([atLast.state, atLast.result, atLast.attempt], ["done", { deep: [1] }, 2]);
  assert.deepEqual(await tellAgain(drover, failed?.seq), atFirst, "when it has ended again");
  assert.deepEqual(await tellAgain(drover, done?.seq), atLast);
  await clock.advance(301_000);
  assert.equal(drover.state.tasks.size, 0, "its record has expired");
  assert.deepEqual([await tellAgain(drover, failed?.seq), await tellAgain(drover, done?.seq)], [atFirst, atLast]);
  await worker.close();
  await drover.snapshot();
  await drover.close();
  const { drover: second } = await createTestDrover({ data, at: clock.now() });
  assert.deepEqual([await tellAgain(second, failed?.seq), await tellAgain(second, done?.seq)], [atFirst, atLast]);
  await second.callbacks.settle(done?.seq as number, { ok: true, attempts: 1 });
  assert.equal(await tellAgain(second, done?.seq), null);
  await second.close();
  await rm(data, { recursive: true });
});

test("an end that an older snapshot knows only by its number is told as its task shows it", async () => {
  const { drover } = await createTestDrover();
  await drover.submit({ agentId: "a", action: "x", id: "t", callbackUrl });
  await drover.cancel("t");
  const lines = [...snapshotLines(drover.state)];
  const older = lines.map((line) => {
    const row = JSON.parse(line) as unknown[];
    if (row[0] === "drover") row[1] = 3;
    return JSON.stringify(row[0] === "callback" ? row.slice(0, row[2] === null ? 2 : 4) : row);
  });
  assert.notDeepEqual(older, lines);
  const expected = lines.slice(1).map((line) => line.replace('"example.com"', '""'));
  assert.deepEqual(
    [...snapshotLines(restore(older))].slice(1),
    expected,
    "the task is there and says all but the host",
  );
});

test("what is still to be told of a task outlives its record and its events", async () => {
  const store = createMemoryStore();
  const config = { scheduler: { resultTtl: 1000, remember: 600_000 } };
  const log = createMemoryLog({ store });
  const first = await createTestDrover({ log, config });
  await first.drover.submit({ agentId: "a", action: "x", id: "t", params: { much: "of it" }, callbackUrl });
  await first.drover.worker({ slots: 1 }, () => ({ answer: 42 }));
  await first.settle();
  const [due] = first.drover.callbacks.pending();
  const told = await first.drover.callbacks.snapshot(due?.seq as number);
  assert.deepEqual([told?.params, told?.result], [{ much: "of it" }, { answer: 42 }]);
  await first.clock.advance(2000);
  const { state, hash } = await recover(log);
  assert.ok(!state.tasks.has("t" as never), "its record is gone");
  const at = seq(state.seq);
  await log.saveSnapshot({ seq: at, hash, chunks: snapshotChunks(state) });
  await log.prune(at, neededPayloads(state, at));
  await first.drover.close();
  const second = await createTestDrover({ log: createMemoryLog({ store }), config, at: first.clock.now() });
  assert.deepEqual(await second.drover.callbacks.snapshot(due?.seq as number), told);
});

test("what is told of an end has rounds, labels, files and usage, also of a task that runs again", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-callbacks-"));
  const first = await createTestDrover({ data });
  const { drover } = first;
  let calls = 0;
  const worker = await drover.worker({ id: "w" }, async (_, { usage, output }) => {
    calls++;
    usage({ inputTokens: 5, outputTokens: calls, cost: 0.25 });
    await output("report.md", `call ${calls}`);
    if (calls === 2) throw Object.assign(new Error("no"), { permanent: true });
    return again("red");
  });
  const labels = { team: "web" };
  await drover.submit({ agentId: "a", action: "x", id: "t", callbackUrl, labels, loop: { max: 5 } });
  await drover.wait("t");
  await worker.close();
  const [due] = [...drover.callbacks.pending()];
  const told = await drover.callbacks.snapshot(due?.seq as number);
  assert.deepEqual([told?.state, told?.iteration, told?.labels], ["failed", 2, labels]);
  assert.deepEqual(told?.usage, { inputTokens: 10, outputTokens: 3, cachedTokens: 0, cost: 0.5 });
  assert.deepEqual(
    [told?.rounds?.map(({ note, usage }) => [note, usage?.outputTokens]), told?.files?.map(({ path }) => path)],
    [[["red", 1]], ["report.md"]],
  );
  await drover.retry("t");
  await drover.snapshot();
  await drover.close();
  const second = await createTestDrover({ data, at: first.clock.now() });
  assert.deepEqual(await second.drover.callbacks.snapshot(due?.seq as number), told);
  await second.drover.close();
  await rm(data, { recursive: true });
});
