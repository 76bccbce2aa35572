/**
 * Clocks that differ are told with by how much, and whose is wrong where that is plain; not for one odd word.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSeen } from "../../log/journal/index.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createAgreedClock } from "./agreed-clock.ts";
import { createClockCheck } from "./clock-check.ts";

const NOW = 1_767_225_600_000;
const seen = (node: string, aheadMs: number | null, ageMs = 1000): NodeSeen =>
  ({ node, ageMs, ...(aheadMs === null ? {} : { now: NOW - ageMs + aheadMs }) }) as NodeSeen;

/** What is said after each look. */
function looks(...each: readonly (readonly NodeSeen[])[]): [text: string | null, sign: string][] {
  const said: [string | null, string][] = [];
  const agreed = createAgreedClock({ ...createHandClock({ at: NOW }), now: () => NOW }, () => {});
  const look = createClockCheck({ now: () => NOW }, agreed, (text, sign) => said.push([text, sign]));
  for (const nodes of each) look(nodes);
  return said;
}

/** The same nodes with a new word each, some milliseconds later. */
const later = (nodes: readonly NodeSeen[]): NodeSeen[] =>
  nodes.map((one) => ({ ...one, ageMs: one.ageMs - 5, now: (one.now ?? 0) + 5 }));

test("what agrees, is not known, or is of a node that is gone is nothing to tell", () => {
  const nodes = [seen("b", 5000), seen("c", -5000), seen("d", null), seen("e", 90_000, 8000)];
  assert.deepEqual(looks(nodes, nodes), [
    [null, ""],
    [null, ""],
  ]);
});

test("a difference counts when it is seen twice, and is gone when it is", () => {
  const far = [seen("b", 60_000), seen("c", 0)];
  const [once, twice, over, again] = looks(far, [seen("b", 60_400), seen("c", 0)], [seen("b", 0), seen("c", 0)], far);
  assert.deepEqual([once?.[0], over?.[0], again?.[0]], [null, null, null]);
  assert.match(twice?.[0] ?? "", /that of b is 60 s ahead of this one's\. Log time follows/);
  assert.equal(twice?.[1], "b 1");
});

test("where most agree on another date, it is this node's clock; where they do not, it is not said whose", () => {
  const agreeing = [seen("b", -60_000), seen("c", -61_000)];
  assert.match(
    looks(agreeing, later(agreeing))[1]?.[0] ?? "",
    /that of c is 61 s behind this one's\. Most agree .* wrong .* log time goes by theirs\. Set/,
  );
  for (const nodes of [
    [seen("b", -60_000)],
    [seen("b", -60_000), seen("c", 60_000)],
    [seen("b", 60_000), seen("c", 0)],
  ])
    assert.doesNotMatch(looks(nodes, later(nodes))[1]?.[0] ?? "agree", /agree/);
});

test("half of the nodes with a wrong clock move none, whoever's words are heard anew first", () => {
  const [wrong, right] = [[seen("b", 3_600_000), seen("c", 3_600_000)], [seen("d", 0)]];
  const said = looks([...wrong, ...right], [...later(wrong), ...right], [...later(later(wrong)), ...later(right)]);
  for (const [text, sign] of said) {
    assert.doesNotMatch(text ?? "", /agree/);
    assert.doesNotMatch(sign, /moved/);
  }
  const stopped: NodeSeen = { ...seen("d", 0), isStopped: true };
  assert.match(
    looks([...wrong, stopped], [...later(wrong), stopped])[1]?.[1] ?? "",
    /moved/,
    "one that ended is not up",
  );
  const silent = [seen("d", null)];
  assert.doesNotMatch(looks([...wrong, ...silent], [...later(wrong), ...silent])[1]?.[1] ?? "moved", /moved/);
});

test("a difference stays while a word is seen twice, and is said once", () => {
  const [far, next] = [[seen("b", 60_000)], later([seen("b", 60_000)])];
  const said = looks(far, next, next, later(next), later(next));
  assert.deepEqual(
    said.map(([, sign]) => sign),
    ["", "b 1", "b 1", "b 1", "b 1"],
  );
});

test("a word that stays the same counts for nothing: a journal that came back gives old words as new", () => {
  const old = [seen("b", -600_000, 0), seen("c", -600_000, 0)];
  for (const [text] of looks(old, old, old)) assert.equal(text, null);
});
