import assert from "node:assert/strict";
import { test } from "node:test";
import { join, kitWith, one, submit } from "../../../test/kits/hand-worker.ts";
import type { SyncBody } from "../../protocol/index.ts";

type Code = { readonly code: string };
const hasCode = (code: string) => (error: unknown) => (error as Code).code === code;

test("a task is assigned, named, finished, and its result is there", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t", { params: { x: 1 } });
  const first = await ann.sync();
  assert.equal(first.assignments.length, 1);
  assert.deepEqual(first.assignments[0]?.task.params, { x: 1 });
  assert.equal((await kit.drover.task("t")).state, "assigned");
  assert.deepEqual((await ann.sync({ running: [{ ...one("t"), progress: "half" }] })).assignments, []);
  const running = await kit.drover.task("t");
  assert.equal(running.state, "running");
  assert.equal(running.progress, "half");
  const last = await ann.sync({ results: [{ ...one("t"), outcome: "done", result: { ok: true } }] });
  assert.deepEqual(last.results, [{ ...one("t"), accepted: true }]);
  const done = await kit.drover.task("t");
  assert.deepEqual([done.state, done.result, done.progress], ["done", { ok: true }, undefined]);
  await kit.drover.close();
});

test("D1 an assignment whose answer was lost is said again until it is named", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  for (let times = 0; times < 3; times++) assert.equal((await ann.sync()).assignments[0]?.taskId, "t");
  await ann.sync({ running: [one("t")] });
  assert.deepEqual((await ann.sync()).assignments, []);
  await kit.drover.close();
});

test("a result is answered with the next task", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await submit(kit, "u");
  await ann.sync();
  const next = await ann.sync({ results: [{ ...one("t"), outcome: "done" }] });
  assert.equal(next.assignments[0]?.taskId, "u");
  await kit.drover.close();
});

test("a brief sync is held with its results; its answer names what was not simply taken", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 2 });
  for (const id of ["t", "u"]) await submit(kit, id);
  await ann.sync({ want: 2 });
  const results = ["t", "u", "nobody"].map((id) => ({ ...one(id), outcome: "done" as const }));
  const told = await ann.sync({ brief: true, waitMs: 5000, results });
  assert.deepEqual(told.results, [{ ...one("nobody"), accepted: false, code: "not_found" }], "it is said at once");
  const held = ann.sync({ brief: true, waitMs: 5000, results: [] });
  await submit(kit, "v");
  const { assignments, results: answers, leaseUntil } = await held;
  assert.deepEqual([assignments.length, assignments[0]?.leaseUntil, answers], [1, undefined, []]);
  assert.equal(typeof leaseUntil, "string");
  const last = ann.sync({ brief: true, waitMs: 5000, results: [{ ...one("v"), outcome: "done" }] });
  await kit.clock.advance(4999);
  assert.equal((await kit.drover.task("v")).state, "done", "what is said counts while it waits");
  const again = await ann.sync({ brief: true, results: [{ ...one("v"), outcome: "done" }] });
  assert.deepEqual(again.results, [{ ...one("v"), accepted: true, code: "duplicate" }]);
  assert.deepEqual((await last).results, [], "a newer one ends it");
  await kit.drover.close();
});

test("results of a worker that does not say brief are answered at once, and each is named", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  assert.equal(typeof (await ann.sync()).assignments[0]?.leaseUntil, "string");
  const { results } = await ann.sync({ waitMs: 5000, results: [{ ...one("t"), outcome: "done" }] });
  assert.deepEqual(results, [{ ...one("t"), accepted: true }]);
  await kit.drover.close();
});

test("a long poll ends when there is something to say", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  const poll = ann.sync({ waitMs: 30_000 });
  await kit.clock.advance(500);
  await submit(kit, "t");
  assert.equal((await poll).assignments[0]?.taskId, "t");
  const idle = ann.sync({ waitMs: 5000, running: [one("t")] });
  await kit.clock.advance(5000);
  assert.deepEqual((await idle).assignments, []);
  await kit.drover.close();
});

test("a newer sync ends an older poll, and an older one that comes late is refused", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  const poll = ann.sync({ waitMs: 30_000 });
  await ann.sync();
  assert.deepEqual((await poll).assignments, []);
  await assert.rejects(ann.sync({ n: 1 }), hasCode("stale_sync"));
  await kit.drover.close();
});

test("what follows from a newer sync is said in its own answer, not in that of the poll which it ends", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  for (const id of ["t", "u"]) await submit(kit, id);
  await ann.sync();
  const poll = ann.sync({ waitMs: 30_000, running: [one("t")] });
  const newer = ann.sync({ waitMs: 30_000, brief: true, results: [{ ...one("t"), outcome: "done" }] });
  assert.deepEqual((await poll).assignments, []);
  assert.equal((await newer).assignments[0]?.taskId, "u");
  await kit.drover.close();
});

