import assert from "node:assert/strict";
import { test } from "node:test";
import { createWatch } from "./idle-watch.ts";

test("a silence is measured by what passes, though the wall clock is set back or ahead meanwhile", () => {
  for (const setBy of [-3_600_000, 3_600_000]) {
    let wall = 10_000_000;
    let elapsed = 0;
    const timers = new Map<() => void, number>();
    const host = {
      now: () => wall,
      elapsed: () => elapsed,
      setTimer: (spanMs: number, ring: () => void) => {
        timers.set(ring, elapsed + spanMs);
        return () => void timers.delete(ring);
      },
    };
    const silences: number[] = [];
    const watch = createWatch({ host, startMs: null, idleMs: 1000, onSilence: () => silences.push(elapsed) });
    for (let passed = 0; passed < 3000; passed += 100) {
      if (elapsed === 500) watch.noteOutput();
      if (elapsed === 700) wall += setBy;
      elapsed += 100;
      wall += 100;
      for (const [ring, at] of [...timers]) if (at <= elapsed && timers.delete(ring)) ring();
    }
    assert.deepEqual(silences, [1500]);
    watch.end();
  }
});
