/**
 * Snapshots begin by themselves while the engine runs, and no more once it is being closed: what was still under way
 * then is made durable, and must not start work on a log that is about to close. Found by the simulator, seed 2125.
 */
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { encodeEvent } from "../../../test/kits/encode-event.ts";
import { bytesOf } from "../../../test/kits/laws/live.ts";
import { fewTurns } from "../../../test/kits/waits.ts";
import { instant, seq } from "../../core/base/brand.ts";
import { DEFAULT_CONFIG } from "../../core/config/config.ts";
import type { State } from "../../core/model/index.ts";
import { changingLines } from "../../core/snapshot/index.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";
import { createTestDrover } from "../../testing/index.ts";
import { openDrover } from "../drover.ts";
import { recover } from "../writer/recovery.ts";
import { createSnapshotter, fileInProgress, type Snapshotter } from "./snapshotter.ts";

const config = { ...DEFAULT_CONFIG, log: { ...DEFAULT_CONFIG.log, snapshotEvery: 1 } };

const writerOf = (state: State) => ({ state, settled: async () => {}, now: () => instant(1) });

async function begin(changingMax?: number): Promise<{
  log: ReturnType<typeof createMemoryLog>;
  state: State;
  snapshots: Snapshotter;
  failures: unknown[];
}> {
  const log = createMemoryLog();
  const event = { kind: "engine-started", at: instant(1), coreVersion: "1", policyHash: "" } as const;
  await log.append(seq(0), 1, { firstSeq: seq(1), records: [{ bytes: encodeEvent(event, null) }] }, "first");
  const failures: unknown[] = [];
  const { state } = await recover(log);
  const snapshots = createSnapshotter({
    ...{ onPruned: () => {}, ...(changingMax === undefined ? {} : { changingMax }) },
    ...{ log, writer: writerOf(state), lastSeq: seq(0), config: () => config },
    onFailure: (error) => failures.push(error),
  });
  return { log, state, snapshots, failures };
}

test("a snapshot begins when enough was committed, and stopping waits for it", async () => {
  const { log, snapshots, failures } = await begin();
  snapshots.onCommitted(seq(1));
  await snapshots.stop();
  assert.deepEqual(
    (await log.checkpoints()).map((checkpoint) => checkpoint.seq),
    [1],
  );
  assert.deepEqual(failures, []);
});

