/**
 * Which rejected tasks are kept for their webhooks, and that no project takes all the room.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "./delivery.ts";
import { createRejectedStore } from "./rejected.ts";

const task = (taskId: string, project: string, callbackUrl = ""): Snapshot => {
  return { taskId, state: "rejected", project, callbackUrl };
};

test("a project that floods leaves the last tenth to those that hold little", () => {
  const store = createRejectedStore({ count: 1000, characters: 1e9 });
  const flood = Array.from({ length: 1000 }, (_, index) => store.keep(task(`f${index}`, "flood")));
  assert.equal(flood.filter(Boolean).length, 900);
  const other = Array.from({ length: 12 }, (_, index) => store.keep(task(`o${index}`, "other")));
  assert.equal(other.filter(Boolean).length, 10);
  store.forget("o0");
  assert.deepEqual([store.get("o0"), store.keep(task("o0", "other"))], [null, true]);
});

test("the same holds for what they hold, and all of it has an end", () => {
  const store = createRejectedStore({ count: 1e9, characters: 100_000 });
  const large = "x".repeat(9000);
  const flood = Array.from({ length: 20 }, (_, index) => store.keep(task(`f${index}`, "flood", large)));
  assert.equal(flood.filter(Boolean).length, 9);
  assert.deepEqual([store.keep(task("a", "other", large)), store.keep(task("b", "other"))], [false, true]);
  const many = Array.from({ length: 500 }, (_, index) => store.keep(task(`m${index}`, `p${index}`, "x".repeat(900))));
  assert.ok(many.filter(Boolean).length < 20);
});

test("one that has gone makes room again, also for the project that flooded", () => {
  const store = createRejectedStore({ count: 10, characters: 1e9 });
  for (let index = 0; index < 10; index++) store.keep(task(`f${index}`, "flood"));
  assert.equal(store.keep(task("more", "flood")), false);
  store.forget("f3");
  store.forget("f3");
  assert.deepEqual([store.keep(task("more", "flood")), store.keep(task("again", "flood"))], [true, false]);
});
