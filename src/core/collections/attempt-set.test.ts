/**
 * A worker's attempts behave as a Set does, and are shown in the order of their tasks whatever has come and gone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Attempt } from "../model/state.ts";
import { AttemptSet } from "./attempt-set.ts";

const attemptOf = (seq: number): Attempt => ({ task: { seq }, index: -1 }) as unknown as Attempt;
const COUNT = 12;

test("what is put in and taken out in any order is there or not, and comes in the order of the tasks", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(COUNT - 1), { maxLength: 60 }), (turns) => {
      const all = Array.from({ length: COUNT }, (_, seq) => attemptOf(seq));
      const set = new AttemptSet();
      const expected = new Set<Attempt>();
      for (const turn of turns) {
        const attempt = all[turn] as Attempt;
        if (expected.delete(attempt)) set.delete(attempt);
        else {
          set.add(attempt);
          expected.add(attempt);
        }
        const held = all.filter((one) => expected.has(one));
        assert.equal(set.size, held.length);
        assert.deepEqual(
          all.map((one) => set.has(one)),
          all.map((one) => expected.has(one)),
        );
        assert.deepEqual([...set], held);
        assert.deepEqual(set.inOrder(), held);
      }
    }),
  );
});

test("taking out what is not there, or what stands in another worker's set, changes nothing", () => {
  const [mine, theirs] = [new AttemptSet(), new AttemptSet()];
  const [first, second] = [attemptOf(1), attemptOf(2)];
  mine.add(first);
  theirs.add(second);
  mine.delete(second);
  theirs.delete(attemptOf(2));
  assert.deepEqual([[...mine], [...theirs]], [[first], [second]]);
});
