import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, SyncAnswer, SyncBody, TaskView } from "../../protocol/index.ts";
import type { Report } from "./messages.ts";
import * as pull from "./session.ts";

const one = (taskId: string, attempt = 1): AttemptRef => ({ taskId, attempt });
const task = (taskId: string): TaskView => ({ taskId, state: "assigned", attempt: 1 });
const assigned = (taskId: string, attempt = 1) => ({ ...one(taskId, attempt), task: task(taskId), leaseUntil: "" });
const answer = (more: Partial<SyncAnswer> = {}): SyncAnswer => ({
  ...{ assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: 1000 },
  ...more,
});
const done: Report = { outcome: "done", result: "1" };
const JOINED = { workerId: "ann", session: "s1", leaseMs: 1000 };

function joined(slots = 2): pull.PullSession {
  const session = pull.createPullSession({ slots });
  pull.join(session, JOINED, 0);
  return session;
}

/** A sync, with its body read. */
function compose(session: pull.PullSession, now: number, waitMs: number) {
  const call = pull.compose(session, now, waitMs);
  return { ...call, body: JSON.parse(call.text) as SyncBody };
}

/** One sync that is answered at once. */
function exchange(session: pull.PullSession, said: Partial<SyncAnswer> = {}, now = 0) {
  const call = compose(session, now, 0);
  const heard = pull.hear(session, call.n, answer(said), now);
  return { body: call.body, heard: { ...heard, stop: [...heard.stop, ...pull.disownLate(session, now)] } };
}

/** Takes a task on and begins it. */
function run(session: pull.PullSession, ...ids: string[]): void {
  exchange(session, { assignments: ids.map((id) => assigned(id)) });
  for (const id of ids) pull.began(session, one(id));
}

test("it asks for its free slots, names what was begun, and reports what has ended", () => {
  const session = joined();
  const first = exchange(session, { assignments: [assigned("a"), assigned("b")] });
  assert.deepEqual([first.body.want, first.body.running, first.body.results], [2, [], undefined]);
  assert.deepEqual(
    first.heard.start.map(({ taskId }) => taskId),
    ["a", "b"],
  );
  pull.began(session, one("a"));
  const second = compose(session, 0, 0).body;
  assert.deepEqual([second.want, second.running], [0, [one("a"), one("b")]], "b will be begun in a moment");
  pull.end(session, one("a"), done);
  const third = compose(session, 0, 0).body;
  assert.deepEqual([third.want, third.running], [1, [one("b")]]);
  assert.deepEqual(third.results, [{ ...one("a"), outcome: "done", result: 1 }]);
});

test("a result is repeated until an answer lists it, accepted or not", () => {
  for (const accepted of [true, false]) {
    const session = joined();
    run(session, "a");
    pull.end(session, one("a"), done);
    pull.fail(session, compose(session, 0, 0).n);
    assert.equal(exchange(session).body.results?.length, 1);
    const listed = exchange(session, { results: [{ ...one("a"), accepted }] });
    assert.equal(listed.body.results?.length, 1);
    assert.equal(listed.heard.refused.length, accepted ? 0 : 1);
    assert.equal(compose(session, 0, 0).body.results, undefined);
    assert.equal(pull.isEmpty(session), true);
  }
});

test("that the result of what was cancelled does not count is no news", () => {
  const session = joined();
  run(session, "a", "b");
  exchange(session, { cancel: [one("a")] });
  for (const id of ["a", "b"]) pull.end(session, one(id), done);
  const results = ["a", "b"].map((id) => ({ ...one(id), accepted: false, code: "conflict" as const }));
  assert.deepEqual(
    exchange(session, { results }).heard.refused.map(({ taskId }) => taskId),
    ["b"],
  );
});

