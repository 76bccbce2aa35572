import assert from "node:assert/strict";
import { test } from "node:test";
import { createUnfinishedBodies } from "./unfinished-bodies.ts";

test("when more has begun than there is room for, the oldest are let go until there is room", () => {
  const bodies = createUnfinishedBodies({ bodyBytesMax: 100 });
  const cut: string[] = [];
  const [a, b, c] = ["a", "b", "c"].map((name) => () => void cut.push(name)) as [() => void, () => void, () => void];
  bodies.add(a, 40);
  bodies.add(b, 40);
  bodies.add(a, 20);
  assert.deepEqual([cut, bodies.bytes()], [[], 100]);
  bodies.add(c, 50);
  assert.deepEqual([cut, bodies.bytes()], [["a"], 90]);
  bodies.end(b);
  bodies.end(b);
  bodies.add(c, 200);
  assert.deepEqual([cut, bodies.bytes()], [["a"], 250], "one alone has a limit of its own");
});
