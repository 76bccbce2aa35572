/**
 * Snapshot and restore change nothing: not the bytes, not the indices, not one later decision.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../src/core/decide.ts";
import { evolve } from "../../src/core/evolve.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { restore, SnapshotUnreadable, snapshotLines } from "../../src/core/snapshot.ts";
import type { State } from "../../src/core/state.ts";
import { holds } from "./cases.ts";
import { diceFrom, history } from "./histories.ts";
import { bytesOf, live } from "./live.ts";

const copyOf = (state: State): State => restore(snapshotLines(state));

test("a restored state has the same bytes, and indices that follow from its facts", () => {
  holds(8000, history, (seeds) => {
    const { state } = live(seeds);
    const copy = copyOf(state);
    assert.equal(bytesOf(copy), bytesOf(state));
    assert.deepEqual(checkInvariants(copy), []);
  });
});

test("a state restored at any point goes on identically, however often it is restored", () => {
  holds(12_000, history, (seeds) => {
    const dice = diceFrom(seeds.length + (seeds[0] ?? 0));
    let copy: State | null = null;
    const { state } = live(seeds, {
      onCommand: (original, command, now) => {
        if (command.type !== "pump" && dice.chance(15)) copy = copyOf(copy ?? original);
        if (copy === null) return;
        assert.equal(JSON.stringify(decide(copy, command, now)), JSON.stringify(decide(original, command, now)));
      },
      onEvent: (_, event) => {
        if (copy !== null) evolve(copy, event);
      },
    });
    if (copy !== null) assert.equal(bytesOf(copy), bytesOf(state));
  });
});

const problemOf = (lines: readonly string[]): string => {
  try {
    restore(lines);
    return "none";
  } catch (thrown) {
    assert.ok(thrown instanceof SnapshotUnreadable, String(thrown));
    return thrown.problem;
  }
};

test("a snapshot that was cut anywhere is refused as cut", () => {
  holds(2000, history, (seeds) => {
    const lines = [...snapshotLines(live(seeds).state)];
    const kept = diceFrom(seeds[0] ?? 0).below(lines.length);
    assert.equal(problemOf(lines.slice(0, kept)), "cut");
    assert.equal(problemOf(lines.toSpliced(kept, 1)) === "none", false);
  });
});

test("a snapshot with a damaged line is refused with a typed error, or the damage is in a value", () => {
  holds(2000, history, (seeds) => {
    const lines = [...snapshotLines(live(seeds).state)];
    const dice = diceFrom(seeds[1] ?? 0);
    const at = dice.below(lines.length);
    const line = lines[at] as string;
    assert.equal(problemOf(lines.with(at, line.slice(0, dice.below(line.length)))), "corrupt");
    problemOf(lines.with(at, lines[dice.below(lines.length)] as string));
  });
});

test("a snapshot of a newer format is refused as such", () => {
  const [header = "", ...rest] = snapshotLines(live([1, 2, 3]).state);
  assert.equal(problemOf([header.replace(/^\["drover",1/, '["drover",2'), ...rest]), "newer-format");
  assert.equal(problemOf(['["drover",99]']), "newer-format");
  assert.equal(problemOf([]), "cut");
  assert.equal(problemOf(["{}"]), "corrupt");
});
