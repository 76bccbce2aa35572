import assert from "node:assert/strict";
import { test } from "node:test";
import {
  answer as answerFor,
  done as doneOf,
  joined as joinedAs,
  kit,
  refusal,
  workingKit,
} from "../../../test/kits/pull-connection.ts";
import type { AttemptRef, SyncAnswer, SyncBody, TaskView } from "../../protocol/index.ts";
import type { Report } from "./messages.ts";
import * as pull from "./session.ts";

const one = (taskId: string): AttemptRef => ({ taskId, attempt: 1 });
const task = (taskId: string): TaskView => ({ taskId, state: "assigned", attempt: 1 });
const assigned = (taskId: string) => ({ ...one(taskId), task: task(taskId), leaseUntil: "" });
const answer = (more: Partial<SyncAnswer> = {}): SyncAnswer => ({
  ...{ assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: 1000 },
  ...more,
});
const done: Report = { outcome: "done", result: "1" };

/** A worker that runs these tasks, with its syncs one after the other. */
function running(...ids: string[]) {
  const session = pull.createPullSession({ slots: ids.length });
  pull.join(session, { workerId: "ann", session: "s1", leaseMs: 1000 }, 0);
  const compose = () => {
    const call = pull.compose(session, 0, 100);
    return { ...call, body: JSON.parse(call.text) as SyncBody };
  };
  /** The next one is heard; answers what it said. */
  const heard = (more: Partial<SyncAnswer> = {}): Said & { readonly start: readonly string[] } => {
    const { n, body } = compose();
    const results = (body.results ?? []).map(({ taskId, attempt }) => ({ taskId, attempt, accepted: true }));
    const { start } = pull.hear(session, n, answer({ results, ...more }), 0);
    return { ...saidIn(body), start: start.map(({ taskId }) => taskId) };
  };
  /** The next one is refused; answers what it said. */
  const refused = (field: string | null = null): Said => {
    const { n, body } = compose();
    pull.refuse(session, n, field, "it is odd");
    return saidIn(body);
  };
  heard({ assignments: ids.map(assigned) });
  for (const id of ids) pull.began(session, one(id));
  const end = (...over: string[]): void => {
    for (const id of over) pull.end(session, one(id), done);
  };
  return { session, compose, heard, refused, end };
}

type Said = { readonly named: readonly string[]; readonly results: readonly string[] };
const saidIn = ({ running: named = [], results = [] }: SyncBody): Said => ({
  named: named.map(({ taskId }) => taskId),
  results: results.map(({ taskId, outcome }) => `${taskId} ${outcome}`),
});
const said = (named: readonly string[], results: readonly string[]): Said => ({ named, results });

test("a result that the server names as unreadable is replaced by a failure that says why; the others stay", () => {
  const { compose, heard, refused, end } = running("a", "b", "c");
  end("a", "b", "c");
  refused("results[1].result");
  const { body } = compose();
  assert.partialDeepStrictEqual(body.results?.[1], { ...one("b"), outcome: "failed", error: "it is odd" });
  assert.equal(body.results?.[1]?.permanent, true);
  assert.deepEqual(heard().results, ["a done", "b failed", "c done"]);
});

test("one whose failure is refused too is named until that was heard, not begun again, and then named no more", () => {
  const { session, heard, refused, end } = running("a", "b");
  end("a", "b");
  refused("results[0].result");
  refused("results[0].error");
  const again = { assignments: [assigned("a")] };
  pull.fail(session, pull.compose(session, 0, 0).n);
  assert.equal(pull.isEmpty(session), false);
  assert.deepEqual(heard(again), { ...said(["a"], ["b done"]), start: [] });
  assert.deepEqual(saidIn(JSON.parse(pull.compose(session, 0, 0).text)), said([], []));
  assert.equal(pull.isEmpty(session), true);
});

test("what is given up was said when a sync has named it, and needs none beside that one", () => {
  const { session, compose, refused, end } = running("a");
  end("a");
  refused("results[0].result");
  refused("results[0].error");
  assert.equal(pull.unsaid(session, 0), "urgent");
  compose();
  assert.equal(pull.unsaid(session, 0), "nothing");
});

test("one that is given up stays so when an answer comes to a sync that did not name it", () => {
  const { session, compose, heard, refused, end } = running("a");
  end("a");
  refused("results[0].result");
  const early = compose();
  refused("results[0].error");
  assert.equal(pull.hear(session, early.n, answer({ assignments: [assigned("a")] }), 0).start.length, 0);
  assert.deepEqual(heard({ assignments: [assigned("a")] }), { ...said(["a"], []), start: [] });
  assert.equal(pull.isEmpty(session), true);
});

test("a refusal that names nothing and passes costs no result, however long it lasts", () => {
  for (let times = 1; times < 10; times++) {
    const { heard, refused, end } = running("a", "b");
    end("a", "b");
    assert.deepEqual(refused(), said([], ["a done", "b done"]));
    for (let more = 1; more < times; more++) assert.deepEqual(refused(), said(["a", "b"], []));
    assert.deepEqual(heard(), { ...said(["a", "b"], []), start: [] });
    assert.deepEqual(heard().results, ["a done"]);
    assert.deepEqual(heard(), { ...said([], ["b done"]), start: [] });
  }
});

