import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createWatch } from "./stopper.ts";

test("a silence is measured by what passes, though the wall clock is set back or ahead meanwhile", () => {
  for (const setBy of [-3_600_000, 3_600_000]) {
    const clock = createHandClock({ at: 0 });
    const silences: number[] = [];
    const watch = createWatch({ clock, startMs: null, idleMs: 1000, onSilence: () => silences.push(clock.elapsed()) });
    for (let passed = 0; passed < 3000; passed += 100) {
      if (passed === 500) watch.noteOutput();
      if (passed === 700) clock.setWall(10_000_000 + setBy);
      clock.turn(100);
    }
    assert.deepEqual(silences, [1500]);
    watch.end();
  }
});
