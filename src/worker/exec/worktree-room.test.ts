import assert from "node:assert/strict";
import { test } from "node:test";
import { execClock } from "../../../test/kits/faults/exec-world.ts";
import { nextTurn } from "../../std/clock.ts";
import { watchRoom } from "./worktree-room.ts";

/** A worker with two slots, in a place with room for so many trees. */
function world(count: number) {
  const clock = execClock();
  const at: { room: { count: number; note: string } | null } = { room: { count, note: "3 worktrees of 3: a, b, c" } };
  const limits: [number, string | null][] = [];
  const warnings: string[] = [];
  const watch = watchRoom({
    ...{ slots: 2, clock, warn: (text) => void warnings.push(text) },
    room: async () => at.room,
    limit: (most, note) => void limits.push([most, note]),
  });
  /** What a timer sets off has come to rest. */
  const advance = async (ms: number): Promise<void> => {
    clock.turn(ms);
    await nextTurn();
  };
  return { at, limits, warnings, watch, advance };
}

test("with room for all it takes as many as it has slots, and does not look again", async () => {
  const { limits, watch, advance } = world(5);
  await watch.look();
  await advance(100_000);
  assert.deepEqual(limits, [[2, null]]);
});

test("without room it takes none, says why, and notices within ten seconds that a tree has gone", async () => {
  const { at, limits, warnings, watch, advance } = world(0);
  await watch.look();
  assert.deepEqual(limits, [[0, "3 worktrees of 3: a, b, c"]]);
  assert.deepEqual(warnings, ["no task with a worktree is taken: 3 worktrees of 3: a, b, c"]);
  await advance(6000);
  assert.equal(warnings.length, 1, "the same is said once");
  at.room = { count: 1, note: "" };
  await advance(9999);
  assert.deepEqual(limits.at(-1), [1, null]);
  assert.equal(warnings.at(-1), "there is room for a worktree again: tasks are taken");
});

test("one that makes no worktrees is not limited", async () => {
  const { at, limits, watch } = world(0);
  at.room = null;
  await watch.look();
  assert.deepEqual(limits, []);
});

test("nothing is said after its end", async () => {
  const { limits, watch, advance } = world(0);
  await watch.look();
  watch.end();
  await advance(100_000);
  await watch.look();
  assert.equal(limits.length, 1);
});

test("one look at a time: those asked for meanwhile share the next, and leave one timer", async () => {
  const clock = execClock();
  const asked: ((room: { count: number; note: string }) => void)[] = [];
  const limits: number[] = [];
  const watch = watchRoom({
    ...{ slots: 2, clock, warn: () => {} },
    room: () => new Promise((resolve) => void asked.push(resolve)),
    limit: (most) => void limits.push(most),
  });
  const first = watch.look();
  await nextTurn();
  const looks = [first, watch.look(), watch.look()];
  for (const [count, times] of [
    [0, 1],
    [1, 2],
  ] as const) {
    assert.equal(asked.length, times);
    asked.at(-1)?.({ count, note: "full" });
    await nextTurn();
  }
  await Promise.all(looks);
  assert.deepEqual(limits, [0, 1]);
  clock.turn(5000);
  await nextTurn();
  assert.equal(asked.length, 3);
  watch.end();
});
