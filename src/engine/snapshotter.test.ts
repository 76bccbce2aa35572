/**
 * Snapshots begin by themselves while the engine runs, and no more once it is being closed: what was still under way
 * then is made durable, and must not start work on a log that is about to close. Found by the simulator, seed 2125.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
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
