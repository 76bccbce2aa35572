/**
 * What a task names as need or parent stays readable for it: its inputs are made from those records.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant, TaskId } from "../../src/core/base/brand.ts";
import { DEFAULT_CONFIG } from "../../src/core/config/config.ts";
import { emptyState } from "../../src/core/empty-state.ts";
import { evolve } from "../../src/core/evolve.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import type { Event } from "../../src/core/model/events.ts";
import { hasEnded, type State } from "../../src/core/model/state.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { holds } from "../kits/laws/cases.ts";
import { history, PLAIN, STARTED_AT } from "../kits/laws/histories.ts";
import { bytesOf, type Life, live, pumpDry, step } from "../kits/laws/live.ts";

/** The records that were there when a task was submitted or began anew, by its event. */
type Seen = Map<number, readonly { readonly id: TaskId; readonly seq: number }[]>;

test("a record that an unended task names stays, whatever the limits say", () => {
  holds(8000, history, (seeds) => {
    const seen: Seen = new Map();
    live(seeds, { onEvent: (state, event) => noteNames(state, event, seen) });
  });
});

function noteNames(state: State, event: Event, seen: Seen): void {
  const opened =
    event.kind === "task-submitted" || event.kind === "task-retried" ? state.tasks.get(event.task) : undefined;
  if (opened?.links != null) {
    const ids = [opened.links.parent, ...opened.links.needs].filter((id) => id !== null);
    const found = ids.flatMap((id) => state.tasks.get(id) ?? []).filter(({ seq }) => seq < opened.seq);
    seen.set(
      opened.seq,
      found.map(({ id, seq }) => ({ id, seq })),
    );
  }
  for (const task of state.tasks.values()) {
    if (hasEnded(task)) continue;
    for (const { id, seq } of seen.get(task.seq) ?? [])
      assert.equal(state.tasks.get(id)?.seq, seq, `${id}, which ${task.id} names, is gone after ${event.kind}`);
  }
}

const DAY_MS = 86_400_000;

/** `a` has ended and its time is up, `b` needs it and waits for its artifact; so does `c`. */
function waitingForOne(): { life: Life; now: Instant } {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const now = STARTED_AT as Instant;
  const scheduler = { ...DEFAULT_CONFIG.scheduler, resultTtl: 1000, remember: DAY_MS };
  step(life, { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler } }, now, {});
  const submit = (id: string, more: object): boolean =>
    step(life, { type: "submit-task", submission: { ...PLAIN, id: id as TaskId, ...more } }, now, {});
  const waits = { needs: ["a"], artifact: "never.md", onDependencyFailure: "run" };
  submit("a", {});
  submit("b", waits);
  submit("c", waits);
  step(life, { type: "cancel-task", task: "a" as TaskId, reason: null }, now, {});
  pumpDry(life, now, {});
  const later = (now + 5000) as Instant;
  pumpDry(life, later, {});
  return { life, now: later };
}

const has = ({ state }: Life, id: string): boolean => state.tasks.has(id as TaskId);
const cancel = (life: Life, id: string, at: number): void => {
  step(life, { type: "cancel-task", task: id as TaskId, reason: null }, at as Instant, {});
  pumpDry(life, at as Instant, {});
};

test("a need's record goes when the time of the last task that names it is up, and its id stays taken", () => {
  const { life, now } = waitingForOne();
  assert.deepEqual([has(life, "a"), life.state.results], [true, 0]);
  cancel(life, "b", now + 1);
  pumpDry(life, (now + 2000) as Instant, {});
  assert.deepEqual([has(life, "a"), has(life, "b")], [true, false], "c still names it");
  cancel(life, "c", now + 3000);
  assert.ok(has(life, "a"), "c can be tried again, and then sees what it saw before");
  pumpDry(life, (now + 4000) as Instant, {});
  assert.deepEqual([has(life, "a"), has(life, "c"), life.state.tasks.size], [false, false, 0]);
  assert.deepEqual([...life.state.tombstones.values()].map(({ id }) => id).sort(), ["a", "b", "c"]);
  pumpDry(life, (now + 2 * DAY_MS) as Instant, {});
  assert.equal(life.state.tombstones.size, 0);
});

test("a task that stays for others can run again, and is kept once more after its new end", () => {
  const { life, now } = waitingForOne();
  step(life, { type: "retry-task", task: "a" as TaskId }, now, {});
  assert.deepEqual(checkInvariants(life.state), []);
  cancel(life, "a", now + 1);
  assert.equal(life.state.results, 1);
  pumpDry(life, (now + 5000) as Instant, {});
  assert.deepEqual([has(life, "a"), life.state.results, checkInvariants(life.state)], [true, 0, []]);
});

test("a task that runs again names what it names once more", () => {
  const { life, now } = waitingForOne();
  const waits = { ...PLAIN, artifact: "never.md", onDependencyFailure: "run" as const };
  step(life, { type: "submit-task", submission: { ...waits, id: "d" as TaskId, needs: ["b" as TaskId] } }, now, {});
  cancel(life, "b", now);
  pumpDry(life, (now + 2000) as Instant, {});
  assert.deepEqual([has(life, "a"), has(life, "b")], [true, true], "c names a, d names b");
  step(life, { type: "retry-task", task: "b" as TaskId }, (now + 3000) as Instant, {});
  cancel(life, "c", now + 3000);
  pumpDry(life, (now + 5000) as Instant, {});
  assert.deepEqual([has(life, "a"), has(life, "c"), checkInvariants(life.state)], [true, false, []]);
});