test("a small state is written as the engine holds it, a large one as the log tells it, in equal bytes", async () => {
  const written: string[] = [];
  for (const changingMax of [1000, -1]) {
    const { log, snapshots } = await begin(changingMax);
    assert.equal(await snapshots.make(), 1);
    assert.equal(await snapshots.make(), 1, "nothing new, nothing stored");
    const parts: Uint8Array[] = [];
    for await (const chunk of (await log.loadSnapshot())?.chunks ?? []) parts.push(chunk);
    written.push(Buffer.concat(parts).toString());
  }
  assert.equal(written[0], written[1]);
  assert.match(written[0] ?? "", /^\["drover",/);
});

test("what has more ties than may be written at once is made by replay, in equal bytes", async () => {
  for (const changingMax of [1, 100]) {
    const log = createMemoryLog();
    const { drover } = await createTestDrover({ log });
    await drover.submit({ id: "root", agentId: "ann", action: "x" });
    for (const id of ["a", "b"]) await drover.submit({ id, agentId: "ann", action: "x", needs: ["root"] });
    const { state } = await recover(log);
    let reads = 0;
    const read: typeof log.read = (after, more) => {
      if (more?.bytesMax === undefined) reads++;
      return log.read(after, more);
    };
    const snapshots = createSnapshotter({
      ...{ onPruned: () => {}, onFailure: () => {}, changingMax, log: { ...log, read }, writer: writerOf(state) },
      ...{ lastSeq: seq(0), config: () => config },
    });
    await snapshots.make();
    assert.equal(reads, changingMax === 1 ? 1 : 0);
    assert.deepEqual(bytesOf((await recover(log)).state), bytesOf(state));
  }
});

test("the next snapshot of a state that is not small waits for three events a line, whoever makes it", async () => {
  const log = createMemoryLog();
  const { drover } = await createTestDrover({ log });
  for (let count = 0; count < 20; count++) await drover.submit({ agentId: "ann", action: "x" });
  const { written, noted } = changingLines(drover.state);
  for (const [changingMax, expected] of [
    [10, 3 * (written + noted)],
    [-1, 3 * (written + noted)],
    [100, 5],
  ] as const) {
    let begunAt = 0;
    let at = 0;
    const checkpoints: typeof log.checkpoints = () => {
      begunAt = at;
      return log.checkpoints();
    };
    const snapshots = createSnapshotter({
      ...{ onPruned: () => {}, onFailure: () => {}, changingMax, log: { ...log, checkpoints } },
      ...{ lastSeq: seq(0), config: () => ({ ...config, log: { ...config.log, snapshotEvery: 5 } }) },
      writer: writerOf(drover.state),
    });
    while (begunAt === 0 && at < 500) snapshots.onCommitted(seq(++at));
    await snapshots.stop();
    assert.equal(begunAt, expected);
  }
});

test("a snapshot of much is put off for as long as four are due", async () => {
  for (const [changingMax, expected] of [
    [1000, 10],
    [-1, 40],
  ] as const) {
    const { log, state } = await begin();
    const every = { ...config, log: { ...config.log, snapshotEvery: 10 } };
    let begunAt = 0;
    let at = 0;
    const snapshots = createSnapshotter({
      ...{ onPruned: () => {}, onFailure: () => {}, changingMax },
      ...{ writer: writerOf(state), lastSeq: seq(0), config: () => every },
      log: {
        ...log,
        checkpoints: () => {
          begunAt = at;
          return log.checkpoints();
        },
      },
    });
    while (begunAt === 0 && at < 50) snapshots.onCommitted(seq(++at));
    await snapshots.stop();
    assert.equal(begunAt, expected);
  }
});

test("what the engine holds is stored once it is durable, and not if it never is", async () => {
  const { log, state } = await begin();
  const durable = Promise.withResolvers<void>();
  const snapshots = createSnapshotter({
    ...{ onPruned: () => {}, onFailure: () => {} },
    ...{ log, lastSeq: seq(0), config: () => config },
    writer: { ...writerOf(state), settled: () => durable.promise },
  });
  const made = snapshots.make();
  await fewTurns(5);
  assert.deepEqual(await log.checkpoints(), []);
  durable.reject(new Error("the disk is gone"));
  await assert.rejects(made, { message: "the disk is gone" });
  assert.deepEqual(await log.checkpoints(), []);
});

test("what is committed while the engine closes begins no snapshot", async () => {
  const { log, snapshots, failures } = await begin();
  await snapshots.stop();
  snapshots.onCommitted(seq(1));
  await log.close();
  await snapshots.stop();
  assert.deepEqual(failures, []);
});

test("one that failed is tried again so many events later, not at every commit", async () => {
  const { log, state, failures } = await begin();
  let tries = 0;
  const broken = { ...log, checkpoints: () => Promise.reject(new Error(`no ${++tries}`)) };
  const every = { ...config, log: { ...config.log, snapshotEvery: 10 } };
  const snapshots = createSnapshotter({
    onPruned: () => {},
    ...{ log: broken, writer: writerOf(state), lastSeq: seq(0), config: () => every },
    onFailure: (error) => failures.push(String(error)),
  });
  const triedAt: number[] = [];
  for (let at = 1; at <= 40; at++) {
    const before = tries;
    snapshots.onCommitted(seq(at));
    if (tries > before) triedAt.push(at);
    await fewTurns(2);
  }
  assert.deepEqual(triedAt, [10, 20, 30, 40]);
  assert.deepEqual(failures, ["Error: no 1", "Error: no 2", "Error: no 3", "Error: no 4"]);
  await assert.rejects(snapshots.make(), { message: "no 5" }, "whoever asks for one is told");
});

test("what a crash left half written is swept when the directory is opened, and nothing else", async () => {
  const home = await mkdtemp(join(tmpdir(), "drover-sweep-"));
  const strangers = ["snapshot-in-progress-.tmp", "snapshot-in-progress-7.tmp.bak", "my-snapshot-in-progress-7.tmp"];
  for (const name of [...strangers, fileInProgress(7), fileInProgress(123_456)]) await writeFile(join(home, name), "x");
  const drover = await openDrover({ data: home });
  await drover.close();
  const left = (await readdir(home)).filter((name) => name.includes("in-progress"));
  assert.deepEqual(left.sort(), strangers.sort());
  await rm(home, { recursive: true });
});
