/**
 * A task that its budget keeps waiting is not overtaken, until time makes another one next in line: that instant must
 * be known, or the other one sleeps beside free workers. Found by the simulator, seed 34.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTaskBody } from "../../engine/tasks/task-body.ts";
import type { GateId, Instant, PermitId, ProjectId } from "../base/brand.ts";
import { readConfig } from "../config/config.ts";
import { decide } from "../decide.ts";
import { emptyState } from "../empty-state.ts";
import { evolve } from "../evolve.ts";
import { nextInstant } from "../lifecycle/deadlines.ts";
import type { Command } from "../model/commands.ts";
import type { State } from "../model/state.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BEGAN = 1_000_000;
const LIMIT = 1000;

function tell(state: State, command: Command, at: number): string[] {
  const decided = decide(state, command, at as Instant);
  assert.ok(decided.ok, JSON.stringify(decided));
  for (const event of decided.value.events) evolve(state, event);
  return decided.value.events.map(({ kind }) => kind);
}

function begin(starvationAfter: number): State {
  const state = emptyState();
  const priority = { starvationAfter };
  const config = readConfig({ scheduler: { priority }, projects: { default: { budget: { limit: LIMIT } } } });
  assert.ok(config.ok);
  tell(state, { type: "set-config", config: config.value }, BEGAN);
  const settings = { slots: 9, capabilities: [], cpu: null, memory: null, zone: null, status: "ready" } as const;
  tell(state, { type: "join-worker", worker: null, kind: "pull", session: "s", settings }, BEGAN);
  spend(state, 20);
  return state;
}

/** A little is used, so that a task of the whole limit waits until the window has passed. */
function spend(state: State, tokens: number): void {
  const permit = "p" as PermitId;
  const call = {
    gate: "g" as GateId,
    task: null,
    attempt: null,
    project: "default" as ProjectId,
    class: null,
  } as const;
  tell(state, { type: "ask-permit", permit, ...call, tokens, askedAt: null }, BEGAN);
  tell(state, { type: "pump" }, BEGAN);
  tell(state, { type: "settle-permit", permit, ok: true, tokens }, BEGAN);
}

function submit(state: State, task: { type: string; estimatedTokens: number; priority?: number }, at: number): void {
  const { submission } = readTaskBody({ agentId: "ann", action: "work", ...task });
  tell(state, { type: "submit-task", submission }, at);
}

type Late = { type: string; estimatedTokens: number; priority?: number; after: number };
const rows: { name: string; starvationAfter: number; tasks: Late[]; changesAfter: number }[] = [
  {
    name: "one becomes overdue",
    starvationAfter: HOUR,
    tasks: [
      { type: "plan", estimatedTokens: 10, after: 0 },
      { type: "code", estimatedTokens: LIMIT, after: 5 * MINUTE },
    ],
    changesAfter: HOUR,
  },
  {
    name: "one rises by a step of priority",
    starvationAfter: HOUR,
    tasks: [
      { type: "code", estimatedTokens: 10, priority: 200, after: 0 },
      { type: "code", estimatedTokens: LIMIT, priority: 100, after: 59 * MINUTE },
    ],
    changesAfter: HOUR,
  },
  {
    name: "one passes an older one whose age is at its cap",
    starvationAfter: 1000 * HOUR,
    tasks: [
      { type: "plan", estimatedTokens: LIMIT, after: 0 },
      { type: "spec", estimatedTokens: 10, after: 40 * MINUTE },
    ],
    changesAfter: 70 * MINUTE + 1,
  },
];

for (const { name, starvationAfter, tasks, changesAfter } of rows)
  test(`behind a task that its budget keeps waiting, it is known when ${name}`, () => {
    const state = begin(starvationAfter);
    // Paused, so that nothing starts before all are there.
    tell(state, { type: "set-paused", scope: "fleet", id: "", paused: true }, BEGAN);
    for (const { after, ...task } of tasks) submit(state, task, BEGAN + after);
    const now = BEGAN + Math.max(...tasks.map(({ after }) => after));
    tell(state, { type: "set-paused", scope: "fleet", id: "", paused: false }, now);
    assert.deepEqual(tell(state, { type: "pump" }, now), []);
    const at = BEGAN + changesAfter;
    assert.equal(nextInstant(state, now as Instant), at);
    assert.deepEqual(tell(state, { type: "pump" }, at - 1), []);
    assert.deepEqual(tell(state, { type: "pump" }, at), ["task-assigned"]);
  });

test("where every head fits its budget no change of rank is waited for", () => {
  const state = begin(HOUR);
  tell(state, { type: "set-paused", scope: "fleet", id: "", paused: true }, BEGAN);
  submit(state, { type: "plan", estimatedTokens: 10 }, BEGAN);
  submit(state, { type: "code", estimatedTokens: 10 }, BEGAN);
  const next = nextInstant(state, BEGAN as Instant) ?? 0;
  assert.ok(next > BEGAN + 23 * HOUR, "nothing but the budget's own window is waited for");
});
