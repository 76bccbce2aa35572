/**
 * What another worker may have by now is begun here by nobody, though the handlers' loop goes on before it hears so.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, Joined, SyncAnswer, SyncBody } from "../../protocol/index.ts";
import { createLeaseCell } from "./messages.ts";
import * as pull from "./session.ts";

const LEASE_MS = 1000;
const one = (taskId: string): AttemptRef => ({ taskId, attempt: 1 });
const assigned = (taskId: string) => ({
  ...one(taskId),
  task: { ...one(taskId), state: "assigned" as const },
  leaseUntil: "",
});

/** One sync that is answered at once, and the look behind it. */
function exchange(session: pull.PullSession, said: Partial<SyncAnswer> = {}, now = 0) {
  const { n, text } = pull.compose(session, now, 0);
  const answer = { assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: LEASE_MS, ...said };
  const heard = pull.hear(session, n, answer, now);
  return {
    body: JSON.parse(text) as SyncBody,
    heard: { ...heard, stop: [...heard.stop, ...pull.disownLate(session, now)] },
  };
}

/** One beside handlers, with which it shares numbers. */
function besideHandlers(slots: number, joined: Partial<Joined> = {}) {
  const cell = createLeaseCell();
  const session = pull.createPullSession({ slots, begunSoFar: cell.begun, revoke: cell.revoke, disown: cell.disown });
  pull.join(session, { workerId: "ann", session: "s1", leaseMs: LEASE_MS, ...joined }, 0);
  return { cell, session, kept: (...places: number[]) => places.filter(cell.isDisowned) };
}

/** One that has begun a of a and b, and whose loop has stood still for more than a second since. */
function stoodStill(slots: number) {
  const beside = besideHandlers(slots, { ahead: true });
  exchange(beside.session, { assignments: [assigned("a"), assigned("b")] });
  beside.cell.setBegun(1);
  exchange(beside.session, {}, 1);
  exchange(beside.session, {}, 1001);
  return beside;
}

test("what is disowned is kept from the handlers before they hear of it", () => {
  const { session, kept } = besideHandlers(3);
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  exchange(session);
  assert.deepEqual(exchange(session, {}, 1499).heard.stop, []);
  assert.deepEqual(kept(1, 2), []);
  assert.deepEqual(exchange(session, {}, 1500).heard.stop.length, 2);
  assert.deepEqual(kept(1, 2, 3), [1, 2]);
});

test("what is not begun for one and a half leases, though there is a slot, is disowned and never begun", () => {
  const { session } = besideHandlers(3);
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  pull.began(session, one("b"));
  assert.deepEqual(exchange(session, {}, 1499).heard.stop, []);
  assert.deepEqual(exchange(session, {}, 1500).heard.stop, [{ ...one("a"), cause: "not-begun" }]);
  assert.deepEqual(exchange(session, {}, 1600).body.running, [one("b")]);
  pull.end(session, one("a"), { outcome: "cancelled" });
  assert.equal(exchange(session, {}, 1600).body.results, undefined, "it is not cancelled, only given back");
});

test("what the handlers begin while it is disowned stays theirs, and only the rest goes to another", () => {
  const { cell, session } = besideHandlers(3);
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  exchange(session);
  const disown = (last: number): number => {
    cell.setBegun(1);
    return cell.disown(last);
  };
  Object.assign(session, { disown });
  assert.deepEqual(exchange(session, {}, 1500).heard.stop, [{ ...one("b"), cause: "not-begun" }]);
  assert.deepEqual(exchange(session, {}, 1501).body.running, [one("a")]);
});

test("what came before one that was begun out of turn is disowned when that has had time to be told", () => {
  const { cell, session, kept } = besideHandlers(3);
  exchange(session, { assignments: ["a", "b", "c"].map((id) => assigned(id)) });
  exchange(session);
  cell.setBegunEarly(3);
  assert.deepEqual(exchange(session, {}, 1500).heard.stop, []);
  assert.deepEqual(kept(1, 2, 3), [1, 2, 3], "none of them is begun from now on");
  pull.began(session, one("c"));
  assert.deepEqual(exchange(session, {}, 2499).heard.stop, []);
  assert.deepEqual(
    exchange(session, {}, 2500).heard.stop.map(({ taskId }) => taskId),
    ["a", "b"],
  );
  assert.deepEqual(exchange(session, {}, 2501).body.running, [one("c")]);
});

test("when the lease is over or the session is lost, nothing that was handed over is begun any more", () => {
  for (const end of [pull.expire, pull.lose]) {
    const { session, kept } = besideHandlers(2);
    exchange(session, { assignments: [assigned("a"), assigned("b")] });
    assert.deepEqual(kept(1, 2), []);
    end(session);
    assert.deepEqual(kept(1, 2, 3), [1, 2], "and what comes later is");
  }
});

