/**
 * What `drover tasks` says of each.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drover } from "../../../test/kits/cli/canned-server.ts";

test("tasks say what holds one that is queued, and else where it stands in line", async () => {
  const one = (taskId: string, more: object) => ({
    taskId,
    state: "queued",
    attempt: 0,
    depth: 0,
    position: 1,
    ...more,
  });
  const tasks = [
    one("a", {}),
    one("b", { held: "never-fits" }),
    one("c", { held: "budget", heldUntil: "2026-01-31T12:47:00Z" }),
    one("d", { held: "budget" }),
    one("e", { held: "no-workers" }),
  ];
  const { out } = await drover(["tasks"], { "GET /tasks": { tasks, count: 5 } });
  const notes = out.split("\n").map((line) => line.split(/ {2,}/).at(-1));
  assert.deepEqual(notes.slice(1, 6), [
    "number 1 in line",
    "no worker here can run it",
    "budget used up, more in 47m",
    "budget used up",
    "no worker is here",
  ]);
});
