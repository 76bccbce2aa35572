/**
 * Snapshot and restore change nothing: not the bytes, not the indices, not one later decision.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Instant, TaskId, WorkerId } from "../../src/core/base/brand.ts";
import { DEFAULT_CONFIG } from "../../src/core/config/config.ts";
import { decide } from "../../src/core/decide.ts";
import { emptyState } from "../../src/core/empty-state.ts";
import { evolve } from "../../src/core/evolve.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import type { Plan } from "../../src/core/model/plan.ts";
import type { State } from "../../src/core/model/state.ts";
import { capturedLines } from "../../src/core/snapshot/captured.ts";
import { restore, SNAPSHOT_FORMAT, SnapshotUnreadable, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { putPlan } from "../kits/conformance/world.ts";
import { holds } from "../kits/laws/cases.ts";
import { diceFrom, history, PLAIN, STARTED_AT } from "../kits/laws/histories.ts";
import { bytesOf, type Life, live, pumpDry, step } from "../kits/laws/live.ts";

const copyOf = (state: State): State => restore(snapshotLines(state));

test("a restored state has the same bytes, and indices that follow from its facts", () => {
  holds(5000, history, (seeds) => {
    const { state } = live(seeds);
    const copy = copyOf(state);
    assert.equal(bytesOf(copy), bytesOf(state));
    assert.deepEqual(checkInvariants(copy), []);
  });
});

test("a state restored at any point goes on identically, however often it is restored", () => {
  holds(6000, history, (seeds) => {
    const dice = diceFrom(seeds.length + (seeds[0] ?? 0));
    let copy: State | null = null;
    const { state } = live(seeds, {
      onCommand: (original, command, now) => {
        if (command.type !== "pump" && dice.chance(15)) copy = copyOf(copy ?? original);
        if (copy === null) return;
        assert.equal(JSON.stringify(decide(copy, command, now)), JSON.stringify(decide(original, command, now)));
      },
      onEvent: (_, event) => {
        if (copy !== null) evolve(copy, event);
      },
    });
    if (copy !== null) assert.equal(bytesOf(copy), bytesOf(state));
  });
});

test("lines that were captured stay those of their moment, whatever happens before they are taken", () => {
  holds(500, history, (seeds) => {
    const at = diceFrom(seeds.length + (seeds[0] ?? 0)).below(seeds.length);
    let commands = 0;
    let captured: Iterable<string> = [];
    let expected = "";
    live(seeds, {
      onCommand: (state, { type }) => {
        if (type === "pump" || commands++ !== at) return;
        captured = capturedLines(state, 1000) ?? [];
        expected = bytesOf(state);
      },
    });
    assert.equal([...captured].join("\n"), expected);
  });
});

const problemOf = (lines: readonly string[]): string => {
  try {
    restore(lines);
    return "none";
  } catch (thrown) {
    assert.ok(thrown instanceof SnapshotUnreadable, String(thrown));
    return thrown.problem;
  }
};

test("a snapshot that was cut anywhere is refused as cut", () => {
  holds(2000, history, (seeds) => {
    const lines = [...snapshotLines(live(seeds).state)];
    const kept = diceFrom(seeds[0] ?? 0).below(lines.length);
    assert.equal(problemOf(lines.slice(0, kept)), "cut");
    assert.equal(problemOf(lines.toSpliced(kept, 1)) === "none", false);
  });
});

test("a snapshot with a damaged line is refused with a typed error, or the damage is in a value", () => {
  holds(2000, history, (seeds) => {
    const lines = [...snapshotLines(live(seeds).state)];
    const dice = diceFrom(seeds[1] ?? 0);
    const at = dice.below(lines.length);
    const line = lines[at] as string;
    assert.equal(problemOf(lines.with(at, line.slice(0, dice.below(line.length)))), "corrupt");
    problemOf(lines.with(at, lines[dice.below(lines.length)] as string));
  });
});

test("a snapshot of a newer format is refused as such", () => {
  const [header = "", ...rest] = snapshotLines(live([1, 2, 3]).state);
  const newer = header.replace(/^\["drover",\d+/, `["drover",${SNAPSHOT_FORMAT + 1}`);
  assert.notEqual(newer, header);
  assert.equal(problemOf([newer, ...rest]), "newer-format");
  assert.equal(problemOf(['["drover",99]']), "newer-format");
  assert.equal(problemOf([]), "cut");
  assert.equal(problemOf(["{}"]), "corrupt");
});

test("a snapshot of format 2, whose tombstones do not say when their tasks were created, takes the end for it", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const [submittedAt, now] = [STARTED_AT, STARTED_AT + 1000] as Instant[] as [Instant, Instant];
  const id = "buried" as TaskId;
  step(life, { type: "submit-task", submission: { ...PLAIN, id } }, submittedAt, {});
  step(life, { type: "cancel-task", task: id, reason: null }, now, {});
  const { scheduler } = DEFAULT_CONFIG;
  step(life, { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler: { ...scheduler, resultTtl: 1 } } }, now, {});
  pumpDry(life, (now + 1) as Instant, {});
  const timesIn = (state: State): unknown => {
    const stone = state.tombstones.get(id);
    return [stone?.createdAt, stone?.endedAt];
  };
  assert.deepEqual(timesIn(copyOf(life.state)), [submittedAt, now]);
  const older = [...snapshotLines(life.state)].map((line) => {
    const row = JSON.parse(line) as unknown[];
    if (row[0] === "drover") row[1] = 2;
    return JSON.stringify(row[0] === "tombstone" ? row.slice(0, 12) : row);
  });
  const copy = restore(older);
  assert.deepEqual(timesIn(copy), [now, now]);
  assert.deepEqual(checkInvariants(copy), []);
});

test("a state restored while dependents are being told goes on with the next of them", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const now = STARTED_AT as Instant;
  const submit = (id: TaskId, parent: TaskId | null): boolean =>
    step(life, { type: "submit-task", submission: { ...PLAIN, id, parent } }, now, {});
  const parent = "parent" as TaskId;
  submit(parent, null);
  for (let index = 0; index < 600; index++) submit(`child-${index}` as TaskId, parent);
  // Ended and kept no longer, they still stand among the dependents and are counted when those are told.
  const { scheduler } = DEFAULT_CONFIG;
  for (const index of [3, 300])
    step(life, { type: "cancel-task", task: `child-${index}` as TaskId, reason: null }, now, {});
  step(life, { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler: { ...scheduler, resultMax: 1 } } }, now, {});
  pumpDry(life, now, {});
  step(life, { type: "cancel-task", task: parent, reason: null }, now, {});
  for (let pumps = 0; pumps < 2; pumps++) step(life, { type: "pump" }, now, {});
  assert.equal(life.state.tasks.get(parent)?.links?.notified, 256);
  const copy: Life = { state: copyOf(life.state), log: [], story: [] };
  life.log.length = 0;
  for (const each of [life, copy]) pumpDry(each, now, {});
  assert.deepEqual(copy.log, life.log);
  assert.equal(bytesOf(copy.state), bytesOf(life.state));
});

test("tasks whose pinned workers have gone are let go in the same order after a restore", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const [a, b, w1, w2] = ["a", "b", "w1", "w2"] as [TaskId, TaskId, WorkerId, WorkerId];
  const at = (ms: number): Instant => (STARTED_AT + ms) as Instant;
  const { scheduler } = DEFAULT_CONFIG;
  const placement = { ...scheduler.placement, strategy: "affinity" as const, affinityWait: 3_600_000 };
  step(life, { type: "set-config", config: { ...DEFAULT_CONFIG, scheduler: { ...scheduler, placement } } }, at(0), {});
  const settings = { slots: 1, capabilities: [], cpu: null, memory: null, zone: null, status: "ready" as const };
  for (const worker of [w1, w2])
    step(life, { type: "join-worker", worker, kind: "pull", session: "", settings }, at(0), {});
  for (const id of [a, b]) step(life, { type: "submit-task", submission: { ...PLAIN, id } }, at(0), {});
  pumpDry(life, at(0), {});
  step(life, { type: "set-paused", scope: "fleet", id: "", paused: true }, at(0), {});
  // The younger task fails first, so its worker is waited for first.
  for (const [index, task] of [b, a].entries()) {
    const failed = { outcome: "failed" as const, error: null, tokens: null, retryAfterMs: null, permanent: false };
    const report = { task, attempt: 1, resultHash: null, resultSize: 0, ...failed };
    step(life, { type: "finish-attempt", report }, at(index * 10_000), {});
    pumpDry(life, at((index + 1) * 10_000), {});
  }
  for (const worker of [w1, w2]) step(life, { type: "leave-worker", worker, lost: true }, at(30_000), {});
  const [first] = life.state.pins.keys();
  assert.equal(first, w2);
  const released = decide(life.state, { type: "pump" }, at(30_000));
  assert.deepEqual(decide(copyOf(life.state), { type: "pump" }, at(30_000)), released);
});

test("a snapshot of format 3, which does not say what becomes of what was lost, has it run again", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  step(
    life,
    { type: "submit-task", submission: { ...PLAIN, id: "t" as TaskId, onLoss: "fail" } },
    STARTED_AT as Instant,
    {},
  );
  assert.equal(copyOf(life.state).tasks.get("t" as TaskId)?.requirements.onLoss, "fail");
  const older = [...snapshotLines(life.state)].map((line) => {
    const row = JSON.parse(line) as unknown[];
    if (row[0] === "drover") row[1] = 3;
    return JSON.stringify(row[0] === "ask" ? row.slice(0, 13) : row);
  });
  const copy = restore(older);
  assert.equal(copy.tasks.get("t" as TaskId)?.requirements.onLoss, "retry");
  assert.deepEqual(checkInvariants(copy), []);
});

test("a snapshot from before there were plans is read, and one whose plans say less", () => {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const now = STARTED_AT as Instant;
  step(life, { type: "submit-task", submission: { ...PLAIN, id: "t" as TaskId } }, now, {});
  const older = (change: (row: unknown[]) => unknown[]): State =>
    restore([...snapshotLines(life.state)].map((line) => JSON.stringify(change(JSON.parse(line) as unknown[]))));
  const before = older((row) => {
    if (row[0] === "drover") row[1] = 4;
    const base = row[1] as { scheduler: Record<string, unknown> };
    if (row[0] === "config") for (const knob of ["planTtl", "plansMax"]) delete base.scheduler[knob];
    return row;
  });
  const { planTtl, plansMax } = before.config.scheduler;
  assert.deepEqual([before.plans.size, planTtl, plansMax], [0, 7 * 86_400_000, 1000]);
  assert.deepEqual(checkInvariants(before), []);
  const put = putPlan("p", ["p.a"]);
  step(life, put, now, {});
  step(life, { type: "submit-task", submission: { ...PLAIN, id: "p.a" as TaskId }, group: "plan:p" }, now, {});
  step(life, { type: "cancel-task", task: "p.a" as TaskId, reason: null }, now, {});
  const less = older((row) => (row[0] === "plan" ? row.slice(0, 14) : row));
  const { agent, documentHash, endedAt, keptSince, others } = less.plans.get("p") as Plan;
  assert.deepEqual([agent, documentHash, endedAt, keptSince, others.size], [null, "", now, now, 0]);
  assert.deepEqual(checkInvariants(less), []);
  assert.equal(bytesOf(restore(snapshotLines(life.state))), bytesOf(life.state));
});
