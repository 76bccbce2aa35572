/**
 * Loops: rounds are a function of the log, and there are never more of them than asked for.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event, UsageTotals } from "../../src/core/model/events.ts";
import type { State } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { live } from "../kits/laws/live.ts";

type Told = {
  readonly seq: number;
  readonly max: number;
  iteration: number;
  failures: number;
  rounds: unknown[];
  /** What the attempt said that ends next. */
  usage: UsageTotals | null;
};

/** What the log tells of each loop, by the id of its task. */
function tell(told: Map<string, Told>, seq: number, event: Event): void {
  if (event.kind === "task-submitted") {
    const { maxRounds: max, iteration } = event;
    told.delete(event.task);
    if (max > 0) told.set(event.task, { seq, max, iteration, failures: 0, rounds: [], usage: null });
    return;
  }
  const loop = "task" in event && event.task !== null ? told.get(event.task) : undefined;
  if (loop === undefined) return;
  if (event.kind === "attempt-failed") loop.failures++;
  if (event.kind === "task-retried")
    Object.assign(loop, { rounds: [], failures: 0, iteration: loop.iteration + loop.failures + 1 });
  const { usage } = loop;
  loop.usage = null;
  if (event.kind === "attempt-usage") {
    const { inputTokens, outputTokens, cachedTokens, cost } = event;
    loop.usage = { inputTokens, outputTokens, cachedTokens, cost };
  }
  if (event.kind === "attempt-files") loop.usage = usage;
  // One that waits for its children had its last round when its attempt was done.
  const isDone = event.kind === "attempt-done" || (event.kind === "task-done" && event.resultSeq === null);
  if (event.kind !== "round-ended" && !isDone) return;
  const outcome = isDone ? "done" : "again";
  const note = event.kind === "round-ended" ? event.note : null;
  loop.rounds.push({ iteration: loop.iteration + loop.failures, attempt: event.attempt, outcome, note, usage });
  if (event.kind === "round-ended" && loop.rounds.length < loop.max) loop.iteration++;
}

const short = (note: string | null, isLast: boolean): string | null =>
  note === null || isLast || note.length <= 200 ? note : `${note.slice(0, 199)}…`;

function roundsOf(state: State): unknown[] {
  const loops = [...state.tasks.values()].filter(({ extra }) => (extra?.loop ?? null) !== null);
  return loops.map(({ id, iteration, extra }) => [
    id,
    iteration,
    extra?.loop?.max,
    extra?.loop?.rounds.map(({ tokens: _, ...round }) => round),
  ]);
}

test("the rounds of a loop are a function of the log", () => {
  let seen = 0;
  holds(4000, history, (seeds) => {
    const told = new Map<string, Told>();
    const { state } = live(seeds, { onEvent: ({ seq }, event) => tell(told, seq, event) });
    const expected = Array.from(state.tasks.values(), ({ id, seq }) => ({ id, seq, loop: told.get(id) })).flatMap(
      ({ id, seq, loop }) => {
        if (loop === undefined || loop.seq !== seq) return [];
        const rounds = loop.rounds as { note: string | null }[];
        seen += rounds.length;
        const shown = rounds.map((round, index) => ({
          ...round,
          note: short(round.note, index === rounds.length - 1),
        }));
        return [[id, loop.iteration, loop.max, shown]];
      },
    );
    assert.deepEqual(roundsOf(state), expected);
    assert.deepEqual(roundsOf(restore(snapshotLines(state))), expected);
  });
  assert.ok(isQuick || seen > 100, `only ${seen} rounds were looked at`);
});

test("no loop has more rounds than it may, and one that has had them all is over", () => {
  holds(8000, history, (seeds) => {
    live(seeds, {
      onEvent: (state, event) => {
        if (event.kind === "round-ended") return;
        const task = "task" in event && event.task !== null ? state.tasks.get(event.task) : undefined;
        const loop = task?.extra?.loop ?? null;
        if (loop === null) return;
        const again = loop.rounds.filter(({ outcome }) => outcome === "again").length;
        assert.ok(loop.rounds.length <= loop.max && (again < loop.max || task?.phase === "failed"), event.kind);
      },
    });
  });
});