test("a task that took the id of a forgotten one is not taken for what others named", () => {
  const { life, now } = waitingForOne();
  cancel(life, "b", now);
  cancel(life, "c", now);
  pumpDry(life, (now + 2000) as Instant, {});
  const at = (now + 3000) as Instant;
  const waits = { ...PLAIN, needs: ["a" as TaskId], artifact: "never.md", onDependencyFailure: "run" as const };
  step(life, { type: "submit-task", submission: { ...waits, id: "f" as TaskId } }, at, {});
  pumpDry(life, (now + 2 * DAY_MS) as Instant, {});
  const later = (now + 2 * DAY_MS) as Instant;
  step(life, { type: "submit-task", submission: { ...PLAIN, id: "a" as TaskId } }, later, {});
  assert.ok(has(life, "a"), "the id is free again");
  cancel(life, "f", later + 1);
  pumpDry(life, (later + 2000) as Instant, {});
  assert.deepEqual([has(life, "f"), checkInvariants(life.state)], [false, []]);
});

test("what stays for others is in a snapshot, and one of before says nothing of it", () => {
  const { life, now } = waitingForOne();
  const copy = restore(snapshotLines(life.state));
  assert.deepEqual(checkInvariants(copy), []);
  for (const state of [life.state, copy]) {
    const twin: Life = { ...life, state };
    cancel(twin, "b", now + 1);
    cancel(twin, "c", now + 2);
    pumpDry(twin, (now + 9000) as Instant, {});
    assert.equal(twin.state.tasks.size, 0);
  }
  assert.equal(bytesOf(copy), bytesOf(life.state));
});

test("an older log, whose event does not speak of records that stay, gives the state it gave", () => {
  const { life } = waitingForOne();
  const replayed = emptyState();
  for (const event of life.log) evolve(replayed, event.kind === "results-expired" ? { ...event, kept: 0 } : event);
  assert.deepEqual([replayed.tasks.has("a" as TaskId), replayed.tombstones.has("a" as TaskId)], [false, true]);
  assert.deepEqual(checkInvariants(replayed), []);
});

test("a failed or skipped task is kept by failedTtl and failedMax, any other by resultTtl and resultMax", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const now = STARTED_AT as Instant;
  const limits = { resultTtl: 1000, resultMax: 10, failedTtl: 5000, failedMax: 3 };
  const scheduler = { ...DEFAULT_CONFIG.scheduler, ...limits, remember: DAY_MS };
  step(life, { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler } }, now, {});
  const submit = (id: string, more = {}): boolean =>
    step(life, { type: "submit-task", submission: { ...PLAIN, id: id as TaskId, ...more } }, now, {});
  submit("gone");
  submit("skipped", { needs: ["gone"] });
  for (const id of ["f1", "f2"]) submit(id, { deadline: now + 10 });
  cancel(life, "gone", now);
  pumpDry(life, (now + 10) as Instant, {});
  const at = (span: number): string => {
    pumpDry(life, (now + span) as Instant, {});
    assert.deepEqual(checkInvariants(life.state), []);
    return [...life.state.tasks.values()].map(({ id }) => id).join();
  };
  assert.deepEqual([life.state.results, life.state.failures], [1, 3]);
  assert.equal(at(999), "gone,skipped,f1,f2");
  assert.equal(at(1000), "gone,skipped,f1,f2", "skipped names it, and can run again");
  assert.equal(life.state.results, 0);
  submit("f3", { deadline: now + 2000 });
  assert.equal(at(2000), "f1,f2,f3", "the oldest failure goes beyond failedMax, and what it named with it");
  step(life, { type: "retry-task", task: "f1" as TaskId }, (now + 4000) as Instant, {});
  assert.deepEqual([at(5009), life.state.failures], ["f1,f2,f3", 2]);
  assert.equal(at(5010), "f1,f3");
  assert.equal(at(7000), "f1");
});

test("an older log lets go of the oldest end, whatever it was", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const now = STARTED_AT as Instant;
  for (const [id, span] of Object.entries({ a: 5, b: 100, c: 10 })) {
    const submission = { ...PLAIN, id: id as TaskId, deadline: (now + span) as Instant };
    step(life, { type: "submit-task", submission }, now, {});
  }
  pumpDry(life, (now + 5) as Instant, {});
  cancel(life, "b", now + 6);
  pumpDry(life, (now + 10) as Instant, {});
  const left = [...Array(4).keys()].map((count) => {
    const state = restore(snapshotLines(life.state));
    evolve(state, { kind: "results-expired", at: now, count, kept: 0, of: "all" });
    assert.deepEqual(checkInvariants(state), []);
    return [...state.tasks.values()].map(({ id }) => id).join();
  });
  assert.deepEqual(left, ["a,b,c", "b,c", "c", ""]);
});
