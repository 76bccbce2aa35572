/**
 * The log is the state: replay rebuilds it, deciding leaves no mark, the same question has the same answer.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../src/core/decide.ts";
import { nextInstant } from "../../src/core/lifecycle/deadlines.ts";
import type { Event } from "../../src/core/model/events.ts";
import { why } from "../../src/core/why/why.ts";
import { holds } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { bytesOf, live, replay } from "../kits/laws/live.ts";
import { leaveNoMark } from "../kits/laws/whole-state.ts";

test("replaying the log rebuilds the state byte for byte", () => {
  holds(12_000, history, (seeds) => {
    const { state, log } = live(seeds);
    assert.equal(bytesOf(replay(log)), bytesOf(state));
  });
});

test("events read back from JSON rebuild the same state", () => {
  holds(8000, history, (seeds) => {
    const { state, log } = live(seeds);
    const read = log.map((event) => JSON.parse(JSON.stringify(event)) as Event);
    assert.deepEqual(read, log);
    assert.equal(bytesOf(replay(read)), bytesOf(state));
  });
});

test("deciding, asking why and setting the alarm leave no mark, neither on facts nor on indices", () => {
  holds(400, history, (seeds) => {
    live(seeds, {
      onCommand: (state, command, now) => {
        leaveNoMark(state, {
          [command.type]: () => decide(state, command, now),
          pump: () => decide(state, { type: "pump" }, now),
          alarm: () => nextInstant(state, now),
          why: () => {
            for (const { id } of state.tasks.values()) why(state, id, now);
          },
        });
      },
    });
  });
});

test("the same state and command give the same answer twice", () => {
  holds(10_000, history, (seeds) => {
    live(seeds, {
      onCommand: (state, command, now) => {
        const once = JSON.stringify(decide(state, command, now));
        assert.equal(JSON.stringify(decide(state, command, now)), once);
      },
    });
  });
});