test("where the server knows of giving back, what is not begun in its slot for a second goes back at no cost", () => {
  const { cell, session, kept } = besideHandlers(4, { ahead: true });
  const unheard = { ...assigned("c"), task: { ...assigned("c").task, onLoss: "fail" as const } };
  exchange(session, { assignments: [assigned("a"), assigned("b"), unheard] });
  cell.setBegun(1);
  exchange(session, {}, 1);
  exchange(session, {}, 999);
  assert.equal(exchange(session, {}, 1000).body.unbegun, undefined);
  const { running, unbegun, want } = exchange(session, {}, 1000).body;
  assert.deepEqual([running, unbegun, want], [[one("a"), one("c")], [one("b")], 0]);
  assert.deepEqual(kept(2, 3), [2]);
  assert.equal(exchange(session, {}, 1001).body.unbegun, undefined);
  assert.deepEqual(exchange(session, {}, 1001).body.unbegun, [one("c")], "it was handed over later");
});

test("one that awaits being named waits for the server, and does not go back because that is slow", () => {
  const { session } = besideHandlers(2, { ahead: true });
  const unheard = { ...assigned("c"), task: { ...assigned("c").task, onLoss: "fail" as const } };
  exchange(session, { assignments: [unheard] });
  const { heard } = exchange(session, {}, 1499);
  assert.deepEqual(
    heard.start.map(({ taskId }) => taskId),
    ["c"],
  );
});

test("what came before one that was begun out of turn does not go back for a second, since it may have begun", () => {
  const { cell, session } = besideHandlers(3, { ahead: true });
  exchange(session, { assignments: [assigned("a"), assigned("b"), assigned("c")] });
  exchange(session, {}, 0);
  cell.setBegunEarly(2);
  const { heard } = exchange(session, {}, 1000);
  assert.deepEqual(heard.stop, []);
  const { unbegun, running } = exchange(session, {}, 1001).body;
  assert.deepEqual([running, unbegun], [[one("a"), one("b")], [one("c")]]);
});

test("what came before one that was begun out of turn is lost in time, and is never said not to have begun", () => {
  const { cell, session } = besideHandlers(3, { ahead: true });
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  cell.setBegunEarly(2);
  const after = [1000, 1499, 1500, 1501, 9000].map((at) => exchange(session, {}, at).body);
  assert.deepEqual(
    after.map(({ unbegun }) => unbegun),
    after.map(() => undefined),
  );
  pull.end(session, one("a"), null);
  assert.equal(exchange(session, {}, 9001).body.unbegun, undefined);
});

test("one whose handlers begin it while it is disowned does not say that its loop stands still", () => {
  const { cell, session } = besideHandlers(2, { ahead: true });
  exchange(session, { assignments: [assigned("a")] });
  exchange(session);
  const disown = (last: number): number => {
    cell.setBegun(1);
    return cell.disown(last);
  };
  Object.assign(session, { disown });
  exchange(session, {}, 1000);
  const { running, want, note } = exchange(session, {}, 1001).body;
  assert.deepEqual([running, want, note], [[one("a")], 1, undefined]);
});

test("a handler that keeps the event loop and reports progress does not say that the loop goes on", () => {
  const { session } = stoodStill(3);
  for (const at of [9000, 19_000, 29_000]) {
    pull.tell(session, one("a"), { progress: "1" });
    const { want, note } = exchange(session, {}, at).body;
    assert.deepEqual([want, note], [0, "its event loop stands still"]);
  }
});

test("a worker whose loop stood still asks for nothing until the handlers are heard of, and says why", () => {
  for (const isHeard of [
    (session: pull.PullSession) => pull.began(session, one("x")),
    (session: pull.PullSession) => pull.end(session, one("b"), null),
  ]) {
    const { session } = stoodStill(3);
    const { want, note } = exchange(session, {}, 9000).body;
    assert.deepEqual([want, note], [0, "its event loop stands still"]);
    isHeard(session);
    assert.equal(
      exchange(session, {}, 9001).body.note,
      "its event loop stood still: it takes fewer at once for a while",
    );
  }
});

