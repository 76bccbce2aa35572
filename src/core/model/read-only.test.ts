/**
 * What a decider is given cannot be written, at any depth: the compiler says so, line by line. A line below that
 * compiles is an error of its own (an unused `@ts-expect-error`), so `npm run types` runs this file.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant, ProjectId, TaskId } from "../base/brand.ts";
import { setBit } from "../collections/bit-set.ts";
import { push } from "../collections/fifo.ts";
import { insert } from "../collections/sorted-list.ts";
import { emptyState } from "../empty-state.ts";
import { evolve } from "../evolve.ts";
import { dropTicket } from "../gate/gate.ts";
import type { Gate } from "../gate/state.ts";
import { settleQueue } from "../turn/queue.ts";
import type { ReadonlyGroup, ReadonlyState, ReadonlyTask, ReadonlyWorker } from "./read-only.ts";
import type { State, Task } from "./state.ts";

type Given = {
  readonly state: ReadonlyState;
  readonly task: ReadonlyTask;
  readonly worker: ReadonlyWorker;
  readonly group: ReadonlyGroup;
};

/** A decider that tries to write. Never called. */
export function decider({ state, task, worker, group }: Given): void {
  // @ts-expect-error a field of the state
  state.paused = true;
  // @ts-expect-error a field of a field
  state.totals.starts++;
  // @ts-expect-error a field of a task
  task.phase = "done";
  // @ts-expect-error a field of what a task points to
  task.project.inFlight++;
  // @ts-expect-error a map
  state.projects.delete("p" as ProjectId);
  // @ts-expect-error a set
  state.unnotified.add(task);
  // @ts-expect-error a table
  state.tasks.delete("t" as TaskId);
  // @ts-expect-error a list
  group.agent.groups.push(group);
  // @ts-expect-error a list in order
  insert(state.ready, task);
  // @ts-expect-error a queue
  push(state.remembered, state.tombstones.get("t" as TaskId));
  // @ts-expect-error a set of shapes
  setBit(state.shapes.shutByType, 1, true);
  // @ts-expect-error the numbers of the tree over workers
  state.fleet.lightest[0] = 1;
  // @ts-expect-error a sum over a window
  state.spent.add(1, 0);
  // @ts-expect-error the attempts of a worker
  worker.attempts.delete(task.attempt);
  // @ts-expect-error what it would hand to a writer: a gate
  for (const gate of state.gates.values()) dropTicket(gate, "ticket");
  // @ts-expect-error the whole state
  settleQueue(state, task as unknown as Task);
  // @ts-expect-error the whole state, to evolve
  evolve(state, { kind: "results-expired", at: 0 as Instant, count: 0, kept: 0, of: "all" });
  // @ts-expect-error a name for it that can be written
  const mine: State = state;
  // @ts-expect-error the same for a task
  const its: Task = task;
  // @ts-expect-error the same for a gate
  const gate: Gate | undefined = [...state.gates.values()][0];
  assert.fail(`${mine} ${its} ${gate}`);
}

test("what deciders read is the very state that evolve writes", () => {
  const state = emptyState();
  const read: ReadonlyState = state;
  state.paused = true;
  assert.equal(read.paused, true);
});