test("a poll whose caller went away ends, and takes nothing with it", async () => {
  const kit = await kitWith();
  const { session, sync } = await join(kit);
  const gone = new AbortController();
  const poll = kit.drover.remote.sync("ann", { session, waitMs: 30_000 }, { signal: gone.signal });
  gone.abort(new Error("hung up"));
  await assert.rejects(poll, /hung up/);
  await submit(kit, "t");
  assert.equal((await sync()).assignments[0]?.taskId, "t");
  await kit.drover.close();
});

test("what was running and is no longer named is queued again at once", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  await ann.sync({ running: [], want: 0 });
  const task = await kit.drover.task("t");
  assert.deepEqual([task.state, task.attempt], ["queued", 1]);
  const again = await ann.sync({ running: [] });
  assert.deepEqual(again.assignments[0]?.attempt, 2);
  await kit.drover.close();
});

test("cancelling a running task reaches its worker, which confirms", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  const poll = ann.sync({ running: [one("t")], waitMs: 30_000 });
  await kit.drover.cancel("t");
  assert.deepEqual((await poll).cancel, [one("t")]);
  assert.equal(kit.drover.state.inFlight, 1);
  const confirmed = await ann.sync({ results: [{ ...one("t"), outcome: "cancelled" }] });
  assert.deepEqual(confirmed.results, [{ ...one("t"), accepted: true }]);
  assert.equal(kit.drover.state.inFlight, 0);
  await kit.drover.close();
});

test("a worker that is busy stopping is not told so in a tight loop", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  await kit.drover.cancel("t");
  assert.deepEqual((await ann.sync({ running: [one("t")], waitMs: 30_000 })).cancel, [one("t")]);
  let answered = false;
  const poll = ann.sync({ running: [one("t")], waitMs: 30_000 }).then((answer) => {
    answered = true;
    return answer;
  });
  await kit.clock.advance(900);
  assert.equal(answered, false);
  await kit.clock.advance(200);
  assert.deepEqual((await poll).cancel, [one("t")]);
  await kit.drover.close();
});

test("a result that comes twice counts once, and a worker that lies is not heard", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 2 });
  const bob = await kit.drover.remote.join({ id: "bob", capabilities: ["b"] });
  await submit(kit, "t");
  await submit(kit, "b", { capabilities: ["b"] });
  await ann.sync();
  const done = { ...one("t"), outcome: "done", result: 1 } as const;
  assert.deepEqual((await ann.sync({ results: [done] })).results, [{ ...one("t"), accepted: true }]);
  const rows = [
    [done, { accepted: true, code: "duplicate" }],
    [
      { ...done, result: 2 },
      { accepted: false, code: "stale_attempt" },
    ],
    [
      { ...done, attempt: 7 },
      { accepted: false, code: "stale_attempt" },
    ],
    [
      { ...done, taskId: "nobody" },
      { accepted: false, code: "not_found" },
    ],
    [
      { ...done, taskId: "b" },
      { accepted: false, code: "not_held" },
    ],
  ] as const;
  for (const [result, expected] of rows) {
    const { taskId, attempt } = result;
    assert.deepEqual((await ann.sync({ results: [result] })).results, [{ taskId, attempt, ...expected }]);
  }
  const drained = kit.drover.remote.drain("bob");
  await drained;
  const last = await kit.drover.remote.sync("bob", {
    session: bob.session,
    results: [{ ...one("b"), outcome: "done" }],
  });
  assert.deepEqual([last.results, last.drain], [[{ ...one("b"), accepted: true }], true]);
  await kit.drover.close();
});

test("a failure that was retried is known again when its report is repeated", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  const failed = { ...one("t"), outcome: "failed", error: "no" } as const;
  assert.equal((await ann.sync({ results: [failed] })).results[0]?.accepted, true);
  assert.deepEqual((await ann.sync({ results: [failed] })).results, [
    { ...one("t"), accepted: true, code: "duplicate" },
  ]);
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.close();
});

test("a result that is too large fails the task for good, and says so", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  const answer = await ann.sync({ results: [{ ...one("t"), outcome: "done", result: "x".repeat(300_000) }] });
  assert.equal(answer.results[0]?.code, "result_too_large");
  assert.match((await kit.drover.task("t")).error ?? "", /at most 262144/);
  await kit.drover.close();
});

test("joining again under the same id ends the former session, and what it held is lost", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  const again = await kit.drover.remote.join({ id: "ann" });
  await assert.rejects(ann.sync(), hasCode("session_lost"));
  const answer = await kit.drover.remote.sync("ann", { session: again.session });
  assert.equal(answer.assignments[0]?.attempt, 2);
  await kit.drover.close();
});

test("D5 a task that kills its worker is given up after maxLosses", async () => {
  const kit = await kitWith({ scheduler: { retry: { maxLosses: 3 } } });
  await submit(kit, "t");
  for (let life = 0; life < 3; life++) {
    const ann = await join(kit);
    await ann.sync();
    await ann.sync({ running: [one("t", life + 1)] });
  }
  await kit.drover.remote.join({ id: "ann" });
  const task = await kit.drover.task("t");
  assert.equal(task.state, "failed");
  assert.match(task.error ?? "", /lost-too-often/);
  await kit.drover.close();
});

