import assert from "node:assert/strict";
import { test } from "node:test";
import type { Refusal } from "../core/base/refusal.ts";
import { DroverError, refused } from "../engine/base/drover-error.ts";
import { LogFailure } from "../engine/index.ts";
import { closed } from "../engine/writer/writer.ts";
import { ServerRefusal } from "../http/index.ts";
import { readShape, wireErrorSchema } from "../protocol/index.ts";
import { problemOf } from "./problem.ts";

const rows: { name: string; error: unknown; status: number; code: string; details?: object; retryAfterS?: number }[] = [
  {
    name: "a full queue",
    error: refused(
      { type: "queue-full", limit: "maxQueue", agent: "ann", queued: 5, maxQueue: 5, maxPerAgent: 3 },
      { taskId: "tsk_1" },
    ),
    ...{ status: 429, code: "queue_full", retryAfterS: 1 },
    details: { limit: "maxQueue", agentId: "ann", queued: 5, maxQueue: 5, maxPerAgent: 3, taskId: "tsk_1" },
  },
  {
    name: "a deadline that has passed",
    error: refused({ type: "past-deadline", field: "deadline", deadline: 0, now: 1000 }),
    ...{ status: 400, code: "bad_request" },
    details: { field: "deadline", deadline: "1970-01-01T00:00:00.000Z", now: "1970-01-01T00:00:01.000Z" },
  },
  {
    name: "a task nobody knows",
    error: refused({ type: "task-unknown", task: "t" }),
    ...{ status: 404, code: "not_found", details: { taskId: "t" } },
  },
  {
    name: "a log that failed",
    error: new DroverError("log_failed", "disk full"),
    status: 503,
    code: "log_failed",
    retryAfterS: 1,
  },
  {
    name: "a refusal that knows when",
    error: new ServerRefusal("closed", "going", undefined, 2001),
    ...{ status: 503, code: "closed", retryAfterS: 3 },
  },
  {
    name: "a log that is damaged",
    error: new LogFailure("corrupt", "secret path"),
    status: 503,
    code: "log_failed",
    retryAfterS: 1,
  },
  { name: "a broken rule", error: new DroverError("broken", "secret inside"), status: 500, code: "internal" },
  { name: "a bug", error: new TypeError("x is not a function"), status: 500, code: "internal" },
  { name: "something thrown that is no error", error: "oops", status: 500, code: "internal" },
  { name: "null thrown", error: null, status: 500, code: "internal" },
];
for (const { name, error, status, code, details, retryAfterS } of rows)
  test(`${name} is ${status} ${code}`, () => {
    const problem = problemOf(error);
    assert.equal(problem.status, status);
    assert.equal(problem.body.code, code);
    assert.equal(problem.retryAfterS, retryAfterS);
    if (details !== undefined) assert.deepEqual(problem.body.details, details);
    assert.ok(readShape(wireErrorSchema, problem.body).ok);
    assert.equal(problem.isBug, status === 500 || error instanceof LogFailure);
    if (problem.isBug) assert.doesNotMatch(JSON.stringify(problem.body), /secret|not a function|oops/);
  });

test("whoever asks at the very end of a shutdown hears that it is one, and nothing of opening it again", () => {
  for (const error of [closed(), new LogFailure("closed", "gone")]) {
    const { status, body } = problemOf(error);
    assert.equal(status, 503);
    assert.deepEqual([body.code, body.error], ["closed", "the server is shutting down; try again later"]);
  }
});

test("every refusal of the core has a status and a body the protocol knows", () => {
  const every: { [Type in Refusal["type"]]: Extract<Refusal, { type: Type }> } = {
    "bad-field": { type: "bad-field", field: "a", value: "1", expected: "b" },
    "unknown-field": { type: "unknown-field", field: "a", known: ["b"] },
    "past-deadline": { type: "past-deadline", field: "a", deadline: 1, now: 2 },
    cycle: { type: "cycle", path: ["a", "b"] },
    "dependency-unknown": { type: "dependency-unknown", field: "needs", dependency: "a" },
    "dependency-refused": { type: "dependency-refused", field: "needs", dependency: "a" },
    "task-unknown": { type: "task-unknown", task: "a" },
    "group-unknown": { type: "group-unknown", group: "a" },
    "plan-unknown": { type: "plan-unknown", plan: "a" },
    "plan-live": { type: "plan-live", plan: "a" },
    "task-exists": { type: "task-exists", task: "a" },
    "task-ended": { type: "task-ended", task: "a", state: "done" },
    "task-not-ended": { type: "task-not-ended", task: "a", state: "queued" },
    "task-not-parked": { type: "task-not-parked", task: "a", state: "queued" },
    "approval-late": { type: "approval-late", task: "a", deadline: 1, now: 2 },
    "queue-full": { type: "queue-full", limit: "maxPerAgent", agent: "a", queued: 1, maxQueue: 2, maxPerAgent: 1 },
    backpressure: { type: "backpressure", usage: 1, rejectThreshold: 1, agent: "a" },
    "no-workers": { type: "no-workers", agent: "a" },
    "batch-too-large": { type: "batch-too-large", submitted: 2, max: 1 },
    "project-unknown": { type: "project-unknown", project: "a" },
    "too-many": { type: "too-many", what: "gates", max: 1 },
    "worker-unknown": { type: "worker-unknown", worker: "a" },
    "worker-local": { type: "worker-local", worker: "a" },
    "worker-exists": { type: "worker-exists", worker: "a" },
    "attempt-stale": { type: "attempt-stale", task: "a", attempt: 1, current: 2 },
    "session-lost": { type: "session-lost", worker: "a" },
    "sync-stale": { type: "sync-stale", worker: "a", n: 1, last: 2 },
    "permit-exists": { type: "permit-exists", permit: "a" },
    "permit-settled": { type: "permit-settled", permit: "a" },
    "permit-unknown": { type: "permit-unknown", permit: "a" },
    "bytes-per-minute": { type: "bytes-per-minute", project: "a", stored: 2, max: 1, retryAfterMs: 5 },
    "log-full": { type: "log-full", bytes: 2, max: 1 },
    "gate-unknown": { type: "gate-unknown", gate: "a" },
    "gate-configured": { type: "gate-configured", gate: "a" },
    "gate-in-use": { type: "gate-in-use", gate: "a", running: 1, queued: 0 },
    "schedule-unknown": { type: "schedule-unknown", schedule: "a" },
    "budget-exhausted": { type: "budget-exhausted", project: "a", limit: 1, used: 1 },
    "dependency-failed": { type: "dependency-failed", task: "a", dependency: "b", state: "failed" },
  };
  for (const refusal of Object.values(every)) {
    const { status, body, retryAfterS } = problemOf(refused(refusal));
    assert.ok(status >= 400 && status < 500, refusal.type);
    assert.ok(readShape(wireErrorSchema, body).ok, refusal.type);
    assert.equal(retryAfterS !== undefined, status === 429, refusal.type);
  }
});
