/**
 * Snapshots of a log on the disk: made by a thread if there is much, while the engine goes on; found by the next life;
 * and given up without a trace when the engine closes.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { snapshotLines } from "../../core/snapshot/index.ts";
import { nextTurn } from "../../std/clock.ts";
import { createTestDrover } from "../../testing/index.ts";
import { type Drover, openDrover } from "../drover.ts";

const AT = 1_000_000_000;
const task = (id: string) => ({ id, agentId: "ann", action: "build" });

/** More than the engine writes by itself. */
async function queueMany(drover: Drover): Promise<void> {
  for (let round = 0; round < 12; round++)
    await drover.submitBatch({ agentId: "ann", tasks: Array.from({ length: 1000 }, () => ({ action: "build" })) });
}
const MANY = { scheduler: { maxBatch: 1000, maxQueue: 20_000, maxPerAgent: 20_000 } };

test("D4 the event loop goes on turning while a snapshot is made", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-turning-"));
  const drover = await openDrover({ data, config: MANY });
  await queueMany(drover);
  let turns = 0;
  let isMade = false;
  const made = drover.snapshot().finally(() => {
    isMade = true;
  });
  while (!isMade) {
    await nextTurn();
    turns++;
  }
  assert.equal(await made, drover.state.seq);
  assert.ok(turns > 20, `${turns} turns`);
  await drover.close();
  await rm(data, { recursive: true });
});

test("C17 each life on one log has its own epoch, and finds what the former left", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-lives-"));
  const first = await openDrover({ data });
  await first.submit(task("a"));
  await first.close();
  const second = await openDrover({ data });
  await second.submit(task("b"));
  let lives = 0;
  for await (const { kind } of second.events()) if (kind === "engine-started") lives++;
  assert.equal(lives, 2);
  assert.equal((await second.task("a")).state, "queued");
  await assert.rejects(first.submit(task("c")), { code: "closed" });
  assert.equal((await second.verify()).head.epoch, 2);
  await second.close();
  await rm(data, { recursive: true });
});

test("a snapshot that a thread made serves the next open, and so does a small one behind it", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-large-"));
  const first = await openDrover({ data, config: MANY });
  await queueMany(first);
  await first.snapshot();
  const lines = [...snapshotLines(first.state)].slice(1);
  await first.close();
  const second = await openDrover({ data, config: MANY });
  assert.deepEqual([...snapshotLines(second.state)].slice(1), lines);
  for (const { taskId } of (await second.tasks({ limit: 1000 })).tasks) await second.cancel(taskId);
  await second.snapshot();
  assert.ok((await second.verify()).ok);
  await second.close();
  await rm(data, { recursive: true });
});

test("a snapshot in a directory serves the next open, and the last two are kept", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-snapshot-"));
  const first = await createTestDrover({ at: AT, data });
  const seqs: number[] = [];
  for (let round = 0; round < 3; round++) {
    await first.drover.submit(task(`t${round}`));
    seqs.push(await first.drover.snapshot());
  }
  await first.drover.close();
  const files = (await readdir(data)).filter((name) => name.startsWith("snapshot-"));
  assert.deepEqual(
    files.map((name) => Number(/\d+/.exec(name)?.[0])).sort((a, b) => a - b),
    seqs.slice(-2),
  );
  const again = await createTestDrover({ at: AT, data });
  assert.deepEqual(
    (await again.drover.tasks()).tasks.map(({ taskId, action }) => `${taskId} ${action}`),
    ["t0 build", "t1 build", "t2 build"],
  );
  assert.ok((await again.drover.verify()).ok);
  await again.drover.close();
  await rm(data, { recursive: true });
});

test("a program given on the command line makes snapshots like any other", async () => {
  const home = await mkdtemp(join(tmpdir(), "drover-eval-"));
  const engine = new URL("../drover.ts", import.meta.url).href;
  const program = `
    import { openDrover } from ${JSON.stringify(engine)};
    await using drover = await openDrover({ data: ${JSON.stringify(home)} });
    await drover.submit({ agentId: "ann", action: "x" });
    console.log(await drover.snapshot() === drover.state.seq);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(stdout, "true\n");
  await rm(home, { recursive: true });
});

test("one that began by itself is given up when the engine closes, and leaves nothing behind", async (context) => {
  const data = await mkdtemp(join(tmpdir(), "drover-snapshot-"));
  context.after(() => rm(data, { recursive: true, force: true }));
  const warnings: string[] = [];
  const drover = await openDrover({
    ...{ data, config: { log: { snapshotEvery: 1 } }, onWarning: (message: string) => warnings.push(message) },
  });
  await drover.submit({ agentId: "ann", action: "x" });
  await drover.close();
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    (await readdir(data)).filter((name) => /snapshot/.test(name) && /tmp/.test(name)),
    [],
  );
  const again = await openDrover({ data });
  assert.equal(again.state.queued, 1);
  assert.equal(await again.snapshot(), again.state.seq);
  await again.close();
});