test("what is known is not begun again, be it running or ended and not answered", () => {
  const session = joined();
  run(session, "a", "b");
  pull.end(session, one("b"), done);
  const { heard } = exchange(session, { assignments: [assigned("a"), assigned("b"), assigned("a", 2)] });
  assert.deepEqual(
    heard.start.map(({ attempt, taskId }) => `${taskId}#${attempt}`),
    ["a#2"],
  );
});

test("an answer that was overtaken by a later one is not heard", () => {
  const session = joined();
  const [early, late] = [compose(session, 0, 0), compose(session, 0, 0)];
  assert.equal(pull.hear(session, late.n, answer(), 0).start.length, 0);
  assert.deepEqual(pull.hear(session, early.n, answer({ assignments: [assigned("a")] }), 0).start, []);
});

test("an answer that was overtaken by a later sync, but not by its answer, is heard", () => {
  const session = joined();
  const [early, late] = [compose(session, 0, 0), compose(session, 0, 0)];
  assert.equal(pull.hear(session, early.n, answer({ assignments: [assigned("a")] }), 0).start.length, 1);
  assert.equal(pull.hear(session, late.n, answer({ assignments: [assigned("a")] }), 0).start.length, 0);
});

test("the lease counts from when a sync was sent, and ends before the server's", () => {
  const session = joined();
  assert.equal(session.leaseEnd, 900);
  const { n } = compose(session, 400, 250);
  pull.hear(session, n, answer(), 650);
  assert.equal(session.leaseEnd, 1300);
});

test("an answer that lay about for a whole lease gives nothing to do", () => {
  const session = joined();
  const { n } = compose(session, 0, 0);
  assert.deepEqual(pull.hear(session, n, answer({ assignments: [assigned("a")] }), 900).start, []);
});

test("when the lease is over what runs is stopped and not named, but keeps its slot until it has ended", () => {
  const session = joined();
  run(session, "a");
  assert.deepEqual(pull.expire(session), [{ ...one("a"), cause: "lease-lost" }]);
  const { body } = exchange(session);
  assert.deepEqual([body.running, body.want], [[], 1]);
  assert.equal(pull.isAtWork(session), false);
  pull.end(session, one("a"), { outcome: "failed", error: "aborted" });
  assert.deepEqual([pull.isEmpty(session), pull.free(session, 0)], [true, 2], "that it was cut short is no failure");
});

test("an answer to a sync from before the lease was over gives nothing to do: it may have been taken back", () => {
  const session = joined();
  const [first, second] = [compose(session, 0, 0), compose(session, 100, 0)];
  pull.hear(session, first.n, answer({ assignments: [assigned("a")] }), 100);
  pull.began(session, one("a"));
  pull.expire(session);
  pull.end(session, one("a"), { outcome: "cancelled" });
  const third = compose(session, 950, 0);
  assert.deepEqual(third.body.running, [], "now the server gives it to another");
  assert.deepEqual(pull.hear(session, second.n, answer({ assignments: [assigned("a")] }), 960).start, []);
  assert.equal(pull.hear(session, third.n, answer({ assignments: [assigned("a", 2)] }), 970).start.length, 1);
});

test("what ended before the lease was over, or has a result all the same, is offered to the server", () => {
  const session = joined();
  run(session, "a", "b");
  pull.end(session, one("a"), { outcome: "failed", error: "no" });
  pull.expire(session);
  pull.end(session, one("b"), done);
  assert.deepEqual(
    compose(session, 0, 0).body.results?.map(({ outcome }) => outcome),
    ["failed", "done"],
  );
});

test("when the session is lost everything is stopped, and no result of it is said again", () => {
  const session = joined();
  run(session, "a", "b");
  pull.end(session, one("a"), done);
  const poll = compose(session, 0, 0);
  assert.deepEqual(pull.lose(session), [{ ...one("b"), cause: "session-lost" }]);
  pull.end(session, one("b"), done);
  assert.equal(pull.isEmpty(session), true);
  pull.join(session, { ...JOINED, session: "s2" }, 0);
  assert.deepEqual(pull.hear(session, poll.n, answer({ assignments: [assigned("c")] }), 0).start, [], "an old answer");
  const { session: id, results } = compose(session, 0, 0).body;
  assert.deepEqual([id, results], ["s2", undefined]);
});

