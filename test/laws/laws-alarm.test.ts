/**
 * The alarm: when the pump has nothing left to say, it has nothing to say before the instant it names.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../src/core/base/brand.ts";
import { decide } from "../../src/core/decide.ts";
import { nextInstant } from "../../src/core/lifecycle/deadlines.ts";
import { holds } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { live } from "../kits/laws/live.ts";

const FAR = 10_000_000;

test("a pump that has run dry sets an alarm in the future, and nothing would happen before it", () => {
  holds(8000, history, (seeds) => {
    live(seeds, {
      onDecision: (state, command, events, now) => {
        if (command.type !== "pump" || events.length > 0) return;
        const next = nextInstant(state, instant(now)) ?? now + FAR;
        assert.ok(next > now, `the alarm rings at ${next}, and it is ${now}: it would ring for ever`);
        const early = decide(state, { type: "pump" }, instant(next - 1));
        // A hold may come with the next event: who is first in its agent's queue changes with time.
        const kinds = early.ok
          ? early.value.events.map(({ kind }) => kind).filter((kind) => kind !== "hold-placed")
          : [];
        assert.deepEqual(kinds, [], `something happens before ${next}`);
      },
    });
  });
});
