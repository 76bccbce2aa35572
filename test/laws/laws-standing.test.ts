/**
 * What is always true: counts, ends, and a pump that runs dry (which `live` itself demands).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/core/events.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { hasEnded, type State } from "../../src/core/state.ts";
import { holds } from "./cases.ts";
import { history } from "./histories.ts";
import { live } from "./live.ts";

test("every count and index is what the facts say, after every event", () => {
  holds(7000, history, (seeds) => {
    live(seeds, { onEvent: (state, { kind }) => assert.deepEqual(checkInvariants(state), [], `after ${kind}`) });
  });
});

test("a task that has ended never moves again, unless somebody retries it", () => {
  holds(16_000, history, (seeds) => {
    const ended = new Map<string, string>();
    live(seeds, { onEvent: (state, event) => noteEnds(state, event, ended) });
  });
});

/** How a task ended, in words; absent while it has not. */
function endOf(state: State, id: string): string | undefined {
  const task = state.tasks.get(id as never);
  if (task !== undefined)
    return hasEnded(task) ? `${task.seq} ${task.phase} ${task.end?.seq} ${task.end?.error}` : undefined;
  return undefined;
}

function noteEnds(state: State, event: Event, ended: Map<string, string>): void {
  for (const [id, end] of ended) {
    if (!state.tasks.has(id as never)) ended.delete(id);
    else if (event.kind === "task-retried" && event.task === id) ended.delete(id);
    else assert.equal(endOf(state, id), end, `${id} moved by ${event.kind}`);
  }
  if (!("task" in event) || event.task === null) return;
  const end = endOf(state, event.task);
  if (end !== undefined) ended.set(event.task, end);
}
