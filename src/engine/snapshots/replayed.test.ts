/**
 * A snapshot that is whole and signed may still be wrong: it is compared with what its events lead to.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seq } from "../../core/base/index.ts";
import { snapshotLines } from "../../core/snapshot/index.ts";
import type { Log } from "../../log/index.ts";
import { createMemoryLog } from "../../log/memory/index.ts";
import { createTestDrover } from "../../testing/index.ts";
import { nodeKeys, readWhole } from "./replayed.ts";
import { hashAt } from "./snapshotter.ts";

test("the newest snapshot is what its events lead to, from the first or from the snapshot before", async () => {
  const log = createMemoryLog();
  const { drover, clock } = await createTestDrover({ log, config: { log: { retain: "1s" } } });
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  assert.equal((await readWhole(log)).snapshot, null, "there is none yet");
  const first = await drover.snapshot();
  assert.deepEqual((await readWhole(log)).snapshot, { seq: first, from: 0, message: null });
  const seqs: number[] = [];
  for (const id of ["u", "v", "w"]) {
    await clock.advance(5000);
    await drover.submit({ agentId: "a", action: "x", id });
    seqs.push(await drover.snapshot());
  }
  await drover.submit({ agentId: "a", action: "x" });
  const [, before, newest] = seqs;
  assert.ok((await drover.verify()).base.seq > 0, "it was pruned");
  const told: number[] = [];
  const { snapshot } = await readWhole(log, (done, total) => told.push(done, total));
  assert.deepEqual(snapshot, { seq: newest, from: before, message: null });
  const { seq: end } = drover.state;
  assert.deepEqual([new Set(told.filter((_, index) => index % 2 === 1)), told.at(-2)], [new Set([end]), end]);
  await drover.close();
});

test("one that says what never happened is found, though its signature holds", async () => {
  for (const [change, expected] of [
    [(lines: string[]) => lines.map((line) => line.replace('"t"', '"other"')), /it says .*other.* lead to .*"t"/],
    [() => ["garbage"], /cannot be read/],
    [(lines: string[]) => lines.slice(0, -1), /cannot be read.*ends before its last line/],
    [(lines: string[]) => lines, null],
  ] as const) {
    const log = createMemoryLog();
    const { drover } = await createTestDrover({ log });
    await drover.submit({ agentId: "a", action: "x", id: "t" });
    const at = seq(drover.state.seq);
    const chunks = [Buffer.from(`${change([...snapshotLines(drover.state)]).join("\n")}\n`)];
    await log.saveSnapshot({ seq: at, hash: await hashAt(log, at), chunks });
    assert.ok((await log.verify()).ok, "every hash and signature holds");
    const { state, snapshot } = await readWhole(log);
    const { seq: of, message = "" } = snapshot ?? {};
    assert.deepEqual(state === null ? null : nodeKeys(state), /cannot/.test(message ?? "") ? null : []);
    assert.equal(of, at);
    if (expected === null) assert.equal(message, null);
    else assert.match(message ?? "", expected);
    await drover.close();
  }
});

test("a log is read whole with its newest snapshot restored once", async () => {
  const log = createMemoryLog();
  const { drover } = await createTestDrover({ log });
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  const at = await drover.snapshot();
  await drover.submit({ agentId: "a", action: "x", id: "u" });
  const asked: unknown[] = [];
  const loadSnapshot: Log["loadSnapshot"] = (...before) => {
    asked.push(before);
    return log.loadSnapshot(...before);
  };
  const { state, snapshot } = await readWhole({ ...log, loadSnapshot });
  assert.equal(state?.tasks.size, 2);
  assert.deepEqual(snapshot, { seq: at, from: 0, message: null });
  assert.deepEqual(asked, [[]]);
  await drover.close();
});
