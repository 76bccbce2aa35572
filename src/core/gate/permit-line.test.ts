/**
 * How many calls may wait at one gate, and for whom its last places are kept.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type GateId, instant, type ProjectId } from "../base/brand.ts";
import { decide, emptyState, evolve } from "../index.ts";

test("one project takes nine tenths of the places at a gate, and another still gets one", () => {
  const state = emptyState();
  const ask = (project: string) =>
    decide(
      state,
      {
        type: "ask-permit",
        ...{ permit: null, gate: "g" as GateId, task: null, attempt: null, project: project as ProjectId },
        ...{ class: null, tokens: 0, askedAt: null },
      },
      instant(1),
    );
  for (let count = 0; count < 90_000; count++) {
    const decided = ask("greedy");
    assert.ok(decided.ok);
    for (const event of decided.value.events) evolve(state, event);
  }
  const refused = ask("greedy");
  assert.deepEqual(refused.ok ? null : refused.failure, {
    ...{ type: "too-many", what: "calls waiting at gate g", max: 100_000, kept: 10_000 },
  });
  assert.ok(ask("calm").ok);
});
