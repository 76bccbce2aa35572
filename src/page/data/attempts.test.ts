import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventJson } from "../../protocol/generated/index.ts";
import { attemptsIn } from "./attempts.ts";
import { toneOf } from "./outcomes.ts";

let seq = 0;
const event = (payload: Readonly<Record<string, unknown>> & { readonly kind: string }): EventJson => {
  seq += 1;
  const at = new Date(seq * 1000).toISOString();
  return { seq, at, kind: payload.kind, payload, priorHash: "", postHash: "" } as unknown as EventJson;
};
const begun = (attempt: number, worker: string): EventJson => event({ kind: "task-assigned", attempt, worker });

test("each attempt has its worker, its end and what was said then", () => {
  const events = [
    begun(1, "ann"),
    event({ kind: "attempt-used", attempt: 1, tokens: 7 }),
    event({ kind: "attempt-failed", attempt: 1, error: "2 tests fail" }),
    begun(2, "bob"),
    event({ kind: "attempt-lost", attempt: 2, cause: "worker-lost", reason: null }),
    begun(3, "bob"),
    event({ kind: "attempt-lost", attempt: 3, cause: "gave-back", reason: "no room" }),
    begun(4, "cid"),
    event({ kind: "attempt-stopping", attempt: 4, cause: "timeout" }),
    event({ kind: "attempt-stopped", attempt: 4 }),
    event({ kind: "task-failed", reason: "too late" }),
    begun(5, "cid"),
    event({ kind: "task-failed", reason: "again" }),
    begun(6, "cid"),
    event({ kind: "task-done" }),
    begun(7, "cid"),
    event({ kind: "task-skipped", attempt: 7, reason: "if: false" }),
  ];
  assert.deepEqual(
    attemptsIn(events, 7, "not known").map(({ number, worker, outcome, error, tokens }) => [
      number,
      worker,
      outcome,
      error,
      tokens,
    ]),
    [
      [1, "ann", "failed", "2 tests fail", 7],
      [2, "bob", "lost", "worker-lost", undefined],
      [3, "bob", "lost", "gave-back: no room", undefined],
      [4, "cid", "stopped", "told to stop: timeout", undefined],
      [5, "cid", "failed", "again", undefined],
      [6, "cid", "done", undefined, undefined],
      [7, "cid", "skipped", "if: false", undefined],
    ],
  );
});

test("of attempts that the log has forgotten the numbers are left, and of very many the last", () => {
  const known = attemptsIn([begun(3, "ann")], 3, "not known").map(({ number, outcome }) => `${number} ${outcome}`);
  assert.deepEqual(known, ["1 not known", "2 not known", "3 running"]);
  assert.deepEqual(attemptsIn([], 0, "not known"), []);
  const many = attemptsIn([], 1000, "not known");
  assert.deepEqual([many.length, many[0]?.number, many.at(-1)?.number], [200, 801, 1000]);
});

test("an attempt that was handed back has the words of its worker, and no colour of a failure", () => {
  const events = [begun(1, "ann"), event({ kind: "attempt-lost", attempt: 1, cause: "requeue", reason: "no room" })];
  const [one] = attemptsIn(events, 1, "not known");
  assert.deepEqual([one?.outcome, one?.error, toneOf(one?.outcome ?? "")], ["given back", "no room", "waiting"]);
});

test("an attempt whose worker left in good order was put back, and is no failure", () => {
  const events = [begun(1, "ann"), event({ kind: "attempt-lost", attempt: 1, cause: "worker-left", reason: null })];
  const [one] = attemptsIn(events, 1, "not known");
  assert.deepEqual(
    [one?.outcome, one?.error, toneOf(one?.outcome ?? "")],
    ["put back, its worker left", undefined, "waiting"],
  );
});

test("an attempt that was given back before it began is told as that, and in no colour of a failure", () => {
  const events = [begun(1, "ann"), event({ kind: "attempt-lost", attempt: 1, cause: "not-begun", reason: null })];
  const [one] = attemptsIn(events, 1, "not known");
  assert.deepEqual([one?.outcome, one?.error], ["given back, not begun", undefined]);
  assert.deepEqual([toneOf(one?.outcome ?? ""), toneOf("lost")], ["waiting", "failed"]);
});
