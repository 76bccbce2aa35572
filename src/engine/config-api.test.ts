import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { wrong } from "../../test/kits/bad-calls.ts";
import { createTestDrover } from "../testing/index.ts";

test("a patch lies over every config, survives a restart, and null takes it back", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-config-"));
  const first = await createTestDrover({ data, config: { scheduler: { maxInFlight: 20, maxQueue: 30 } } });
  const patched = await first.drover.patchConfig({ maxInFlight: 7, retry: { base: "2s" }, perType: { code: 3 } });
  assert.deepEqual([patched.scheduler.maxInFlight, patched.scheduler.maxQueue], [7, 30]);
  await first.drover.reload({ scheduler: { maxInFlight: 21, maxQueue: 31 } });
  assert.deepEqual(
    [first.drover.effectiveConfig().scheduler.maxInFlight, first.drover.state.base.scheduler.maxInFlight],
    [7, 21],
  );
  await first.drover.snapshot();
  await first.drover.close();
  const { drover } = await createTestDrover({
    data,
    at: first.clock.now(),
    config: { scheduler: { maxInFlight: 22 } },
  });
  const { scheduler } = drover.effectiveConfig();
  assert.deepEqual(
    [scheduler.maxInFlight, scheduler.retry.base, scheduler.perType.code, scheduler.perType.plan],
    [7, 2000, 3, 2],
  );
  await drover.patchConfig({ maxInFlight: null });
  assert.deepEqual(
    [drover.effectiveConfig().scheduler.maxInFlight, drover.effectiveConfig().scheduler.retry.base],
    [22, 2000],
  );
  await drover.patchConfig(null);
  assert.equal(drover.effectiveConfig().scheduler.retry.base, 1000);
  await drover.close();
  await rm(data, { recursive: true });
});

test("P14 a patch is judged as a whole: zero and unknown fields are refused, and nothing changes", async () => {
  const { drover } = await createTestDrover({ config: { scheduler: { retry: { max: "10s" } } } });
  const before = JSON.stringify(drover.effectiveConfig());
  const { seq } = drover.state;
  let deep = {};
  for (let levels = 0; levels < 50_000; levels++) deep = { a: deep };
  for (const [patch, field] of [
    [{ maxInFlight: 0 }, "maxInFlight"],
    [{ maxInFlight: 5, maxQueue: 0 }, "maxQueue"],
    [{ maxInflight: 5 }, "maxInflight"],
    [{ retry: { base: "20s" } }, "retry.max"],
    [{ fairness: { rule: "odd" } }, "fairness.rule"],
    [[], "(body)"],
    [deep, "a"],
  ] as const)
    await assert.rejects(drover.patchConfig(wrong(patch)), (error: unknown) => {
      assert.equal((error as { details: { field: string } }).details.field, field);
      return true;
    });
  assert.equal(JSON.stringify(drover.effectiveConfig()), before);
  assert.equal(drover.state.seq, seq);
  await drover.close();
});

test("P5 a limit that is raised by a patch starts what waited for it", async () => {
  const { drover, settle } = await createTestDrover({ config: { scheduler: { maxInFlight: 1 } } });
  await drover.worker({ slots: 4 }, () => new Promise(() => {}));
  for (let count = 0; count < 3; count++) await drover.submit({ agentId: "a", action: "x" });
  await settle();
  assert.equal(drover.state.inFlight, 1);
  await drover.patchConfig({ maxInFlight: 3 });
  await settle();
  assert.equal(drover.state.inFlight, 3);
});

test("P14 a config that does not go together with the patch in force changes nothing, and says so", async () => {
  const { drover } = await createTestDrover();
  await drover.patchConfig({ retry: { max: "2s" } });
  const given = { scheduler: { maxInFlight: 9, retry: { base: "10s", max: "60s" } } };
  await assert.rejects(drover.reload(given), /retry\.max is 2000.*changed by hand/);
  assert.notEqual(drover.effectiveConfig().scheduler.maxInFlight, 9);
  await drover.patchConfig(null);
  assert.equal((await drover.reload(given)).scheduler.retry.max, 60_000);
  await drover.close();
});