test("one that is to be cancelled is told once, and confirmed as cancelled unless it was done", () => {
  const session = joined();
  run(session, "a", "b");
  const cancel = [one("a"), one("b"), one("nobody")];
  assert.deepEqual(exchange(session, { cancel }).heard.stop, [
    { ...one("a"), cause: "cancelled" },
    { ...one("b"), cause: "cancelled" },
  ]);
  const again = exchange(session, { cancel });
  assert.deepEqual([again.heard.stop, again.heard.isNew], [[], false]);
  assert.deepEqual(again.body.running, [one("a"), one("b")], "it is named until it has stopped");
  pull.end(session, one("a"), { outcome: "failed", error: "aborted", usage: { inputTokens: 1 } });
  pull.end(session, one("b"), done);
  assert.deepEqual(compose(session, 0, 0).body.results, [
    { ...one("a"), outcome: "cancelled", error: "aborted", usage: { inputTokens: 1 } },
    { ...one("b"), outcome: "done", result: 1 },
  ]);
});

test("what can wait and what cannot", () => {
  const session = joined();
  run(session, "a");
  assert.equal(pull.unsaid(session, 0), "mild", "that it was begun");
  compose(session, 0, 0);
  assert.equal(pull.unsaid(session, 0), "nothing");
  pull.tell(session, one("a"), { progress: '"half"' });
  assert.equal(pull.unsaid(session, 0), "mild");
  compose(session, 0, 0);
  pull.end(session, one("a"), done);
  assert.equal(pull.unsaid(session, 0), "urgent");
  compose(session, 0, 0);
  assert.equal(pull.unsaid(session, 0), "nothing");
  pull.drain(session);
  assert.equal(pull.unsaid(session, 0), "urgent");
});

test("a slot that is free without a result is said at once", () => {
  const session = joined(1);
  run(session, "a");
  pull.expire(session);
  compose(session, 0, 0);
  assert.equal(pull.unsaid(session, 0), "nothing");
  pull.end(session, one("a"), null);
  assert.equal(pull.unsaid(session, 0), "urgent");
});

test("while something handed out is not begun for a second, nothing more is asked for", () => {
  const session = joined(3);
  exchange(session, { assignments: [assigned("a")] });
  assert.equal(compose(session, 0, 0).body.want, 2);
  assert.equal(compose(session, 999, 0).body.want, 2);
  assert.equal(compose(session, 1000, 0).body.want, 0);
  pull.began(session, one("a"));
  assert.equal(pull.unsaid(session, 1000), "urgent", "there is room again");
  assert.equal(compose(session, 1000, 0).body.want, 2);
});

test("what the handlers have counted as begun is running, though no message has said so", () => {
  let begun = 0;
  const session = pull.createPullSession({ slots: 2, begunSoFar: () => begun });
  pull.join(session, JOINED, 0);
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  begun = 1;
  assert.deepEqual(exchange(session).body.running, [one("a"), one("b")]);
  const { heard } = exchange(session, {}, 1500);
  assert.deepEqual(heard.stop, [{ ...one("b"), cause: "not-begun" }], "a keeps its thread for itself, and b waits");
});

test("what waits because all slots are taken is not named, and may wait as long as it must", () => {
  const session = joined(1);
  run(session, "a");
  exchange(session, { assignments: [assigned("b")] });
  const late = exchange(session, { assignments: [assigned("b")] }, 5000);
  assert.deepEqual([late.body.running, late.heard.stop], [[one("a")], []]);
  pull.end(session, one("a"), done);
  assert.deepEqual(exchange(session, {}, 5000).body.running, [one("b")]);
  assert.deepEqual(exchange(session, {}, 6499).heard.stop, []);
});

