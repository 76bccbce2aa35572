/**
 * Snapshots begin by themselves while the engine runs, and no more once it is being closed: what was still under way
 * then is made durable, and must not start work on a log that is about to close. Found by the simulator, seed 2125.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fewTurns } from "../../test/log-in-hand.ts";
import { instant, seq } from "../core/brand.ts";
import { DEFAULT_CONFIG } from "../core/config.ts";
import { encodeEvent } from "../log/codec.ts";
import { createMemoryLog } from "../log/memory-log.ts";
import { createSnapshotter, type Snapshotter } from "./snapshotter.ts";

const config = { ...DEFAULT_CONFIG, log: { ...DEFAULT_CONFIG.log, snapshotEvery: 1 } };

async function begin(): Promise<{
  log: ReturnType<typeof createMemoryLog>;
  snapshots: Snapshotter;
  failures: unknown[];
}> {
  const log = createMemoryLog();
  const event = { kind: "engine-started", at: instant(1), coreVersion: "1", policyHash: "" } as const;
  await log.append(seq(0), 1, { firstSeq: seq(1), records: [{ bytes: encodeEvent(event, null) }] }, "first");
  const failures: unknown[] = [];
  const snapshots = createSnapshotter({
    ...{ log, directory: null, lastSeq: seq(0), config: () => config, now: () => 1 },
    onFailure: (error) => failures.push(error),
  });
  return { log, snapshots, failures };
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

test("what is committed while the engine closes begins no snapshot", async () => {
  const { log, snapshots, failures } = await begin();
  await snapshots.stop();
  snapshots.onCommitted(seq(1));
  await log.close();
  await snapshots.stop();
  assert.deepEqual(failures, []);
});

test("one that failed is tried again so many events later, not at every commit", async () => {
  const { log, failures } = await begin();
  let tries = 0;
  const broken = { ...log, checkpoints: () => Promise.reject(new Error(`no ${++tries}`)) };
  const every = { ...config, log: { ...config.log, snapshotEvery: 10 } };
  const snapshots = createSnapshotter({
    ...{ log: broken, directory: null, lastSeq: seq(0), config: () => every, now: () => 1 },
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
