/**
 * A journal keeps what a majority of the nodes does not have, and what a node that is near its end reads next.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seq } from "../../core/base/index.ts";
import { prunableSeq } from "./prunable.ts";

const GIB: number = 1024 ** 3;
const rows: { name: string; own: number; others: number[]; bytes?: number; prunable: number }[] = [
  { name: "a node alone prunes below its own", own: 900_000, others: [], prunable: 900_000 },
  { name: "of two, both have it", own: 900_000, others: [10], prunable: 10 },
  {
    name: "of three, two have it; one far behind is not waited for",
    own: 900_000,
    others: [10, 880_000],
    prunable: 880_000,
  },
  { name: "of three, one that is near is waited for", own: 900_000, others: [800_000, 880_000], prunable: 800_000 },
  { name: "of three, one that is just too far is not", own: 900_000, others: [799_999, 880_000], prunable: 880_000 },
  { name: "the leader's own disk may be the one behind", own: 20, others: [10, 30], prunable: 20 },
  { name: "of four, three have it", own: 900_000, others: [1, 2, 899_000], prunable: 2 },
  {
    name: "a large journal waits for no one",
    own: 900_000,
    others: [890_000, 880_000],
    bytes: 2 * GIB,
    prunable: 890_000,
  },
  { name: "nothing is on disk anywhere", own: 0, others: [0, 0], prunable: 0 },
];
for (const { name, own, others, bytes = 0, prunable } of rows)
  test(name, () => {
    const nodes = [
      { node: "self", stored: seq(1_000_000) },
      ...others.map((at, index) => ({ node: `n${index}`, stored: seq(at) })),
    ];
    const journal = { head: { seq: seq(900_000), hash: "", epoch: 1, batchId: "" }, bytes };
    assert.equal(prunableSeq({ nodes, self: "self", stored: seq(own), journal }), prunable);
  });