test("what waits for one that was told to stop is named, and given back if that one does not end", () => {
  const session = joined(1);
  run(session, "a");
  exchange(session, { cancel: [one("a")] });
  // The server has given up on a, and takes its slot for free.
  exchange(session, { assignments: [assigned("b")] });
  assert.deepEqual(exchange(session, {}, 0).body.running, [one("a"), one("b")]);
  assert.deepEqual(exchange(session, {}, 1499).heard.stop, []);
  assert.deepEqual(exchange(session, {}, 1500).heard.stop, [{ ...one("b"), cause: "not-begun" }]);
  assert.deepEqual(compose(session, 1500, 0).body.running, [one("a")]);
});

test("what must not run twice is not named while one that was told to stop has its slot", () => {
  const session = joined(1);
  run(session, "a");
  exchange(session, { cancel: [one("a")] });
  exchange(session, { assignments: [once("b")] });
  assert.deepEqual(exchange(session, {}, 5000).body.running, [one("a")]);
});

test("progress is said once, the latest counts, and a lost sync says it again unless there is newer", () => {
  const session = joined();
  run(session, "a");
  pull.tell(session, one("a"), { progress: "1" });
  pull.tell(session, one("a"), { progress: "2", usage: { inputTokens: 5 } });
  const first = compose(session, 0, 0);
  assert.deepEqual(first.body.running, [{ ...one("a"), progress: 2, usage: { inputTokens: 5 } }]);
  assert.deepEqual(compose(session, 0, 0).body.running, [one("a")]);
  pull.tell(session, one("a"), { progress: "3" });
  pull.fail(session, first.n);
  assert.deepEqual(compose(session, 0, 0).body.running, [{ ...one("a"), progress: 3, usage: { inputTokens: 5 } }]);
});

test("a worker that drains says so, wants nothing, and still runs what it was given", () => {
  const session = joined();
  pull.drain(session);
  const { body, heard } = exchange(session, { assignments: [assigned("a")] });
  assert.deepEqual([body.status, body.want], ["draining", 0]);
  assert.equal(heard.start.length, 1);
});

test("a worker that closes takes nothing on, and keeps the name of what it gives back by leaving", () => {
  const session = joined();
  run(session, "a", "b");
  pull.close(session);
  assert.deepEqual(exchange(session, { assignments: [assigned("c")] }).heard.start, []);
  pull.end(session, one("a"), { outcome: "failed", error: "aborted" });
  pull.end(session, one("b"), { outcome: "failed", error: "bad input", permanent: true });
  const { running, results } = compose(session, 0, 0).body;
  assert.deepEqual(running, [one("a")]);
  assert.deepEqual(
    results?.map(({ taskId }) => taskId),
    ["b"],
  );
});

test("results that do not fit one body wait, and are named as running until they are said", () => {
  const ids = Array.from({ length: 6 }, (_, index) => `t${index}`);
  const session = joined(6);
  run(session, ...ids);
  const large: Report = { outcome: "done", result: JSON.stringify("x".repeat(250_000)) };
  for (const id of ids) pull.end(session, one(id), large);
  const said: string[] = [];
  for (let round = 0; round < 3; round++) {
    const call = compose(session, 0, 0);
    const { running = [], results = [] } = call.body;
    assert.ok(JSON.stringify(call.body).length < 1_000_000);
    assert.equal(running.length + results.length, ids.length - said.length, "each is one or the other");
    said.push(...results.map(({ taskId }) => taskId));
    pull.hear(session, call.n, answer({ results: results.map((result) => ({ ...result, accepted: true })) }), 0);
  }
  assert.deepEqual(said, ids);
  assert.equal(pull.isEmpty(session), true);
});

