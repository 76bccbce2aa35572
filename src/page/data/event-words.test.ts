import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventJson } from "../../protocol/generated/index.ts";
import { givenBackIn, told } from "./event-words.ts";

const joined = (leads: boolean, node = "a"): EventJson => {
  const [kind, at] = ["node-joined", "2026-01-01T00:00:00.000Z"] as const;
  const payload = { kind, at: Date.parse(at), node, url: "http://a:4747", key: "MCow", leads };
  return { seq: 1, at, kind, payload, priorHash: "", postHash: "" } as EventJson;
};

test("a node that joins or leads is told by its name and its address", () => {
  assert.equal(told(joined(false)).text, "node a joined: http://a:4747");
  assert.equal(told(joined(true)).text, "node a leads: http://a:4747");
});

test("no name turns the sentence behind it around", () => {
  const text = "node a\u05d0b joined: http://a:4747";
  assert.equal(told(joined(false, "a\u202e\u05d0\u2066b\u2069")).text, text);
});

const ofAttempt = (attempt: number, payload: Readonly<Record<string, unknown>> & { kind: string }): EventJson => {
  const at = "2026-01-01T00:00:00.000Z";
  return {
    seq: 1,
    at,
    task: "a",
    attempt,
    kind: payload.kind,
    payload: { attempt, ...payload },
  } as unknown as EventJson;
};

test("what its worker handed back on purpose was given back, and is no failure", () => {
  const lost = { kind: "attempt-lost", restUntil: 0 };
  const events = [
    ofAttempt(1, { ...lost, cause: "requeue", reason: "the mirror is busy" }),
    ofAttempt(2, { ...lost, cause: "requeue", reason: null }),
    ofAttempt(3, { ...lost, cause: "rate-limited", reason: "429" }),
    ofAttempt(4, { ...lost, cause: "budget", reason: null }),
    ofAttempt(5, { ...lost, cause: "worker-left", reason: null }),
  ];
  assert.deepEqual(
    events.map((event) => told(event)),
    [
      { text: "attempt 1 was given back: the mirror is busy; runs again", tone: "waiting" },
      { text: "attempt 2 was given back; runs again", tone: "waiting" },
      { text: "attempt 3 was given back, rate limited: 429; runs again", tone: "waiting" },
      { text: "attempt 4 was lost: budget; runs again", tone: "failed" },
      { text: "attempt 5 was put back, its worker left; runs again", tone: "waiting" },
    ],
  );
});

test("an attempt of a task that had ended has stopped, or was given back", () => {
  const stopped = { kind: "attempt-stopped", tokens: null };
  assert.equal(told(ofAttempt(1, { ...stopped, unbegun: false })).text, "attempt 1 has stopped");
  assert.equal(told(ofAttempt(1, { ...stopped, unbegun: true })).text, "attempt 1 was given back, not begun");
});

test("what was given back before it began has not begun, and is no failure", () => {
  const lost = { kind: "attempt-lost", reason: null, restUntil: 0 };
  const events = [
    ofAttempt(1, { kind: "attempt-started" }),
    ofAttempt(1, { ...lost, cause: "not-begun" }),
    ofAttempt(2, { kind: "attempt-started" }),
    ofAttempt(2, { ...lost, cause: "worker-lost" }),
  ];
  const givenBack = givenBackIn(events);
  assert.deepEqual(
    events.map((event) => told(event, givenBack)),
    [
      { text: "attempt 1 is with its worker", tone: "waiting" },
      { text: "attempt 1 was given back, not begun; runs again", tone: "waiting" },
      { text: "attempt 2 has begun", tone: "running" },
      { text: "attempt 2 was lost: worker-lost; runs again", tone: "failed" },
    ],
  );
});
