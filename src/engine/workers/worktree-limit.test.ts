/**
 * A worker at its limit of worktrees: tasks that want one wait, and nothing else does.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { LocalWorker } from "./local-workers.ts";

type Kit = TestDrover & { readonly worker: LocalWorker; readonly begun: string[]; readonly end: (id: string) => void };

async function kitOf(worktrees: number | null): Promise<Kit> {
  const kit = await createTestDrover();
  const ends = new Map<string, () => void>();
  const begun: string[] = [];
  const options = { id: "w", slots: 3, actions: ["exec"], worktrees, resources: { cpuMillicores: 1000 } };
  const worker = await kit.drover.worker(options, ({ taskId }, { signal }) => {
    begun.push(taskId);
    const ended = Promise.withResolvers<void>();
    ends.set(taskId, ended.resolve);
    signal.addEventListener("abort", () => ended.resolve());
    return ended.promise;
  });
  return Object.assign(kit, { worker, begun, end: (id: string) => ends.get(id)?.() });
}

async function submit({ drover, settle }: Kit, id: string, worktree: boolean, more: object = {}): Promise<void> {
  await drover.submit({ id, agentId: "ann", action: "exec", params: { command: "true", worktree }, ...more });
  await settle();
}

async function roomOf({ drover }: Kit, id: string): Promise<string> {
  const { conditions } = await drover.why(id);
  return conditions.find(({ code }) => code === "worker-room")?.detail ?? "";
}

test("as many tasks have a worktree at once as it says, and the others pass them", async () => {
  await using kit = await kitOf(1);
  for (const [id, worktree] of [
    ["a", true],
    ["b", true],
    ["c", false],
  ] as const)
    await submit(kit, id, worktree);
  assert.deepEqual(kit.begun, ["a", "c"]);
  assert.match(await roomOf(kit, "b"), /^the one worker has no room for it: without room for a worktree$/);
  assert.equal((await kit.drover.workers())[0]?.worktrees, 1);
  kit.end("a");
  await kit.settle();
  assert.deepEqual(kit.begun, ["a", "c", "b"]);
});

test("the limit changes while it is there, with a note for those that wait for a tree alone", async () => {
  await using kit = await kitOf(null);
  await kit.worker.limitWorktrees(0, "1 worktree exists: /t");
  await submit(kit, "a", true);
  assert.match(await roomOf(kit, "a"), /: without room for a worktree; worker w: 1 worktree exists: \/t$/);
  for (const id of ["b", "c", "d", "e"]) await submit(kit, id, false);
  assert.deepEqual(kit.begun, ["b", "c", "d"]);
  assert.doesNotMatch(await roomOf(kit, "e"), /worktree/);
  // What limits the worker as a whole leaves the limit of trees alone.
  await kit.worker.limit(2);
  kit.end("b");
  await kit.settle();
  assert.deepEqual(kit.begun, ["b", "c", "d"]);
  await kit.worker.limit(3);
  await kit.worker.limitWorktrees(null);
  for (const id of ["c", "d"]) kit.end(id);
  await kit.settle();
  assert.deepEqual(kit.begun.toSorted(), ["a", "b", "c", "d", "e"]);
});

test("no worker is kept free for a task that waits for a tree", async () => {
  await using kit = await kitOf(0);
  await submit(kit, "tree", true, { resources: { cpuMillicores: 500 } });
  await kit.clock.advance(2 * 3_600_000);
  await submit(kit, "plain", false);
  assert.deepEqual(kit.begun, ["plain"]);
});

test("a limit is a whole number, at most its slots", async () => {
  await using kit = await kitOf(null);
  await assert.rejects(kit.worker.limitWorktrees(-1), { code: "bad_request" });
  await kit.worker.limitWorktrees(99);
  assert.equal((await kit.drover.workers())[0]?.worktrees, 3);
});