test("want bounds what is assigned, and what it held before is given back with more", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 4 });
  await ann.sync({ want: 1 });
  for (const id of ["a", "b", "c"]) await submit(kit, id);
  assert.equal((await ann.sync({ want: 0 })).assignments.length, 1);
  const all = await ann.sync({ waitMs: 1000 });
  assert.equal(all.assignments.length >= 1, true);
  assert.equal((await ann.sync()).assignments.length, 3);
  await kit.drover.close();
});

test("a worker that leaves gives its tasks back at no cost", async () => {
  const kit = await kitWith({ scheduler: { retry: { maxLosses: 1 } } });
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  await kit.drover.remote.leave("ann");
  assert.equal((await kit.drover.task("t")).state, "queued");
  await assert.rejects(ann.sync(), hasCode("not_found"));
  await assert.rejects(kit.drover.remote.leave("ann"), hasCode("not_found"));
  await kit.drover.close();
});

test("a worker that was replaced leaves alone: its successor stays, and keeps what it runs", async () => {
  const kit = await kitWith();
  const first = await join(kit);
  const second = await join(kit);
  await submit(kit, "t");
  await second.sync();
  await second.sync({ running: [one("t")] });
  await assert.rejects(kit.drover.remote.leave("ann", { session: first.session }), hasCode("session_lost"));
  assert.equal((await kit.drover.task("t")).state, "running");
  const wrong = kit.drover.remote.leave("ann", { session: "" });
  await assert.rejects(wrong, {
    code: "bad_request",
    message: /^options\.session is "", and must be text of 1 to 256/,
  });
  await kit.drover.remote.leave("ann", { session: second.session });
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.close();
});

test("usage that a worker reports is booked, and stops what overruns its budget", async () => {
  const kit = await kitWith({ projects: { default: { budget: { limit: 1000 } } } });
  const ann = await join(kit);
  await submit(kit, "t", { estimatedTokens: 100 });
  await ann.sync();
  const usage = { inputTokens: 900, outputTokens: 200 };
  const answer = await ann.sync({ running: [{ ...one("t"), usage }] });
  assert.deepEqual(answer.cancel, [one("t")]);
  await kit.drover.close();
});

test("bad syncs name the field and change nothing", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  const bad: [object, string][] = [
    [{ want: -1 }, "want"],
    [{ waitMs: 60_001 }, "waitMs"],
    [{ status: "asleep" }, "status"],
    [{ running: [{ taskId: "t" }] }, "running[0].attempt"],
    [{ running: [{ taskId: "t", attempt: 1.5 }] }, "running[0].attempt"],
    [{ results: [{ taskId: "t", attempt: 1 }] }, "results[0].outcome"],
    [{ results: [{ taskId: "t", attempt: 1, outcome: "won" }] }, "results[0].outcome"],
    [{ results: {} }, "results"],
    [{ surprise: 1 }, "surprise"],
    [{ running: [{ taskId: "t", attempt: 1, usage: { tokens: 1 } }] }, "running[0].usage.tokens"],
    [{ running: [{ taskId: "t", attempt: 1, progress: "x".repeat(20_000) }] }, "running[0].progress"],
  ];
  for (const [body, field] of bad)
    await assert.rejects(ann.sync(body as SyncBody), (error: unknown) => {
      const { code, details } = error as { code: string; details: { field: string } };
      assert.deepEqual([code, details.field], ["bad_request", field]);
      return true;
    });
  for (const id of ["", "nobody", "with space"]) await assert.rejects(kit.drover.remote.sync(id, {}), /worker/);
  await assert.rejects(kit.drover.remote.join({ endpoint: "ftp://x" }), /endpoint/);
  await assert.rejects(kit.drover.remote.join({ path: "/x" }), /path/);
  assert.equal((await ann.sync()).assignments.length, 1);
  await kit.drover.close();
});

test("a poll may ask to wait longer than a lease: it is answered in time, and the worker is not given up", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  const poll = ann.sync({ waitMs: 60_000 });
  await kit.clock.advance(9000);
  assert.deepEqual((await poll).assignments, []);
  assert.equal((await kit.drover.workers())[0]?.status, "idle");
  await kit.drover.close();
});

test("a worker that comes back offers what it joined with, and has its hour anew when it is lost again", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 4 });
  await ann.sync({ want: 1 });
  await kit.clock.advance(10_000);
  await ann.sync();
  assert.equal((await kit.drover.workers())[0]?.slots, 4);
  await kit.clock.advance(3_599_000);
  assert.equal((await kit.drover.workers())[0]?.status, "unreachable");
  await ann.sync();
  await kit.clock.advance(3_000_000);
  assert.equal((await ann.sync()).leaseUntil, new Date(kit.clock.now() + 10_000).toISOString());
  await kit.drover.close();
});
