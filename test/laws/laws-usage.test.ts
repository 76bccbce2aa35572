/**
 * What was used: what is booked by day is a function of the log, and sums up to what projects, agents and labels used.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/core/model/events.ts";
import type { State } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { live } from "../kits/laws/live.ts";

const DAY = 86_400_000;

/** The tokens of each row as the log tells it, by all that tells rows apart. */
function tell(told: Map<string, number>, { tasks }: State, event: Event): void {
  if (event.kind !== "attempt-usage") return;
  const task = tasks.get(event.task);
  assert.ok(task !== undefined);
  const { project, agent, requirements, extra } = task;
  const where = `${Math.floor(event.at / DAY)} ${project.id} ${agent.id}`;
  const texts = [`type ${requirements.type}`, ...(extra?.labels ?? []).map(({ text }) => `label ${text}`)];
  for (const text of texts) {
    const key = `${where} ${text}`;
    told.set(key, (told.get(key) ?? 0) + event.inputTokens + event.outputTokens + event.cachedTokens);
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

test("what is booked by day is what attempts have said, also in a snapshot", () => {
  let seen = 0;
  holds(4000, history, (seeds) => {
    const told = new Map<string, number>();
    const { state } = live(seeds, { onEvent: (now, event) => tell(told, now, event) });
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