test("a worker whose loop stood still asks for as many as it had begun, and for one more with each that ends", () => {
  const { session } = stoodStill(3);
  const wanted = (): number | undefined => exchange(session, {}, 9000).body.want;
  assert.equal(wanted(), 0, "it stands still");
  pull.end(session, one("b"), null);
  assert.equal(wanted(), 0, "it runs one, and had begun one");
  pull.end(session, one("a"), { outcome: "done" });
  assert.equal(wanted(), 2);
  exchange(session, { assignments: [assigned("d")] }, 9000);
  pull.end(session, one("d"), { outcome: "done" });
  assert.equal(wanted(), 3);
  exchange(session, { assignments: [assigned("e")] }, 9000);
  pull.end(session, one("e"), { outcome: "done" });
  assert.equal(wanted(), 3, "it has no more slots");
});

test("a loop that stood still and goes on is given twice as much every five seconds, whatever ends", () => {
  const { session } = stoodStill(8);
  const asked = (at: number) => exchange(session, {}, at).body;
  assert.equal(asked(9000).want, 0);
  pull.end(session, one("b"), null);
  // One runs, and so many more may.
  const more = [9001, 13_999, 14_000, 18_999, 19_000, 24_000].map((at) => asked(at).want);
  assert.deepEqual(more, [0, 0, 1, 1, 3, 7]);
  assert.equal(asked(24_001).note, undefined);
});

test("when the lease is over, what never began goes back when the server is there again", () => {
  const { cell, session } = besideHandlers(3, { ahead: true });
  exchange(session, { assignments: [assigned("a"), assigned("b"), assigned("c")] });
  cell.setBegunEarly(2);
  const stops = pull.expire(session);
  assert.deepEqual(
    stops.map(({ taskId }) => taskId),
    ["a", "b"],
    "they may have begun",
  );
  assert.deepEqual(exchange(session).body.unbegun, [one("c")]);
  assert.equal(exchange(session).body.unbegun, undefined, "once");
});

/** One whose lease was over while it ran a task, and that was given it again before its handler had stopped. */
function givenAgain() {
  const beside = besideHandlers(4, { ahead: true });
  exchange(beside.session, { assignments: [assigned("a")] });
  beside.cell.setBegun(1);
  pull.expire(beside.session);
  exchange(beside.session, { assignments: [{ ...assigned("a"), attempt: 2 }] }, 500);
  return { ...beside, again: { taskId: "a", attempt: 2 } };
}

test("a task that waits until its earlier attempt has stopped does not say that the loop stands still", () => {
  const { session, again } = givenAgain();
  exchange(session, {}, 1500);
  const { running, want, note } = exchange(session, {}, 1501).body;
  assert.deepEqual([running, want, note], [[again], 2, undefined]);
  pull.end(session, one("a"), null);
  exchange(session, {}, 1503);
  exchange(session, {}, 2502);
  assert.deepEqual(exchange(session, {}, 2503).body.note, undefined, "a second counts from when that has stopped");
  assert.deepEqual(exchange(session, {}, 2503).body.unbegun, [again]);
});

test("a task whose earlier attempt does not stop goes back after one and a half leases", () => {
  const { session, again } = givenAgain();
  exchange(session, {}, 1999);
  assert.equal(exchange(session, {}, 2000).body.unbegun, undefined);
  const { unbegun, want, note } = exchange(session, {}, 2000).body;
  assert.deepEqual([unbegun, want, note], [[again], 3, undefined]);
});

test("a worker that only waited for the server does not wait for its handlers to be heard of", () => {
  const { session } = besideHandlers(4, { ahead: true });
  const unheard = { ...assigned("c"), task: { ...assigned("c").task, onLoss: "fail" as const } };
  exchange(session, { assignments: [unheard] });
  pull.disownLate(session, 1500);
  const { want, unbegun } = exchange(session, {}, 1500).body;
  assert.deepEqual([want, unbegun], [4, [one("c")]]);
});

test("what was cancelled before it was begun is named until the handlers say so, and goes back then", () => {
  const { session } = besideHandlers(2, { ahead: true });
  exchange(session, { assignments: [assigned("a"), assigned("b")] });
  exchange(session);
  const { heard } = exchange(session, { cancel: [one("b")] });
  assert.deepEqual(heard.stop, [{ ...one("b"), cause: "cancelled" }]);
  assert.deepEqual(exchange(session).body.running, [one("a"), one("b")]);
  pull.end(session, one("b"), null);
  const { running, unbegun } = exchange(session).body;
  assert.deepEqual([running, unbegun], [[one("a")], [one("b")]]);
});

test("an answer that was held counts from when the server renewed the lease, and never from later than now", () => {
  for (const [heldMs, leaseEnd] of [
    [250, 1250],
    [500, 1500],
    [9000, 1500],
  ] as const) {
    const { session } = besideHandlers(2);
    const { n } = pull.compose(session, 100, 500);
    pull.hear(session, n, { assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: LEASE_MS, heldMs }, 600);
    assert.equal(session.leaseEnd, leaseEnd);
  }
});
