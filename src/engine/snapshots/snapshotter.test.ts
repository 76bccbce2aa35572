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
import { fewTurns } from "../../../test/kits/waits.ts";
import { instant, seq } from "../../core/base/brand.ts";
import { DEFAULT_CONFIG } from "../../core/config/config.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";
import { openDrover } from "../drover.ts";
import { createSnapshotter, fileInProgress, type Snapshotter } from "./snapshotter.ts";

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
    onPruned: () => {},
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
    onPruned: () => {},
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
