/**
 * What is always true: counts, ends, and a pump that runs dry (which `live` itself demands).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant, TaskId } from "../../src/core/base/brand.ts";
import { items } from "../../src/core/collections/sorted-list.ts";
import { DEFAULT_CONFIG } from "../../src/core/config/config.ts";
import { emptyState } from "../../src/core/empty-state.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import type { AttemptReport } from "../../src/core/model/commands.ts";
import type { Event, UsageTotals } from "../../src/core/model/events.ts";
import { hasEnded, type State } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds } from "../kits/laws/cases.ts";
import { history, PLAIN, STARTED_AT } from "../kits/laws/histories.ts";
import { bytesOf, type Life, live, pumpDry, step } from "../kits/laws/live.ts";
import { allTokens, usageTeller } from "../kits/laws/told-usage.ts";

const { scheduler } = DEFAULT_CONFIG;
const DONE: Omit<AttemptReport, "task" | "attempt"> = {
  ...{
    outcome: "done",
    error: null,
    tokens: null,
    retryAfterMs: null,
    resultHash: null,
    resultSize: 0,
    permanent: false,
  },
};

test("every count and index is what the facts say, after every event", () => {
  holds(4000, history, (seeds) => {
    live(seeds, { onEvent: (state, { kind }) => assert.deepEqual(checkInvariants(state), [], `after ${kind}`) });
  });
});

test("the tasks of a label are those that were submitted with it and are still readable, in that order", () => {
  holds(4000, history, (seeds) => {
    const submitted = new Map<number, readonly string[]>();
    const { state } = live(seeds, {
      onEvent: ({ seq }, event) => {
        if (event.kind === "task-submitted") submitted.set(seq, event.labels);
      },
    });
    for (const known of [state, restore(snapshotLines(state))]) {
      const expected = new Map<string, number[]>();
      for (const { seq } of known.tasks.values())
        for (const label of submitted.get(seq) ?? []) expected.set(label, [...(expected.get(label) ?? []), seq]);
      const found = Array.from(known.labels, ([text, { tasks }]) => [text, [...items(tasks)].map(({ seq }) => seq)]);
      assert.deepEqual(Object.fromEntries(found), Object.fromEntries(expected));
    }
  });
});

test("a group counts every task that was submitted with it while it was known, and goes with its last record", () => {
  holds(4000, history, (seeds) => {
    /** By the group: its tasks by their numbers, each in the phase it was last seen in. */
    const groups = new Map<string, Map<number, string>>();
    const { state } = live(seeds, {
      onEvent: (now, event) => {
        if (event.kind === "task-submitted" && event.group !== null) {
          if (!groups.has(event.group)) groups.set(event.group, new Map());
          groups.get(event.group)?.set(now.seq, "waiting");
        }
        const known = new Map(Array.from(now.tasks.values(), ({ seq, phase }) => [seq, phase]));
        for (const [id, tasks] of groups) {
          for (const seq of tasks.keys()) tasks.set(seq, known.get(seq) ?? (tasks.get(seq) as string));
          if (![...tasks.keys()].some((seq) => known.has(seq))) groups.delete(id);
        }
      },
    });
    for (const known of [state, restore(snapshotLines(state))]) {
      assert.deepEqual([...known.groups.keys()].sort(), [...groups.keys()].sort());
      for (const [id, tasks] of groups) {
        const parts = [...(known.groups.get(id)?.parts.values() ?? [])];
        for (const phase of Object.keys(parts[0]?.counts ?? {}))
          assert.equal(
            parts.reduce((sum, { counts }) => sum + counts[phase as "done"], 0),
            [...tasks.values()].filter((one) => one === phase).length,
            `${id} ${phase}`,
          );
      }
    }
  });
});

test("a task is skipped, or queued for the first time, when all it depends on has ended, and not before", () => {
  holds(8000, history, (seeds) => {
    const waiting = new Set<string>();
    live(seeds, {
      onEvent: (state, event) => {
        const isSkip = event.kind === "task-skipped" && event.attempt === null;
        if (isSkip || (event.kind === "task-queued" && waiting.has(event.task)))
          checkDependencies(state, event.task, event.kind);
        waiting.clear();
        for (const { id, phase } of state.tasks.values()) if (phase === "waiting") waiting.add(id);
      },
    });
  });
});

