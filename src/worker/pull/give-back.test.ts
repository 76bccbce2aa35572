/**
 * Work that a session has fetched ahead: asked for, named, begun, or given back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, Joined, SyncAnswer, SyncBody } from "../../protocol/index.ts";
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

function opened(options: { slots?: number; aheadMax?: number; limit?: number } = {}, joined: Joined = JOINED) {
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
  /** Three syncs full of short tasks. */
  const hurry = (now = 0): void => {
    for (let round = 0; round < 3; round++) {
      give(now, `x${round}`, `y${round}`);
      end(`x${round}`, `y${round}`);
    }
    exchange(now);
  };
  return { session, send, exchange, give, end, hurry };
}

test("with short tasks it wants as many again beyond its slots, and says how many of those it wants are", () => {
  const { hurry, exchange, give } = opened();
  assert.deepEqual([exchange(0).body.want, exchange(0).body.ahead], [2, undefined]);
  hurry();
  const { want, ahead } = give(0, "a", "b", "c").body;
  assert.deepEqual([want, ahead], [4, 2]);
  const { body } = exchange(1);
  assert.deepEqual([body.want, body.ahead, names(body.running)], [1, 2, ["a", "b", "c"]], "those beyond are named too");
});

for (const [why, options, joined] of [
  ["none are to be fetched", { aheadMax: 0 }, JOINED],
  ["its server gives none", {}, { ...JOINED, ahead: undefined } as unknown as Joined],
  ["it runs fewer than it has slots", { limit: 1 }, JOINED],
] as const)
  test(`it fetches nothing ahead where ${why}`, () => {
    const { hurry, exchange } = opened(options, joined);
    hurry();
    const { want, ahead } = exchange(0).body;
    assert.deepEqual([want, ahead], [options === undefined || !("limit" in options) ? 2 : 1, undefined]);
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

test("if the handlers cannot answer, what they were asked for is another's after one and a half leases", () => {
  const { session, hurry, give, exchange } = opened();
  hurry();
  give(100, "a", "b", "c");
  for (const id of ["a", "b"]) pull.began(session, one(id));
  pull.takeBack(session, 150);
  assert.deepEqual(names(exchange(9000).body.running), ["a", "b", "c"]);
  assert.deepEqual(names(exchange(15_099).heard.stop), []);
  assert.deepEqual(exchange(15_100).heard.stop, [{ ...one("c"), cause: "not-begun" }]);
  assert.deepEqual(names(exchange(15_101).body.running), ["a", "b"]);
});

test("a server that was replaced by an older one is not told of what it does not know", () => {
  for (const field of ["ahead", "unbegun[0].taskId"]) {
    const { session, hurry, send, exchange } = opened();
    hurry();
    pull.refuse(session, send(1).n, field, `${field} is not known`);
    const { want, ahead } = exchange(2).body;
    assert.deepEqual([want, ahead], [2, undefined], field);
  }
});
