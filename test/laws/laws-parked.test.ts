/**
 * People: what is parked holds nothing, and only an approval in time lets it go on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import { bytesOf, live } from "../kits/laws/live.ts";

test("a parked task holds nothing: no attempt, no place in a queue, no lock, no tokens, no worker", () => {
  let seen = 0;
  holds(6000, history, (seeds) => {
    live(seeds, {
      onEvent: (state, { kind }) => {
        const parked = [...state.tasks.values()].filter(({ phase }) => phase === "parked");
        seen += parked.length;
        assert.equal(state.parked, parked.length, kind);
        if (parked.length === 0) return;
        const attempts = state.fleet.order.flatMap((worker) => [...worker.attempts]);
        const held = new Set([
          ...attempts.map(({ task }) => task),
          ...[...state.shapes.locks.values()].flatMap(({ holder }) => holder?.task ?? []),
          ...[...state.holds].map(({ task }) => task),
        ]);
        for (const task of parked) {
          assert.ok(!held.has(task) && task.attempt === null && task.group === null && task.pin === null, kind);
          assert.ok(task.end === null && !task.ready && task.restUntil < 0, kind);
        }
      },
    });
  });
  assert.ok(seen > 100, `only ${seen} were looked at`);
});

test("no task that must be approved starts before it is, and none is approved that was not asked for", () => {
  holds(6000, history, (seeds) => {
    const unapproved = new Set<string>();
    const parked = new Map<string, number | null>();
    const { state } = live(seeds, {
      onEvent: (_, event) => {
        switch (event.kind) {
          case "task-submitted":
            unapproved.delete(event.task);
            parked.delete(event.task);
            if (event.approval !== null) unapproved.add(event.task);
            return;
          case "task-parked":
            return void parked.set(event.task, event.until);
          case "task-approved": {
            const until = parked.get(event.task);
            assert.ok(until === null || (until !== undefined && event.at < until), "it is asked for, in time");
            unapproved.delete(event.task);
            return void parked.delete(event.task);
          }
          case "task-failed":
          case "task-cancelled":
            return void parked.delete(event.task);
          case "task-queued":
          case "task-assigned":
            assert.ok(!unapproved.has(event.task) && !parked.has(event.task), `${event.kind} of ${event.task}`);
        }
      },
    });
    assert.equal(bytesOf(restore(snapshotLines(state))), bytesOf(state));
  });
});
