import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventJson } from "../../protocol/generated/index.ts";
import { createGathering } from "./bar-gathering.ts";

const event = (time: number, task: string, payload: Readonly<Record<string, unknown>> & { kind: string }): EventJson =>
  ({ seq: 1, at: new Date(time).toISOString(), task, kind: payload.kind, payload }) as unknown as EventJson;
const begun = (time: number, task: string, worker: string): EventJson =>
  event(time, task, { kind: "task-assigned", attempt: 1, worker });
const done = (time: number, task: string): EventJson => event(time, task, { kind: "task-done" });

test("of too many those that ended last stay, and all that ended up to one instant is left out", () => {
  const gathering = createGathering(2);
  gathering.take([begun(1, "long", "quiet"), begun(2, "runs", "quiet")]);
  gathering.take([begun(3, "a", "busy"), begun(4, "b", "busy"), done(5, "a")]);
  assert.deepEqual([gathering.cutAt(), gathering.readTo()], [null, 5]);
  gathering.take([begun(6, "c", "busy"), begun(6, "d", "busy"), done(7, "b"), done(7, "c")]);
  assert.equal(gathering.cutAt(), 5);
  assert.deepEqual(
    gathering.since(0).map(({ task, until }) => [task, until]),
    [
      ["b", 7],
      ["c", 7],
      ["long", null],
      ["runs", null],
      ["d", null],
    ],
  );
  gathering.take([done(8, "long"), begun(9, "e", "busy")]);
  assert.equal(gathering.cutAt(), 7);
  assert.deepEqual(
    gathering.since(0).map(({ task }) => task),
    ["long", "runs", "d", "e"],
    "c ended in the same instant as b, which is left out",
  );
});

test("what ended before the time that is asked for is not in it, and what runs always is", () => {
  const gathering = createGathering();
  assert.equal(gathering.readTo(), null);
  gathering.take([begun(1, "a", "w"), begun(1, "b", "w"), done(3, "a")]);
  assert.deepEqual(
    [3, 4].map((from) => gathering.since(from).map(({ task }) => task)),
    [["a", "b"], ["b"]],
  );
});
