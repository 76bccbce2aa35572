/**
 * A tab has one owner: who names it last, by registering or by a sync. The former is told.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SyncAnswer, SyncBody } from "../../protocol/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

type Hand = (told?: SyncBody) => Promise<SyncAnswer>;

async function joined(kit: TestDrover, id: string, capabilities: readonly string[] = []): Promise<Hand> {
  const { session } = await kit.drover.remote.join({ id, capabilities });
  let n = 0;
  return (told = {}) => kit.drover.remote.sync(id, { session, n: ++n, ...told });
}
const ownersOf = async ({ drover }: TestDrover, tab: string): Promise<string[]> =>
  (await drover.workers()).filter(({ capabilities }) => capabilities.includes(`tab:${tab}`)).map(({ id }) => id);
async function movesIn({ drover }: TestDrover): Promise<unknown[]> {
  const moves: unknown[] = [];
  for await (const { kind, payload } of drover.events({ after: 0 })) if (kind === "tabs-moved") moves.push(payload);
  return moves;
}

test("who registers with a tab takes it over; the former hears so until it says what it has", async () => {
  await using kit = await createTestDrover();
  const ann = await joined(kit, "ann", ["git", "tab:x", "tab:y"]);
  assert.equal((await ann()).lost, undefined);
  const bob = await joined(kit, "bob", ["tab:x"]);
  assert.deepEqual(await ownersOf(kit, "x"), ["bob"]);
  assert.deepEqual(await ownersOf(kit, "y"), ["ann"]);
  assert.partialDeepStrictEqual(await movesIn(kit), [{ worker: "ann", to: "bob", capabilities: ["tab:x"] }]);
  assert.deepEqual((await ann()).lost, ["tab:x"]);
  assert.deepEqual((await ann()).lost, ["tab:x"]);
  assert.equal((await bob()).lost, undefined);
  assert.equal((await ann({ capabilities: ["git", "tab:y"] })).lost, undefined);
});

test("one that never spoke before is told as well", async () => {
  await using kit = await createTestDrover();
  const ann = await joined(kit, "ann", ["tab:x"]);
  await joined(kit, "bob", ["tab:x"]);
  assert.deepEqual((await ann()).lost, ["tab:x"]);
});

test("a sync takes a tab over as well, and back", async () => {
  await using kit = await createTestDrover();
  const ann = await joined(kit, "ann", ["tab:x"]);
  const bob = await joined(kit, "bob");
  await bob({ capabilities: ["tab:x"] });
  assert.deepEqual(await ownersOf(kit, "x"), ["bob"]);
  assert.deepEqual((await ann()).lost, ["tab:x"]);
  await ann({ capabilities: ["tab:x"] });
  assert.deepEqual(await ownersOf(kit, "x"), ["ann"]);
  assert.deepEqual((await bob()).lost, ["tab:x"]);
  // To name what it has moves nothing.
  await ann({ capabilities: ["tab:x"], want: 0 });
  assert.equal((await movesIn(kit)).length, 2);
});

test("a poll that waits is answered when a tab moves, once", async () => {
  await using kit = await createTestDrover({ config: { workers: { lease: "60s" } } });
  const ann = await joined(kit, "ann", ["tab:x"]);
  const waiting = ann({ waitMs: 20_000 });
  await kit.settle();
  await joined(kit, "bob", ["tab:x"]);
  assert.deepEqual((await waiting).lost, ["tab:x"]);
  let isAnswered = false;
  const next = ann({ waitMs: 5000 }).then(() => {
    isAnswered = true;
  });
  await kit.clock.advance(4000);
  assert.equal(isAnswered, false);
  await kit.clock.advance(1000);
  await next;
});

test("one that is out of reach loses its tab too, and does not bring it back", async () => {
  await using kit = await createTestDrover({ config: { workers: { lease: "10s" } } });
  const ann = await joined(kit, "ann", ["tab:x"]);
  await ann();
  await kit.clock.advance(20_000);
  await joined(kit, "bob", ["tab:x"]);
  assert.deepEqual((await ann()).lost, ["tab:x"]);
  assert.deepEqual(await ownersOf(kit, "x"), ["bob"]);
});

test("a task goes to who owns its tab now", async () => {
  await using kit = await createTestDrover();
  const ann = await joined(kit, "ann", ["tab:x"]);
  const bob = await joined(kit, "bob", ["tab:x"]);
  await kit.drover.submit({ id: "t", agentId: "a", action: "click", tabId: "x" });
  assert.deepEqual((await ann()).assignments, []);
  assert.deepEqual(
    (await bob()).assignments.map(({ taskId }) => taskId),
    ["t"],
  );
});

test("a worker in this process takes part in it like any other", async () => {
  await using kit = await createTestDrover();
  const ann = await joined(kit, "ann", ["tab:x"]);
  await kit.drover.worker({ id: "own", capabilities: ["tab:x"] }, () => "clicked");
  await kit.drover.submit({ id: "t", agentId: "a", action: "click", tabId: "x" });
  await kit.settle();
  assert.equal((await kit.drover.task("t")).worker, "own");
  assert.deepEqual((await ann()).lost, ["tab:x"]);
});

test("a tab with a name of full length has a capability", async () => {
  await using kit = await createTestDrover();
  const tabId = "x".repeat(256);
  const ann = await joined(kit, "ann", [`tab:${tabId}`]);
  await ann({ capabilities: [`tab:${tabId}`] });
  await kit.drover.submit({ id: "t", agentId: "a", action: "click", tabId });
  await kit.drover.submit({ id: "u", agentId: "a", action: "click", capabilities: [`tab:${tabId}`] });
  assert.equal((await ann()).assignments[0]?.taskId, "t");
  await assert.rejects(joined(kit, "bob", [`tab:${tabId}x`]), /capabilities/);
});
