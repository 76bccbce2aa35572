/**
 * What was never begun is settled as the core that decided it had settled it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTaskBody } from "../../engine/tasks/task-body.ts";
import type { Instant, TaskId } from "../base/brand.ts";
import { decide } from "../decide.ts";
import { emptyState } from "../empty-state.ts";
import { evolve } from "../evolve.ts";
import type { Command } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { State } from "../model/state.ts";

const NOW = 1_000_000 as Instant;

function tell(state: State, command: Command, afterMs = 0): readonly Event[] {
  const decided = decide(state, command, (NOW + afterMs) as Instant);
  assert.ok(decided.ok, JSON.stringify(decided));
  for (const event of decided.value.events) evolve(state, event);
  return decided.value.events;
}

/** A task that some worker has. */
function given(rules: object = {}): State {
  const state = emptyState();
  const settings = { slots: 1, capabilities: [], cpu: null, memory: null, zone: null, status: "ready" } as const;
  tell(state, { type: "join-worker", worker: null, kind: "pull", session: "s", settings });
  const { submission } = readTaskBody({ agentId: "ann", action: "work", id: "t", estimatedTokens: 5000, ...rules });
  tell(state, { type: "submit-task", submission });
  tell(state, { type: "pump" });
  return state;
}

function settled(state: State): object {
  const [project] = state.projects.values();
  const { charged, reserved, means } = project ?? {};
  return { charged, reserved, samples: [...(means ?? [])].length };
}

const returned: Command = { type: "return-attempt", task: "t" as TaskId, attempt: 1 };
const kinds = (events: readonly Event[]): string[] => events.map(({ kind }) => kind);

test("cancelled before it began it costs nothing and teaches nothing; in older logs it is settled as it was", () => {
  const state = given();
  tell(state, { type: "cancel-task", task: "t" as TaskId, reason: null });
  const decided = decide(state, returned, NOW);
  assert.ok(decided.ok);
  const [event] = decided.value.events;
  assert.ok(event?.kind === "attempt-stopped" && event.unbegun);
  evolve(state, event);
  assert.deepEqual(settled(state), { charged: 0, reserved: 0, samples: 0 });
  const older = given();
  tell(older, { type: "cancel-task", task: "t" as TaskId, reason: null });
  evolve(older, { ...event, unbegun: false });
  assert.deepEqual(settled(older), { charged: 1000, reserved: 0, samples: 1 });
});

test("one whose time was over before it began is queued again, and has not failed", () => {
  const state = given({ timeoutMs: 50, maxAttempts: 1 });
  tell(state, { type: "start-attempt", task: "t" as TaskId, attempt: 1 });
  assert.deepEqual(kinds(tell(state, { type: "pump" }, 50)), ["attempt-stopping"]);
  assert.deepEqual(kinds(tell(state, returned, 60)), ["attempt-lost"]);
  assert.deepEqual(settled(state), { charged: 0, reserved: 0, samples: 0 });
  const task = state.tasks.get("t" as TaskId);
  assert.deepEqual([task?.phase, task?.ownFailures], ["queued", 0]);
});

test("it costs nothing and teaches nothing; in logs of core 6 its start stays charged, as it was decided", () => {
  const state = given();
  const decided = decide(state, returned, NOW);
  assert.ok(decided.ok);
  const [event] = decided.value.events;
  assert.ok(event?.kind === "attempt-lost" && event.tokens === null);
  evolve(state, event);
  assert.deepEqual(settled(state), { charged: 0, reserved: 0, samples: 0 });
  const older = given();
  evolve(older, { ...event, tokens: 0 });
  assert.deepEqual(settled(older), { charged: 1000, reserved: 0, samples: 1 });
});
