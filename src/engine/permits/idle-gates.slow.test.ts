/**
 * Gates that nobody uses make room for new ones, so that names used up by one caller shut nobody out.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";
import type { DroverError } from "../base/drover-error.ts";

async function crowded() {
  const kit = await createTestDrover({ at: 1_000_000, config: { gates: { named: {} } } });
  const ask = (gate: string, project: string): Promise<string> =>
    kit.drover.permits.ask({ gate, project }).then(
      ({ permitId }) => permitId,
      ({ code }: DroverError) => code,
    );
  /** Under two hundred names of projects nobody seems to have much. */
  for (let index = 0; index < 1000; index++) {
    const id = await ask(`g${index}`, `x${index % 200}`);
    // The first is still out, and the second was told to wait.
    const rateLimited = { retryAfterMs: 10_000 };
    if (index > 0) await kit.drover.permits.settle(id, index === 1 ? { ok: false, rateLimited } : {});
  }
  return { kit, ask, ids: (): string[] => [...kit.drover.state.gates.keys()] };
}

test("a gate gives way when nothing counts in its windows any more, and not before", async () => {
  const { kit, ask, ids } = await crowded();
  assert.equal(await ask("bobs", "bob"), "limit");
  await kit.clock.advance(60_000);
  const seq = kit.drover.state.seq;
  assert.match(await ask("bobs", "bob"), /^permit_/);
  assert.ok(ids().includes("bobs"));
  assert.deepEqual(
    [ids().length, ids().includes("g0"), ids().includes("g1"), ids().includes("g2")],
    [1000, true, true, false],
  );
  // A grant does not wait for the disk.
  await kit.settle();
  const kinds: string[] = [];
  for await (const { kind } of kit.drover.events({ after: seq })) kinds.push(kind);
  assert.deepEqual(kinds, ["gate-removed", "project-put", "permit-asked", "permit-granted"]);
});

test("a permit that Drover names is found under its name also when a gate gave way for it", async () => {
  const { kit, ask } = await crowded();
  await kit.clock.advance(60_000);
  const id = await ask("bobs", "bob");
  assert.equal(kit.drover.state.permits.get(id as never), "bobs");
  await kit.drover.permits.settle(id);
  assert.match(await ask("g5", "bob"), /^permit_/, "one that is there needs no room");
});

test("a gate whose provider said stop gives way an hour after its block, and not before", async () => {
  const { kit, ask, ids } = await crowded();
  await kit.clock.advance(3_609_999);
  // The call of the first came back by itself.
  for (const gate of ["a", "b"]) assert.match(await ask(gate, "bob"), /^permit_/);
  assert.deepEqual([ids()[0], ids()[1]], ["g1", "g3"]);
  await kit.clock.advance(1);
  assert.match(await ask("c", "bob"), /^permit_/);
  assert.equal(ids()[0], "g3");
});