test("a worker that keeps logs says where in every sync, and hears which are wanted", () => {
  const session = pull.createPullSession({ slots: 1, logPlace: "here" });
  pull.join(session, JOINED, 0);
  const log = (id: string) => ({ id, ...one("a"), lines: 5, bytes: 100 });
  const first = exchange(session, { logs: [log("l1")] });
  assert.equal(first.body.logPlace, "here");
  assert.deepEqual(first.heard.wanted, { workerId: "ann", session: "s1", logs: [log("l1")] });
  assert.equal(first.heard.isNew, true);
  const again = exchange(session, { logs: [log("l1")] });
  assert.deepEqual([again.body.logPlace, again.heard.wanted?.logs.length], ["here", 1]);
  assert.equal(again.heard.isNew, false, "it is known already: no reason to ask again at once");
  assert.equal(exchange(session, { logs: [log("l1"), log("l2")] }).heard.isNew, true);
  assert.deepEqual([exchange(session).heard.wanted, exchange(session).heard.isNew], [null, false]);
});

test("a worker that keeps no logs says nothing of them, and is deaf to who wants one", () => {
  const { body, heard } = exchange(joined(), { logs: [{ id: "l", ...one("a"), lines: 5, bytes: 100 }] });
  assert.equal("logPlace" in body, false);
  assert.deepEqual([heard.wanted, heard.isNew], [null, false]);
});

test("a lease that was changed since it joined is the one that counts from its next answer on", () => {
  const session = joined();
  const hear = (now: number, leaseMs: number): void => {
    const { n } = compose(session, now, 0);
    pull.hear(session, n, answer({ leaseMs }), now);
  };
  hear(100, 5000);
  assert.deepEqual([session.leaseMs, session.leaseEnd], [5000, 4600]);
  hear(200, 1000);
  // What was granted is not taken back: the server counts on it as long.
  assert.deepEqual([session.leaseMs, session.leaseEnd], [1000, 4600]);
  hear(4000, 1000);
  assert.equal(session.leaseEnd, 4900);
});

const once = (taskId: string) => {
  const given = assigned(taskId);
  return { ...given, task: { ...given.task, onLoss: "fail" as const } };
};

test("what must not run twice is named first, and begun when the server has it as running", () => {
  const session = joined();
  const first = exchange(session, { assignments: [once("a"), assigned("b")] });
  assert.deepEqual(
    first.heard.start.map(({ taskId }) => taskId),
    ["b"],
  );
  assert.deepEqual([first.heard.isNew, pull.isNaming(session, 0)], [true, true]);
  const lost = compose(session, 0, 0);
  pull.fail(session, lost.n);
  const second = exchange(session);
  assert.deepEqual(second.body.running, [one("a"), one("b")]);
  assert.deepEqual(
    second.heard.start.map(({ taskId }) => taskId),
    ["a"],
    "the answer that was lost said nothing",
  );
  assert.deepEqual([pull.isNaming(session, 0), exchange(session).heard.start], [false, []], "handed over once");
});

test("one that waits for a slot is not named, so nobody holds it for begun", () => {
  const session = joined(1);
  run(session, "a");
  exchange(session, { assignments: [once("b")] });
  assert.deepEqual([pull.isNaming(session, 0), exchange(session).body.running], [false, [one("a")]]);
  pull.end(session, one("a"), done);
  const { body, heard } = exchange(session, { results: [{ ...one("a"), accepted: true }] });
  assert.deepEqual([body.running, heard.start.length], [[one("b")], 1]);
});

test("one that was never handed over is given back: cancelled if it was, else as it came", () => {
  const cancelled = joined();
  exchange(cancelled, { assignments: [once("a")] });
  const { heard } = exchange(cancelled, { cancel: [one("a")] });
  assert.deepEqual([heard.start, heard.stop], [[], []]);
  assert.deepEqual(compose(cancelled, 0, 0).body.results, [{ ...one("a"), outcome: "cancelled" }]);
  const closing = joined();
  exchange(closing, { assignments: [once("a")] });
  pull.close(closing);
  const error = "its worker closed before it was begun";
  assert.deepEqual(compose(closing, 0, 0).body.results, [{ ...one("a"), outcome: "requeue", error }]);
  const expired = joined();
  exchange(expired, { assignments: [once("a")] });
  assert.deepEqual([pull.expire(expired), pull.isEmpty(expired)], [[], true]);
});

