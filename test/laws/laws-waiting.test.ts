/**
 * Tasks that wait for their children: they end exactly when the last task that grew below them has, and never wait in
 * a circle.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dependenciesOf } from "../../src/core/lifecycle/transitions.ts";
import type { Event } from "../../src/core/model/events.ts";
import { hasEnded, type State } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { bytesOf, live } from "../kits/laws/live.ts";

type Grown = { readonly parent: string | null; readonly wait: boolean; isOpen: boolean };
const ENDS: ReadonlySet<Event["kind"]> = new Set([
  "task-done",
  "task-failed",
  "task-cancelled",
  "task-skipped",
] as const);

/** What grew, told by events alone. */
function readGrowth(grown: Map<string, Grown>, event: Event): void {
  if (event.kind === "task-submitted") {
    const parent = event.ofRunning ? event.parent : null;
    grown.set(event.task, { parent, wait: event.wait !== null, isOpen: true });
  }
  const task = "task" in event && event.task !== null ? grown.get(event.task) : undefined;
  if (task !== undefined && ENDS.has(event.kind)) task.isOpen = false;
  if (task !== undefined && event.kind === "task-retried") task.isOpen = true;
}

function openBelow(grown: ReadonlyMap<string, Grown>, id: string): string[] {
  const below = [...grown].filter(([, { parent }]) => parent === id);
  return below.flatMap(([child, { isOpen }]) => [...(isOpen ? [child] : []), ...openBelow(grown, child)]);
}

test("a task that waits for its children is done exactly when the last that grew below it has ended", () => {
  let waited = 0;
  holds(5000, history, (seeds) => {
    const grown = new Map<string, Grown>();
    const awaiting = new Map<string, Extract<Event, { kind: "attempt-done" }> & { readonly seq: number }>();
    const { state } = live(seeds, {
      onEvent: ({ seq }, event) => {
        readGrowth(grown, event);
        if (event.kind === "attempt-done") {
          assert.ok(
            grown.get(event.task)?.wait && openBelow(grown, event.task).length > 0,
            "it has something to wait for",
          );
          awaiting.set(event.task, { ...event, seq });
        } else if (event.kind === "task-done") {
          const before = awaiting.get(event.task);
          assert.equal(event.resultSeq, before?.seq ?? null);
          if (before !== undefined || grown.get(event.task)?.wait === true)
            assert.deepEqual(openBelow(grown, event.task), [], `${event.task} is done`);
          if (before === undefined) return;
          const { attempt, resultHash, resultSize } = before;
          assert.deepEqual([event.attempt, event.resultHash, event.resultSize], [attempt, resultHash, resultSize]);
          waited++;
        }
        if ("task" in event && ENDS.has(event.kind)) awaiting.delete(event.task as string);
      },
    });
    for (const id of awaiting.keys()) {
      assert.equal(state.tasks.get(id as never)?.phase, "parked");
      assert.notDeepEqual(openBelow(grown, id), [], `${id} waits for nothing and is not done`);
    }
    assert.equal(bytesOf(restore(snapshotLines(state))), bytesOf(state));
  });
  assert.ok(isQuick || waited > 20, `only ${waited} waited`);
});

/** The tasks that each task waits for, as the state has them. */
function waitsFor(state: State): Map<string, string[]> {
  const edges = new Map<string, string[]>();
  const tasks = [...state.tasks.values()].filter((task) => !hasEnded(task));
  const grownBelow = (id: string): string[] =>
    [...state.tasks.values()].flatMap((task) =>
      task.links?.ofRunning === true && task.links.parent === id
        ? [...(hasEnded(task) ? [] : [task.id]), ...grownBelow(task.id)]
        : [],
    );
  for (const task of tasks) {
    const needs = task.phase === "waiting" && task.links !== null ? dependenciesOf(task.links) : [];
    const open = needs.filter((id) => tasks.some((other) => other.id === id && other.seq < task.seq));
    edges.set(task.id, task.extra?.wait == null ? open : [...open, ...grownBelow(task.id)]);
  }
  return edges;
}

test("no task waits for itself: not by needs, not by children, not by both", () => {
  let looked = 0;
  holds(5000, history, (seeds) => {
    const { state } = live(seeds);
    const edges = waitsFor(state);
    const done = new Set<string>();
    const visit = (id: string, path: readonly string[]): void => {
      assert.ok(!path.includes(id), `a circle: ${[...path, id].join(" → ")}`);
      if (done.has(id)) return;
      for (const next of edges.get(id) ?? []) visit(next, [...path, id]);
      done.add(id);
      looked++;
    };
    for (const id of edges.keys()) visit(id, []);
  });
  assert.ok(isQuick || looked > 100, `only ${looked} were looked at`);
});
