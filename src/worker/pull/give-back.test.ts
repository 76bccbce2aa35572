/**
 * Work that a session has fetched ahead: asked for, named, begun, or given back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, Joined, SyncAnswer, SyncBody } from "../../protocol/index.ts";
import { createLeaseCell } from "./messages.ts";
import * as pull from "./session.ts";

const one = (taskId: string): AttemptRef => ({ taskId, attempt: 1 });
const assigned = (taskId: string, more: object = {}) => ({
  ...{ taskId, attempt: 1, leaseUntil: "" },
  task: { taskId, state: "assigned" as const, attempt: 1, ...more },
});
const answer = (more: Partial<SyncAnswer>): SyncAnswer => ({
  ...{ assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: 10_000 },
  ...more,
});
const JOINED: Joined = { workerId: "ann", session: "s", leaseMs: 10_000, brief: true, ahead: true };
const names = (refs: readonly AttemptRef[] | undefined): string[] => (refs ?? []).map(({ taskId }) => taskId);

type Options = { slots?: number; aheadMax?: number; limit?: number; revoke?: (...places: number[]) => number };

function opened(options: Options = {}, joined: Joined = JOINED) {
  const session = pull.createPullSession({ slots: 2, aheadMax: 2, ...options });
  pull.join(session, joined, 0);
  const send = (now: number) => {
    const call = pull.compose(session, now, 0);
    return { n: call.n, body: JSON.parse(call.text) as SyncBody };
  };
  const exchange = (now: number, said: Partial<SyncAnswer> = {}) => {
    const { n, body } = send(now);
    return { body, heard: pull.hear(session, n, answer(said), now) };
  };
  const give = (now: number, ...ids: string[]) => exchange(now, { assignments: ids.map((id) => assigned(id)) });
  const end = (...ids: string[]): void => {
    for (const id of ids) {
      pull.began(session, one(id));
      pull.end(session, one(id), { outcome: "done" });
    }
  };
  /** Three syncs full of short tasks; the last is the first that wants some ahead. */
  const hurry = (now = 0): SyncBody => {
    for (let round = 0; round < 3; round++) {
      give(now, `x${round}`, `y${round}`);
      end(`x${round}`, `y${round}`);
    }
    return exchange(now).body;
  };
  return { session, send, exchange, give, end, hurry };
}

test("with short tasks it wants as many again beyond its slots, and says how many of those it wants are", () => {
  const { hurry, exchange, give } = opened();
  assert.deepEqual([exchange(0).body.want, exchange(0).body.ahead], [2, undefined]);
  const { want, ahead } = hurry();
  assert.deepEqual([want, ahead], [4, 2]);
  const idle = give(0, "a", "b", "c").body;
  assert.deepEqual([idle.want, idle.ahead], [2, undefined], "not while nothing is here");
  const { body } = exchange(1);
  assert.deepEqual([body.want, body.ahead, names(body.running)], [1, 2, ["a", "b", "c"]], "those beyond are named too");
});

for (const [why, options, joined] of [
  ["none are to be fetched", { aheadMax: 0 }, JOINED],
  ["its server gives none", {}, { ...JOINED, ahead: undefined } as unknown as Joined],
  ["it runs fewer than it has slots", { limit: 1 }, JOINED],
] as const)
  test(`it fetches nothing ahead where ${why}`, () => {
    const { hurry } = opened(options, joined);
    const { want, ahead } = hurry();
    assert.deepEqual([want, ahead], [options === undefined || !("limit" in options) ? 2 : 1, undefined]);
  });

test("once a task here has taken 50 ms the server hears at once that nothing is wanted ahead any more", () => {
  const { session, hurry, give, exchange, end } = opened();
  hurry();
  assert.equal(pull.endAheadAt(session), Number.POSITIVE_INFINITY, "nothing is here");
  give(100, "a", "b");
  pull.began(session, one("a"));
  end("b");
  give(110, "c");
  end("c");
  const { body } = exchange(120);
  assert.deepEqual([body.want, body.ahead], [3, 2]);
  assert.equal(pull.endAheadAt(session), 150);
  pull.endAhead(session, 149);
  assert.equal(pull.unsaid(session, 149), "nothing");
  pull.endAhead(session, 150);
  assert.deepEqual([pull.unsaid(session, 150), pull.endAheadAt(session)], ["urgent", Number.POSITIVE_INFINITY]);
  const said = exchange(150).body;
  assert.deepEqual([said.want, said.ahead, pull.unsaid(session, 150)], [1, undefined, "nothing"]);
});

test("what could give nothing ahead is not taken back in a hurry", () => {
  const { session, hurry, give, exchange } = opened();
  hurry();
  give(100, "a", "b", "c", "d");
  const { want, ahead } = exchange(101).body;
  assert.deepEqual([want, ahead], [0, 2]);
  pull.endAhead(session, 150);
  assert.equal(pull.unsaid(session, 150), "nothing");
});