test("only a result that was refused alone, when syncs were taken again, is replaced; and one after the other", () => {
  const { session, heard, refused, end } = running("a", "b");
  end("a", "b");
  refused();
  heard();
  assert.deepEqual(refused(), said(["b"], ["a done"]));
  assert.deepEqual(heard(), { ...said(["a", "b"], []), start: [] });
  assert.deepEqual(heard().results, ["a failed"]);
  assert.deepEqual(refused().results, ["b done"]);
  assert.equal(heard().results.length, 0);
  assert.deepEqual(heard().results, ["b done"]);
  assert.equal(pull.isEmpty(session), true);
});

test("a server that takes no result at all begins none a second time, and each is lost within a few syncs", () => {
  const { session, heard, refused, end } = running("a");
  end("a");
  const results: string[] = [];
  for (let syncs = 0; syncs < 20 && pull.hasResults(session); syncs++)
    if (session.share !== "names") results.push(...refused().results);
    else assert.deepEqual(heard({ assignments: [assigned("a")] }), { ...said(["a"], []), start: [] });
  assert.deepEqual(results, ["a done", "a done", "a failed"]);
  assert.deepEqual(heard().named, []);
});

test("while nothing but names is said the server does not hold it, and nothing else goes beside it", () => {
  const { compose, refused, heard, end } = running("a");
  assert.deepEqual([compose().waitMs, compose().isQuiet], [100, true]);
  end("a");
  refused();
  assert.deepEqual([compose().waitMs, compose().isQuiet], [0, false]);
  heard();
  assert.deepEqual([compose().waitMs, compose().isQuiet], [0, false]);
});

test("news that the server will not read is dropped", () => {
  const { session, compose, refused } = running("a");
  pull.tell(session, one("a"), { progress: '"odd"' });
  refused("running[0].progress");
  assert.deepEqual(compose().body.running, [one("a")]);
  refused();
  assert.deepEqual(compose().body.running, [one("a")], "what runs is named all the same");
});

test("a refusal is told, and the result that it names does not hold up the rest", async () => {
  const { last, receive, advance, toldOf } = await workingKit(["a", "b"]);
  await receive(doneOf("a"), doneOf("b"));
  await last("sync").refuse(refusal("bad_request", { details: { field: "results[0].result" } }));
  assert.match(toldOf("warning")[0]?.message ?? "", /refused/);
  await advance(100);
  assert.deepEqual(saidIn(last("sync").body).results, ["a failed", "b done"]);
});

const passing: readonly [claim: string, error: Error][] = [
  ["408 in the server's words", refusal("bad_request", { status: 408 })],
  ["431 in the server's words", refusal("bad_request", { status: 431 })],
  ["415 in the server's words", refusal("unsupported_media_type")],
  ["a foreign 408", refusal("timeout", { status: 408, isForeign: true })],
  ["a foreign 400", refusal("bad_request", { isForeign: true })],
  ["a foreign 413", refusal("too_large", { isForeign: true })],
  ["a foreign 415", refusal("unsupported_media_type", { isForeign: true })],
  ["a foreign 404", refusal("not_found", { isForeign: true })],
];
for (const [claim, error] of passing)
  test(`${claim} is a server that is away: a sync is repeated as it was, with rests that grow`, async () => {
    const { calls, last, receive, advance, toldOf } = await workingKit();
    await receive(doneOf("a"));
    const { body } = last("sync");
    const at: number[] = [];
    for (let times = 0; times < 4; times++) {
      await last("sync").refuse(error);
      const before = calls.length;
      for (let ms = 0; calls.length === before && ms < 2000; ms += 50) await advance(50);
      at.push(last("sync").at);
      assert.deepEqual({ ...last("sync").body, n: 0, waitMs: 0 }, { ...body, n: 0, waitMs: 0 });
    }
    assert.deepEqual(
      at.slice(1).map((time, index) => time - (at[index] as number)),
      [200, 400, 800],
    );
    await last("sync").answer(answerFor({ results: [{ ...one("a"), accepted: true }] }));
    assert.deepEqual([last("sync").body.results, toldOf("stop"), toldOf("failed")], [undefined, [], []]);
  });

test("refused whenever it brings a result, a worker rests longer each time, though what is less is heard", async () => {
  const { calls, last, receive, advance } = await workingKit();
  await receive(doneOf("a"));
  const at: number[] = [];
  for (let times = 0; times < 3; times++) {
    at.push(last("sync").at);
    await last("sync").refuse(refusal("bad_request"));
    const before = calls.length;
    for (let ms = 0; calls.length === before && ms < 2000; ms += 50) await advance(50);
    assert.deepEqual(saidIn(last("sync").body), said(["a"], []));
    await last("sync").answer(answerFor());
    if (times < 2) assert.equal(last("sync").body.results?.length, 1);
  }
  assert.deepEqual(
    at.slice(1).map((time, index) => time - (at[index] as number)),
    [100, 200],
  );
});

test("a later join that something on the way refuses is made again; at the first the address is wrong", async () => {
  for (const code of ["bad_request", "conflict", "too_large", "not_found"]) {
    const { last, toldOf, advance } = await kit();
    await last("join").answer(joinedAs);
    await last("sync").refuse(refusal("not_found"));
    await advance(100);
    await last("join").refuse(refusal(code, { isForeign: true }));
    assert.deepEqual(toldOf("failed"), [], code);
    await advance(1000);
    await last("join").answer(joinedAs);
    assert.equal(last("sync").kind, "sync");
  }
  const { last, toldOf } = await kit();
  await last("join").refuse(refusal("bad_request", { isForeign: true }));
  assert.equal(toldOf("failed").length, 1, "at the first the address is wrong");
});
