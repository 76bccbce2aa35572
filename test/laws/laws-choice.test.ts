/**
 * The fast choice is the naive choice.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/core/model/events.ts";
import { holds } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { live } from "../kits/laws/live.ts";
import { type Choice, naiveChoice } from "../kits/laws/naive.ts";

function choiceOf(event: Event | undefined): Choice | null {
  if (event?.kind !== "task-assigned") return null;
  const { task, worker, reason, rank } = event;
  const name = reason.type === "affinity" ? `affinity ${reason.reason}` : reason.type;
  return { task, worker, reason: name, express: rank.express };
}

/** The pump says who starts next only when nothing that comes first is left. */
const isAboutStarts = (events: readonly Event[]): boolean =>
  events.length === 0 || ["task-assigned", "hold-placed"].includes(events[0]?.kind ?? "");

test("the fast choice equals the naive choice at every start, and nothing starts where nothing should", () => {
  holds(16_000, history, (seeds) => {
    live(seeds, {
      onDecision: (state, command, events, now) => {
        if (command.type !== "pump" || !isAboutStarts(events)) return;
        assert.deepEqual(choiceOf(events[0]), naiveChoice(state, now));
      },
    });
  });
});