test("with a limit it wants no more than that, says why, and says so at once", () => {
  const session = pull.createPullSession({ slots: 2, limit: 0 });
  pull.join(session, JOINED, 0);
  assert.deepEqual([exchange(session).body.want, pull.unsaid(session, 0)], [0, "nothing"]);
  pull.limit(session, 1, null);
  assert.equal(pull.unsaid(session, 0), "urgent");
  run(session, "a");
  pull.limit(session, 0, "3 worktrees of 3");
  assert.equal(pull.unsaid(session, 0), "urgent");
  pull.end(session, one("a"), done);
  const { body } = exchange(session, { results: [{ ...one("a"), accepted: true }] });
  assert.deepEqual([body.want, body.note, pull.unsaid(session, 0)], [0, "3 worktrees of 3", "nothing"]);
  pull.limit(session, 5, null);
  const { want, note } = compose(session, 0, 0).body;
  assert.deepEqual([want, note], [2, undefined]);
});

const BRIEF = { ...JOINED, brief: true } as const;

test("in brief what the answer does not name was taken, and what it names was heard too", () => {
  const session = joined();
  pull.join(session, BRIEF, 0);
  run(session, "a", "b");
  for (const id of ["a", "b"]) pull.end(session, one(id), done);
  const said = exchange(session, { results: [{ ...one("b"), accepted: false, code: "stale_attempt" }] });
  assert.deepEqual([said.body.brief, said.body.results?.length], [true, 2]);
  assert.deepEqual(said.heard.refused, [{ ...one("b"), accepted: false, code: "stale_attempt" }]);
  assert.equal(pull.isEmpty(session), true);
});

test("in brief a sync whose answer is lost takes nothing as said: results and names are said again", () => {
  const session = joined();
  pull.join(session, BRIEF, 0);
  run(session, "a", "b");
  exchange(session);
  pull.end(session, one("a"), done);
  pull.fail(session, compose(session, 0, 0).n);
  const { body } = compose(session, 0, 0);
  assert.deepEqual([body.results?.length, body.running], [1, [one("b")]]);
});

test("in brief what runs is not named again with results, if the last that was heard named the same", () => {
  const session = joined(3);
  pull.join(session, BRIEF, 0);
  run(session, "slow");
  exchange(session);
  exchange(session, { assignments: [assigned("quick")] });
  pull.began(session, one("quick"));
  pull.end(session, one("quick"), done);
  const { body } = exchange(session);
  assert.deepEqual(Object.keys(body), ["session", "n", "want", "waitMs", "brief", "results"]);
  assert.deepEqual(compose(session, 0, 0).body.running, [one("slow")], "a poll says all");
  pull.tell(session, one("slow"), { progress: "1" });
  pull.end(session, one("slow"), null);
  assert.deepEqual(compose(session, 0, 0).body.running, []);
});

test("a server that refuses brief syncs was replaced by an older one, and is asked as that", () => {
  const session = joined();
  pull.join(session, BRIEF, 0);
  run(session, "a");
  pull.end(session, one("a"), done);
  pull.refuse(session, compose(session, 0, 0).n, "brief", "unknown");
  const { body, heard } = exchange(session, { results: [] });
  assert.deepEqual([body.brief, body.running, body.results?.length, heard.isNew], [undefined, [], 1, false]);
  assert.equal(pull.hasResults(session), true, "it is not listed, so it is said again");
});