/** One that runs after a bad end too, and waits for a file or an instant, was judged before. */
function checkDependencies(state: State, id: TaskId, kind: string): void {
  const task = state.tasks.get(id);
  if (task === undefined || task.links === null || task.requirements.onDependencyFailure === "run") return;
  let isBad = false;
  const { parent, needs, ofRunning } = task.links;
  for (const other of ofRunning ? needs : [parent, ...needs]) {
    const found = other === null ? undefined : (state.tasks.get(other) ?? state.tombstones.get(other));
    if (found === undefined || found.seq > task.seq) continue;
    assert.ok(hasEnded(found), `${id}: ${kind}, but ${other} is ${found.phase}`);
    if (found.phase !== "done") isBad = true;
  }
  assert.equal(isBad, kind === "task-skipped", `${id}: ${kind}`);
}

test("what a task, a group and a project used is what their attempts and permits said", () => {
  holds(4000, history, (seeds) => {
    const said = new Map<number, { tokens: number; cost: number }>();
    const ofProjects = new Map<string, number>();
    const onEvent = usageTeller((task, usage) => {
      const before = said.get(task.seq) ?? { tokens: 0, cost: 0 };
      said.set(task.seq, { tokens: before.tokens + allTokens(usage), cost: before.cost + (usage.cost ?? 0) });
      ofProjects.set(task.project.id, (ofProjects.get(task.project.id) ?? 0) + allTokens(usage));
    });
    const { state } = live(seeds, { onEvent });
    const sum = (usage: UsageTotals | null | undefined): number => (usage == null ? 0 : allTokens(usage));
    for (const known of [state, restore(snapshotLines(state))]) {
      for (const { seq, extra } of known.tasks.values()) {
        assert.equal(sum(extra?.usage), said.get(seq)?.tokens ?? 0);
        assert.equal(extra?.usage?.cost ?? 0, said.get(seq)?.cost ?? 0);
      }
      for (const { id, usage } of known.projects.values()) assert.equal(sum(usage), ofProjects.get(id) ?? 0);
      for (const { parts, tasks } of known.groups.values()) {
        const records = [...items(tasks)].reduce((total, { extra }) => total + sum(extra?.usage), 0);
        assert.ok([...parts.values()].reduce((total, { usage }) => total + sum(usage), 0) >= records);
      }
    }
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

test("locks used once leave nothing behind, and forgetting them shuts nothing that is open", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const { state } = life;
  const now = STARTED_AT as Instant;
  step(
    life,
    { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler: { ...scheduler, resultMax: 1, remember: 1 } } },
    now,
    {},
  );
  const worker = { slots: 1, capabilities: [], cpu: 1000, memory: null, zone: null, status: "ready" as const };
  step(life, { type: "join-worker", worker: null, kind: "pull", session: "s", settings: worker }, now, {});
  for (let index = 0; index < 3000; index++) {
    const at = (now + index) as Instant;
    const locks = index % 3 === 0 ? [] : [`lock-${index}`];
    step(
      life,
      { type: "submit-task", submission: { ...PLAIN, locks, type: `type-${index % 7}`, cpu: index % 5 } },
      at,
      {},
    );
    pumpDry(life, at, {});
    const [attempt] = [...state.fleet.order.flatMap(({ attempts }) => [...attempts])];
    assert.equal(attempt?.task.requirements.locks[0], locks[0], "the only task starts at once");
    step(life, { type: "finish-attempt", report: { ...DONE, task: attempt?.task.id as TaskId, attempt: 1 } }, at, {});
    if (index % 100 === 0) assert.deepEqual(checkInvariants(state), []);
  }
  pumpDry(life, (now + 3000) as Instant, {});
  assert.equal(state.totals.completed, 3000);
  assert.ok(
    state.shapes.byKey.size < 2500 && state.shapes.locks.size < 2500,
    `${state.shapes.byKey.size} shapes are kept`,
  );
  assert.deepEqual(checkInvariants(state), []);
  assert.equal(bytesOf(restore(snapshotLines(state))), bytesOf(state));
});
