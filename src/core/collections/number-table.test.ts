/**
 * Tables by number and by id behave as a Map does, whatever is put in and taken out in whatever order.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type TaskId, taskId } from "../base/brand.ts";
import { Names } from "./names.ts";
import { NumberTable } from "./number-table.ts";
import { numberIn, TaskTable } from "./task-table.ts";

/** Numbers close together, so that blocks fill and empty; and those where arithmetic on 32 bits would go wrong. */
const key = fc.oneof(
  fc.nat(100),
  fc.integer({ min: 2 ** 31 - 40, max: 2 ** 31 + 40 }),
  fc.integer({ min: Number.MAX_SAFE_INTEGER - 70, max: Number.MAX_SAFE_INTEGER }),
);
const steps = fc.array(fc.tuple(fc.boolean(), key), { maxLength: 300 });
const ascending = (left: number, right: number): number => left - right;

test("a table by number holds what a Map would hold", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const table = new NumberTable<{ readonly of: number }>();
      const map = new Map<number, { readonly of: number }>();
      for (const [isPut, at] of all) {
        const value = { of: at };
        if (isPut) {
          table.set(at, value);
          map.set(at, value);
        } else {
          assert.equal(table.take(at), map.get(at));
          map.delete(at);
        }
        assert.equal(table.get(at), map.get(at));
        assert.equal(table.size, map.size);
      }
      for (const [, at] of all) assert.equal(table.get(at), map.get(at));
      const held = [...table.values()].map(({ of }) => of);
      assert.deepEqual(held.sort(ascending), [...map.keys()].sort(ascending));
    }),
  );
});

test("what is put in in ascending order comes out in ascending order, also after some of it has gone", () => {
  fc.assert(
    fc.property(fc.uniqueArray(key), fc.func(fc.boolean()), (keys, goes) => {
      const table = new NumberTable<{ readonly of: number }>();
      for (const at of keys.sort(ascending)) table.set(at, { of: at });
      for (const at of keys) if (goes(at)) table.take(at);
      const left = keys.filter((at) => !goes(at));
      assert.deepEqual(
        [...table.values()].map(({ of }) => of),
        left,
      );
    }),
  );
});

test("a block that has become empty is let go", () => {
  const table = new NumberTable<string>();
  for (let at = 0; at < 10_000; at++) {
    table.set(at, "here");
    if (at >= 100) table.take(at - 100);
  }
  assert.equal(table.size, 100);
  const { blocks } = table as unknown as { blocks: Map<number, unknown> };
  assert.ok(blocks.size <= 5, `${blocks.size} blocks for 100 neighbours`);
});

test("an id that Drover gave out is a number, and no other id is", () => {
  for (const number of [1, 9, 10, 1_234_567, Number.MAX_SAFE_INTEGER]) assert.equal(numberIn(`tsk_${number}`), number);
  const others = ["tsk_", "tsk_0", "tsk_007", "tsk_1a", "tsk_-1", "tsk_1.5", "tsk_ 1", "Tsk_1", "tsk1", "t", "", "1"];
  for (const other of [...others, "tsk_9007199254740993", `tsk_${"9".repeat(200)}`]) assert.equal(numberIn(other), -1);
});

test("a table of tasks is a Map in the order of submission, whoever chose the ids", () => {
  const item = fc.tuple(fc.boolean(), fc.boolean());
  fc.assert(
    fc.property(fc.array(item, { maxLength: 200 }), (all) => {
      const table = new TaskTable<{ readonly id: TaskId; readonly seq: number }>();
      const map = new Map<TaskId, { readonly id: TaskId; readonly seq: number }>();
      for (const [index, [isNamed, goes]] of all.entries()) {
        const seq = index + 1;
        const task = { id: taskId(isNamed ? `job-${seq}` : `tsk_${seq}`), seq };
        table.set(task.id, task);
        map.set(task.id, task);
        const older = [...map.keys()][seq % map.size] as TaskId;
        // Whoever was asked for last is remembered: that must not outlast what becomes of it.
        assert.equal(table.get(older), map.get(older));
        if (goes) assert.equal(table.delete(older), map.delete(older));
        else {
          const other = { id: older, seq: (map.get(older) as { seq: number }).seq };
          table.set(older, other);
          map.set(older, other);
        }
        assert.equal(table.get(older), map.get(older));
        const next = taskId(`tsk_${seq + 1}`);
        assert.equal(table.get(next), undefined);
        assert.equal(table.get(task.id), map.get(task.id));
        assert.equal(table.has(older), map.has(older));
      }
      assert.equal(table.size, map.size);
      assert.deepEqual([...table.values()], [...map.values()]);
      const visited: unknown[] = [];
      table.each((task) => visited.push(task));
      assert.deepEqual(visited, [...map.values()]);
    }),
  );
});

test("what is handed over to a table of the same names is found there, and its id is free once it goes", () => {
  type Item = { readonly seq: number; readonly isOver: boolean };
  const names = new Names();
  const [tasks, stones] = [new TaskTable<Item>(names), new TaskTable<Item>(names)];
  for (const id of ["job", "tsk_7"].map(taskId)) {
    for (const seq of [7, 8]) {
      tasks.set(id, { seq, isOver: false });
      assert.deepEqual([tasks.has(id), stones.has(id)], [true, false]);
      tasks.handOver(id, stones, { seq, isOver: true });
      assert.deepEqual([tasks.get(id), stones.get(id)], [undefined, { seq, isOver: true }]);
      assert.deepEqual([tasks.size, stones.size, tasks.delete(id)], [0, 1, false]);
      if (seq === 7) assert.ok(stones.delete(id));
      else stones.drop(id, { seq, isOver: true });
      assert.deepEqual([stones.get(id), stones.size, names.get(id)], [undefined, 0, undefined]);
    }
  }
});

test("what a table is told to expect it answers once it is asked, and nothing else changes", () => {
  const table = new TaskTable<{ readonly seq: number }>();
  const [job, other] = [{ seq: 1 }, { seq: 2 }];
  table.set(taskId("job"), job);
  table.set(taskId("other"), other);
  table.expect(taskId("job"), job);
  assert.deepEqual(
    [table.get(taskId("job")), table.get(taskId("other")), table.get(taskId("none"))],
    [job, other, undefined],
  );
  table.expect(taskId("job"), job);
  table.drop(taskId("job"), job);
  assert.deepEqual([table.get(taskId("job")), [...table.values()]], [undefined, [other]]);
});

test("who takes the id of another, of another event, takes its place", () => {
  const table = new TaskTable<{ readonly seq: number }>();
  table.set(taskId("job"), { seq: 1 });
  table.set(taskId("job"), { seq: 2 });
  assert.deepEqual([...table.values()], [{ seq: 2 }]);
});
