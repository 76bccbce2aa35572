import assert from "node:assert/strict";
import { test } from "node:test";
import { withIds } from "./given-ids.ts";

const numbered = (): (() => string) => {
  let count = 0;
  return () => `new-${++count}`;
};

test("a task, a permit and a worker without an id get one, and one that has it keeps it", () => {
  for (const name of ["submit", "askPermit", "joinWorker"] as const) {
    assert.deepEqual(withIds(name, { action: "a" }, numbered()), { id: "new-1", action: "a" });
    assert.deepEqual(withIds(name, { id: "own", action: "a" }, numbered()), { id: "own", action: "a" });
  }
});

test("each task of a batch and of a bulk gets its own", () => {
  const batch = { agentId: "ann", tasks: [{ action: "a" }, { id: "own" }, { action: "b" }] };
  const tasks = [{ id: "new-1", action: "a" }, { id: "own" }, { id: "new-2", action: "b" }];
  assert.deepEqual(withIds("submitBatch", batch, numbered()), { agentId: "ann", tasks });
  const calls = [
    { call: "submit", body: { action: "a" } },
    { call: "submitBatch", body: { tasks: [{ action: "b" }] } },
    { call: "cancel", id: "t" },
    { call: "askPermit", body: { gate: "g" } },
  ];
  assert.deepEqual(withIds("bulk", { calls }, numbered()), {
    calls: [
      { call: "submit", body: { id: "new-1", action: "a" } },
      { call: "submitBatch", body: { tasks: [{ id: "new-2", action: "b" }] } },
      { call: "cancel", id: "t" },
      { call: "askPermit", body: { id: "new-3", gate: "g" } },
    ],
  });
});

test("where all have one, the body is the same object", () => {
  const own = { id: "own", action: "a" };
  for (const [name, body] of [
    ["submit", own],
    ["submitBatch", { tasks: [own, null] }],
    ["bulk", { calls: [{ call: "submit", body: own }, { call: "cancel", id: "t" }, 7] }],
    ["cancel", {}],
  ] as const)
    assert.equal(withIds(name, body, numbered()), body, name);
});

test("what is no such body stays as it is, for the leader to refuse", () => {
  const odd = [
    null,
    7,
    [],
    { tasks: 7 },
    { tasks: [null, 1] },
    { calls: [null, { call: "bulk", body: { calls: [] } }] },
  ];
  for (const body of odd)
    for (const name of ["submitBatch", "bulk", "cancel"] as const)
      assert.deepEqual(withIds(name, body, numbered()), body);
});

test("two ids are never the same", () => {
  const { tasks } = withIds("submitBatch", { tasks: [{}, {}] }) as { tasks: { id: string }[] };
  assert.notEqual(tasks[0]?.id, tasks[1]?.id);
});
