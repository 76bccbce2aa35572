/**
 * The layout of large graphs.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inColumns } from "./graph-columns.ts";

test("every node stands behind all that it waits for, and none on another", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => ({
    id: `n${index}`,
    after: [index - 1 - (index % 7), index - 3 - (index % 11)]
      .filter((other) => other >= 0)
      .map((other) => `n${other}`),
  }));
  const places = inColumns(nodes);
  for (const { id, after } of nodes)
    for (const other of after)
      assert.ok((places.get(id)?.column ?? -1) > (places.get(other)?.column ?? -1), `${other} before ${id}`);
  const taken = new Set([...places.values()].map(({ column, row }) => `${column} ${row}`));
  assert.deepEqual([places.size, taken.size], [1000, 1000]);
});

test("a node stands near those it waits for", () => {
  const rows = ["a", "b", "c"].map((id) => ({ id, after: [] }));
  const places = inColumns([...rows, { id: "of-c", after: ["c"] }, { id: "of-a", after: ["a"] }]);
  assert.deepEqual([places.get("of-a")?.row, places.get("of-c")?.row], [0, 1]);
});

test("a circle and what is not there hold nothing up", () => {
  const places = inColumns([
    { id: "a", after: ["b"] },
    { id: "b", after: ["a"] },
    { id: "c", after: ["gone"] },
  ]);
  assert.deepEqual([...places.keys()].toSorted(), ["a", "b", "c"]);
});