test("in brief a sync that has no room for all results is not held", () => {
  const session = joined();
  pull.join(session, BRIEF, 0);
  run(session, "a", "b");
  for (const id of ["a", "b"]) pull.end(session, one(id), { outcome: "done", result: `"${"x".repeat(600_000)}"` });
  const call = compose(session, 0, 1000);
  assert.deepEqual([call.body.results?.length, call.body.waitMs, call.isQuiet], [1, 0, false]);
  pull.hear(session, call.n, answer(), 0);
  assert.deepEqual([compose(session, 0, 1000).body.waitMs, compose(session, 0, 1000).isQuiet], [1000, true]);
});

const seen = (taskSeq: number) => ({ ...one("x"), taskSeq });
const givenAs = (taskSeq: number) => ({ ...assigned("x"), taskSeq });
const startsOf = ({ start }: ReturnType<typeof pull.hear>) => start.map(({ taskId }) => taskId);

/** The task x was given as that of event 4, and has begun. */
function atWorkOn(isBrief: boolean): pull.PullSession {
  const session = joined();
  pull.join(session, isBrief ? BRIEF : JOINED, 0);
  exchange(session, { assignments: [givenAs(4)] });
  pull.began(session, one("x"));
  return session;
}

for (const isBrief of [false, true]) {
  const manner = isBrief ? "in brief" : "in full";
  test(`${manner} a later task of the same id is begun, though the result of the earlier one was not answered`, () => {
    const session = atWorkOn(isBrief);
    assert.deepEqual(compose(session, 0, 0).body.running, [seen(4)]);
    pull.end(session, one("x"), done);
    const poll = compose(session, 0, 0);
    const late = compose(session, 0, 0);
    assert.deepEqual(late.body.results, [{ ...seen(4), outcome: "done", result: 1 }]);
    const again = pull.hear(session, poll.n, answer({ assignments: [givenAs(9)] }), 0);
    assert.deepEqual(again.start, [givenAs(9)]);
    pull.began(session, one("x"));
    pull.end(session, one("x"), { outcome: "done", result: "2" });
    // The answer to what was said of the earlier one says nothing of the later.
    const results = [{ ...seen(4), accepted: false, code: "not_found" }];
    assert.deepEqual(pull.hear(session, late.n, answer({ results }), 0).refused, []);
    const { body, heard } = exchange(session, { results: [{ ...seen(9), accepted: true }] });
    assert.deepEqual([body.results, heard.refused], [[{ ...seen(9), outcome: "done", result: 2 }], []]);
    assert.equal(pull.isEmpty(session), true);
  });

  test(`${manner} a later task of the same id waits until the handler of the earlier one has stopped`, () => {
    const session = atWorkOn(isBrief);
    const first = exchange(session, { assignments: [givenAs(9)], cancel: [seen(4)] });
    assert.deepEqual([first.heard.stop, first.heard.start], [[{ ...one("x"), cause: "cancelled" }], []]);
    pull.end(session, one("x"), { outcome: "failed", error: "stopped" });
    const results = [{ ...seen(4), accepted: false, code: "not_found" }];
    const { body, heard } = exchange(session, { results, assignments: [givenAs(9)] });
    assert.deepEqual(body.results, [{ ...seen(4), outcome: "cancelled", error: "stopped" }]);
    assert.deepEqual([heard.refused, startsOf(heard)], [results, ["x"]]);
    assert.deepEqual(exchange(session, { cancel: [seen(4)] }).heard.stop, [], "that one is over");
    assert.equal(exchange(session, { cancel: [seen(9)] }).heard.stop.length, 1);
  });
}

test("a server that does not know which task of an id is meant was replaced by an older one, and is not told", () => {
  const session = atWorkOn(true);
  pull.end(session, one("x"), done);
  pull.refuse(session, compose(session, 0, 0).n, "results[0].taskSeq", "unknown");
  const { body, heard } = exchange(session, { results: [{ ...one("x"), accepted: true, code: "duplicate" }] });
  assert.deepEqual([body.results, heard.isNew], [[{ ...one("x"), outcome: "done", result: 1 }], true]);
  assert.equal(pull.isEmpty(session), true);
});