test("who has given something back fetches nothing ahead for a while", () => {
  const { session, hurry, give, end, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  pull.end(session, one("c"), null);
  end("a", "b");
  exchange(151);
  assert.equal(hurry(1149).ahead, undefined);
  assert.equal(hurry(1150).ahead, 2);
});

test("what goes back because its worker takes no more is no reason for a rest", () => {
  const { session, hurry, give, end, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  pull.limit(session, 1, null);
  assert.deepEqual(names(pull.takeBack(session, 100)), ["a", "b", "c"].slice(1));
  for (const id of ["b", "c"]) pull.end(session, one(id), null);
  end("a");
  pull.limit(session, 2, null);
  exchange(101);
  assert.equal(hurry(102).ahead, 2);
});

test("what was not begun for 50 ms is asked of the handlers, once, and what they have not begun goes back", () => {
  const { session, hurry, give, exchange } = opened();
  hurry();
  give(100, "a", "b", "c", "d");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  assert.equal(pull.takeBackAt(session), 150);
  assert.deepEqual(pull.takeBack(session, 149), []);
  assert.deepEqual(pull.takeBack(session, 150), [one("c"), one("d")]);
  assert.deepEqual(pull.takeBack(session, 9999), []);
  // One of them was begun just before; of the other nobody knows yet.
  pull.began(session, one("c"));
  assert.deepEqual(names(exchange(151).body.running), ["a", "b", "c", "d"]);
  pull.end(session, one("d"), null);
  assert.equal(pull.unsaid(session, 152), "urgent");
  const { body } = exchange(152);
  assert.deepEqual([names(body.running), names(body.unbegun)], [["a", "b", "c"], ["d"]]);
  assert.deepEqual([body.want, body.ahead], [0, undefined], "and nothing more is fetched ahead");
  assert.deepEqual([pull.unsaid(session, 153), exchange(153).body.unbegun], ["nothing", undefined]);
});

test("where the handlers can be kept from it, it goes back at once, but for what they have begun by then", () => {
  const revoked: number[][] = [];
  let begunTo = 0;
  const revoke = (...places: number[]): number => {
    revoked.push(places);
    return begunTo;
  };
  const { session, hurry, give, exchange } = opened({ revoke });
  hurry();
  give(100, "a", "b", "c", "d");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  begunTo = session.handedOver - 1;
  assert.deepEqual(names(pull.takeBack(session, 150)), ["c", "d"], "the handlers forget them when they can");
  assert.deepEqual(revoked, [[session.handedOver - 2, session.handedOver]]);
  const { body } = exchange(150);
  assert.deepEqual([names(body.running), names(body.unbegun)], [["a", "b", "c"], ["d"]]);
  pull.end(session, one("d"), null);
  assert.equal(exchange(151).body.unbegun, undefined);
});

test("what went back while the handlers stood still is not begun later, though more went back meanwhile", () => {
  const cell = createLeaseCell();
  const { session, hurry, give, send, exchange } = opened({ revoke: cell.revoke });
  hurry();
  give(100, "a", "b", "c");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  cell.setBegun(session.handedOver - 1);
  const poll = send(101);
  assert.deepEqual(names(pull.takeBack(session, 150)), ["c"]);
  pull.hear(session, poll.n, answer({ assignments: [assigned("d")] }), 151);
  assert.deepEqual(names(pull.takeBack(session, 201)), ["d"]);
  const last = session.handedOver;
  assert.deepEqual([last - 2, last - 1, last].map(cell.isRevoked), [false, true, true]);
  assert.deepEqual(names(exchange(202).body.unbegun), ["c", "d"]);
});

test("what an answer gives that the server made up while it still knew of more room goes back too", () => {
  const { session, hurry, send, give } = opened();
  hurry();
  const early = send(99);
  give(100, "a", "b");
  const { n, body } = send(101);
  assert.equal(body.ahead, 2);
  pull.hear(session, n, answer({ assignments: [assigned("c")] }), 101);
  for (const id of ["a", "b"]) pull.began(session, one(id));
  assert.deepEqual(names(pull.takeBack(session, 151)), ["c"]);
  pull.hear(session, early.n, answer({}), 151);
  // The first sync that wants nothing ahead: by its answer the server has still given one.
  const first = send(151);
  assert.equal(first.body.ahead, undefined);
  pull.hear(session, first.n, answer({ assignments: [assigned("late")] }), 152);
  assert.equal(pull.takeBackAt(session), 202);
  const second = send(153);
  pull.hear(session, second.n, answer({ assignments: [assigned("queued")] }), 154);
  assert.deepEqual(names(pull.takeBack(session, 400)), ["late"], "and what comes later was not fetched ahead");
});

test("one that must be named is not handed over by the answer that took it, once it goes back", () => {
  const { session, hurry, send, exchange } = opened({ slots: 1, aheadMax: 1 });
  hurry();
  exchange(100, { assignments: [assigned("f", { onLoss: "fail" }), assigned("p")] });
  const naming = send(101);
  assert.deepEqual(names(naming.body.running), ["f", "p"]);
  pull.began(session, one("p"));
  // It has lost its slot, and was named all the same: where it is missing it would count as lost.
  assert.deepEqual(names(send(102).body.running), ["p", "f"]);
  assert.deepEqual(pull.takeBack(session, 151), []);
  assert.deepEqual(names(pull.hear(session, naming.n, answer({}), 152).start), []);
  assert.deepEqual(names(exchange(153).body.unbegun), ["f"]);
});

test("what was kept for this worker stays, however long it waits", () => {
  const { session, hurry, exchange } = opened();
  hurry();
  const given = ["a", "b", "c", "d"].map((id) => (id === "c" ? { ...assigned(id), goesOn: true } : assigned(id)));
  exchange(100, { assignments: given });
  for (const id of ["a", "b"]) pull.began(session, one(id));
  assert.deepEqual(names(pull.takeBack(session, 150)), ["d"]);
});

test("a worker that is to run fewer gives back at once what it would run beyond that", () => {
  const { session, hurry, give } = opened();
  hurry();
  give(100, "a", "b", "c");
  pull.began(session, one("a"));
  pull.limit(session, 1, "busy");
  assert.deepEqual(names(pull.takeBack(session, 100)), ["b", "c"]);
});

test("a worker that closes says what was never begun before it leaves, and sets no alarm for it", () => {
  const { session, hurry, give, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  pull.began(session, one("a"));
  pull.close(session);
  assert.equal(pull.takeBackAt(session), Number.POSITIVE_INFINITY);
  for (const id of ["b", "c"]) pull.end(session, one(id), null);
  pull.end(session, one("a"), { outcome: "done" });
  assert.deepEqual([pull.isIdle(session), pull.hasWord(session)], [true, true]);
  const { body } = exchange(101);
  assert.deepEqual([names(body.unbegun), names(body.results)], [["b", "c"], ["a"]]);
  assert.equal(pull.hasWord(session), false);
});

test("what goes back is said until an answer has come to a sync that said it", () => {
  const { session, hurry, give, send, exchange } = opened();
  hurry();
  give(100, "a", "b", "c", "d");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  pull.end(session, one("c"), null);
  const early = send(151);
  pull.end(session, one("d"), null);
  assert.equal(pull.unsaid(session, 151), "urgent");
  const lost = send(152);
  assert.deepEqual([names(early.body.unbegun), names(lost.body.unbegun)], [["c"], ["c", "d"]]);
  pull.hear(session, early.n, answer({}), 153);
  pull.fail(session, lost.n);
  assert.deepEqual(names(exchange(154).body.unbegun), ["d"]);
  assert.equal(exchange(155).body.unbegun, undefined);
});

test("what was given back is not taken on again from an answer that did not know of it yet", () => {
  const { session, hurry, give, send, exchange } = opened();
  hurry();
  const before = send(100);
  give(100, "a", "b", "c", "d");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  const mean = send(150);
  for (const id of ["c", "d"]) pull.end(session, one(id), null);
  const late = answer({ assignments: ["c", "d", "e"].map((id) => assigned(id)) });
  assert.deepEqual(names(pull.hear(session, before.n, late, 151).start), []);
  assert.deepEqual(names(pull.hear(session, mean.n, late, 151).start), ["e"]);
  assert.deepEqual(names(exchange(152).body.unbegun), ["c", "d"]);
});

test("a worker that drains keeps what has a slot, and asks at once for the rest", () => {
  const { session, hurry, give } = opened();
  hurry();
  give(100, "a", "b", "c", "d");
  pull.drain(session);
  assert.deepEqual(names(pull.takeBack(session, 100)), ["c", "d"]);
});

test("one that must be named before it is begun goes back without asking: no handler has heard of it", () => {
  const { session, hurry, exchange } = opened();
  hurry();
  exchange(100, { assignments: [assigned("a"), assigned("b"), assigned("c", { onLoss: "fail" })] });
  for (const id of ["a", "b"]) pull.began(session, one(id));
  assert.deepEqual(pull.takeBack(session, 150), []);
  const { running, unbegun } = exchange(151).body;
  assert.deepEqual([names(running), names(unbegun)], [["a", "b"], ["c"]]);
});

test("if the handlers cannot answer, what they were asked for is another's after a second", () => {
  const { session, hurry, give, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  pull.disownLate(session, 1099);
  assert.deepEqual(names(exchange(1099).body.running), ["a", "b", "c"]);
  pull.disownLate(session, 1100);
  const { running, unbegun } = exchange(1100).body;
  assert.deepEqual([names(running), names(unbegun)], [["a", "b"], ["c"]]);
});

test("a server that was replaced by an older one is not told of what it does not know", () => {
  for (const field of ["ahead", "unbegun[0].taskId"]) {
    const { session, hurry, send, exchange } = opened();
    hurry();
    pull.refuse(session, send(1).n, field, `${field} is not known`);
    const { want, ahead } = exchange(2).body;
    assert.deepEqual([want, ahead], [2, undefined], field);
  }
  const { session, hurry, give, send, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  pull.end(session, one("c"), null);
  pull.refuse(session, send(151).n, "unbegun", "unbegun is not known");
  const { unbegun, results } = exchange(152).body;
  assert.deepEqual(
    [unbegun, results?.map(({ taskId, outcome }) => [taskId, outcome])],
    [undefined, [["c", "requeue"]]],
  );
});
