/**
 * What was used: what is booked by day is a function of the log, and sums up to what projects, agents and labels used.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { State, Task } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { live } from "../kits/laws/live.ts";
import { allTokens, usageTeller } from "../kits/laws/told-usage.ts";

const DAY = 86_400_000;

/** Books what the log tells into its rows, by all that tells rows apart. */
function bookFor(rows: Map<string, number>, task: Task, at: number, tokens: number): void {
  const { project, agent, requirements, extra } = task;
  const where = `${Math.floor(at / DAY)} ${project.id} ${agent.id}`;
  const texts = [`type ${requirements.type}`, ...(extra?.labels ?? []).map(({ text }) => `label ${text}`)];
  for (const text of texts) {
    const key = `${where} ${text}`;
    rows.set(key, (rows.get(key) ?? 0) + tokens);
  }
}

const booked = ({ ledger: { types, labels } }: State): Map<string, number> =>
  new Map(
    [["type", types] as const, ["label", labels] as const].flatMap(([kind, { rows }]) =>
      Array.from(rows.values(), ({ day, project, agent, of, usage }) => [
        `${day} ${project} ${agent} ${kind} ${of}`,
        usage.inputTokens + usage.outputTokens + usage.cachedTokens,
      ]),
    ),
  );

test("what is booked by day is what attempts and their permits have said, also in a snapshot", () => {
  let seen = 0;
  holds(4000, history, (seeds) => {
    const told = new Map<string, number>();
    const onEvent = usageTeller((task, usage, at) => bookFor(told, task, at, allTokens(usage)));
    const { state } = live(seeds, { onEvent });
    seen += told.size;
    assert.deepEqual(booked(state), told);
    assert.deepEqual(booked(restore(snapshotLines(state))), told);
    for (const { id, usage } of state.projects.values()) {
      const rows = [...state.ledger.types.rows.values()].filter(({ project }) => project === id);
      const sum = rows.reduce((tokens, row) => tokens + row.usage.inputTokens, 0);
      assert.equal(sum, usage?.inputTokens ?? 0, `project ${id}`);
    }
  });
  assert.ok(isQuick || seen > 100, `only ${seen} rows were looked at`);
});
