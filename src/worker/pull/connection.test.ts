import assert from "node:assert/strict";
import { test } from "node:test";
import {
  answer,
  assigned,
  done,
  joined,
  joinedKit,
  type Kit,
  kit,
  LEASE_MS,
  one,
  refusal,
  workingKit,
} from "../../../test/kits/pull-connection.ts";

test("it joins, and keeps one poll open that the server may hold for a quarter of a lease", async () => {
  const { calls, last, toldOf, advance } = await joinedKit();
  assert.deepEqual(toldOf("joined"), [
    { type: "joined", workerId: "ann", session: "s1", leaseMs: LEASE_MS, maxWorktrees: 50, tokenKey: null },
  ]);
  assert.deepEqual(last("sync").body, { session: "s1", n: 1, want: 2, waitMs: 2500, running: [] });
  await advance(2500);
  assert.equal(calls.length, 2);
  await last("sync").answer(answer());
  assert.equal(calls.length, 3);
  assert.deepEqual([last("sync").at, last("sync").body.n], [2500, 2]);
});

test("a lease that was changed sets the pace from the next poll on", async () => {
  const { last, advance } = await joinedKit();
  assert.equal(last("sync").body.waitMs, LEASE_MS / 4);
  await advance(LEASE_MS / 4);
  await last("sync").answer(answer({ leaseMs: 2 * LEASE_MS }));
  assert.equal(last("sync").body.waitMs, LEASE_MS / 2);
});

test("limits that the server changes are told once; one that does not say them has not changed them", async () => {
  const { last, toldOf, advance } = await joinedKit();
  const longer = { maxWorktrees: 60, leaseMs: 2 * LEASE_MS };
  const moved = { ...longer, tokenKey: "moved" };
  for (const said of [{}, { maxWorktrees: 50 }, { maxWorktrees: 60 }, {}, longer, moved, moved]) {
    await last("sync").answer(answer(said));
    await advance(500);
  }
  assert.deepEqual(toldOf("terms"), [
    { type: "terms", leaseMs: LEASE_MS, maxWorktrees: 60, tokenKey: null },
    { type: "terms", leaseMs: 2 * LEASE_MS, maxWorktrees: 60, tokenKey: null },
    { type: "terms", leaseMs: 2 * LEASE_MS, maxWorktrees: 60, tokenKey: "moved" },
  ]);
});

test("an answer whose tasks are read here and cannot be is told, and they are given back with that", async () => {
  const { last, toldOf } = await kit();
  await last("join").answer({ ...joined, brief: true, tokenKey: "k" });
  const name = { ...one("a"), taskSeq: 1, onLoss: "fail" };
  await last("sync").answer({
    ...answer(),
    assignments: [name],
    unread: { named: JSON.stringify([name]), tasks: "[{" },
  });
  assert.deepEqual(toldOf("start"), []);
  assert.match(toldOf("warning").at(-1)?.message ?? "", /^an answer of the server cannot be read: .*JSON/);
  assert.deepEqual(last("sync").body.results?.[0]?.outcome, "requeue");
});

test("what is not begun within a second goes back at once, beside the poll that is open", async () => {
  const { last, cell, advance } = await kit();
  await last("join").answer({ ...joined, ahead: true });
  await last("sync").answer(answer({ assignments: [assigned("a"), assigned("b")] }));
  cell.setBegun(1);
  await advance(999);
  assert.deepEqual([last("sync").body.unbegun, last("sync").body.waitMs], [undefined, 2500]);
  await advance(1);
  const { at, body } = last("sync");
  assert.deepEqual([at, body.unbegun, body.running, body.want], [1000, [one("b")], [one("a")], 0]);
});

test("a result goes out at once, beside the poll that is open, and what ends meanwhile goes together", async () => {
  const { calls, last, receive } = await workingKit(["a", "b"]);
  const before = calls.length;
  await receive(done("a"));
  const first = last("sync");
  assert.equal(calls.length, before + 1);
  assert.deepEqual([first.body.results?.length, first.body.running, first.body.want], [1, [one("b")], 1]);
  await receive(done("b"));
  assert.equal(calls.length, before + 1, "one with results is under way");
  await first.answer(answer({ results: [{ ...one("a"), accepted: true }] }));
  assert.deepEqual(
    last("sync").body.results?.map(({ taskId }) => taskId),
    ["b"],
  );
});

test("a result waits a millisecond for those of tasks that were given just before, if there are any", async () => {
  const { calls, last, receive, advance } = await joinedKit();
  await last("sync").answer(answer({ assignments: [assigned("a"), assigned("b")] }));
  const before = calls.length;
  await receive(done("a"));
  assert.equal(calls.length, before);
  await advance(1);
  assert.deepEqual([calls.length, last("sync").body.results?.length], [before + 1, 1]);
  await last("sync").answer(answer({ results: [{ ...one("a"), accepted: true }] }));
  await receive(done("b"));
  assert.deepEqual(last("sync").body.results?.length, 1, "nothing else is under way");
});

test("what was urgent and is taken back before it is said does not ring again and again", async () => {
  const { last, receive, advance, toldOf } = await joinedKit({ limit: 1 });
  await last("sync").answer(answer({ assignments: [assigned("a")] }));
  for (const count of [2, 1]) await receive({ type: "limit", count, note: null });
  await advance(2);
  assert.deepEqual(toldOf("failed"), []);
});

test("after something was given more is asked for a moment later, mostly with a result to tell", async () => {
  const { calls, last, receive, advance } = await joinedKit();
  await last("sync").answer(answer({ assignments: [assigned("a")] }));
  const before = calls.length;
  await advance(2);
  assert.equal(calls.length, before);
  await advance(1);
  assert.deepEqual([calls.length, last("sync").body.want, last("sync").body.running], [before + 1, 1, [one("a")]]);
  await receive(done("a"));
  assert.equal(last("sync").body.results?.length, 1);
});

test("in brief the sync of the last result is the next poll too, and is answered at once when it leaves", async () => {
  const { calls, last, receive, told } = await kit();
  await last("join").answer({ ...joined, brief: true });
  await last("sync").answer(answer({ assignments: ["a", "b"].map(assigned) }));
  await receive(done("a"), done("b"));
  const before = calls.length;
  assert.deepEqual([last("sync").body.waitMs, last("sync").body.results?.length], [2500, 2]);
  await receive({ type: "closing" }, { type: "leave" });
  assert.equal(calls.length, before + 1);
  assert.deepEqual([last("sync").body.waitMs, last("sync").body.results?.length], [0, 2]);
  await last("sync").answer(answer());
  await last("leave").answer();
  assert.deepEqual(told.at(-1), { type: "left" });
});

test("in brief a result is answered at once while something else runs", async () => {
  const { last, receive, advance } = await kit();
  await last("join").answer({ ...joined, brief: true });
  await last("sync").answer(answer({ assignments: ["a", "b"].map(assigned) }));
  await receive(done("a"));
  await advance(2);
  assert.deepEqual([last("sync").body.waitMs, last("sync").body.results?.length], [0, 1]);
});

test("results of one turn go in one sync", async () => {
  const { calls, last, receive } = await workingKit(["a", "b"]);
  const before = calls.length;
  await receive(done("a"), done("b"));
  assert.equal(calls.length, before + 1);
  assert.equal(last("sync").body.results?.length, 2);
});

test("a quick handler costs one sync: it is not named before", async () => {
  const { calls, last, receive, advance } = await joinedKit();
  await last("sync").answer(answer({ assignments: [assigned("a"), assigned("b")] }));
  const before = calls.length;
  await receive({ type: "began", ...one("a") }, { type: "began", ...one("b") });
  await advance(29);
  assert.equal(calls.length, before);
  await receive(done("a"), done("b"));
  assert.deepEqual([calls.length, last("sync").body.results?.length], [before + 1, 2]);
});

test("progress is told a moment later, in the place of the poll", async () => {
  const { calls, last, receive, advance } = await workingKit();
  const before = calls.length;
  await receive({ type: "progress", items: [{ ...one("a"), progress: '"half"' }] });
  assert.equal(calls.length, before);
  await advance(30);
  assert.equal(calls.length, before + 1);
  assert.deepEqual(last("sync").body.running, [{ ...one("a"), progress: "half" }]);
});

test("a sync that is not answered in time is doubted: another goes beside it, and either answer counts", async () => {
  const { calls, last, toldOf, advance } = await joinedKit();
  const first = last("sync");
  await advance(4999);
  assert.equal(calls.length, 2);
  await advance(1);
  assert.equal(calls.length, 3);
  assert.deepEqual([last("sync").body.waitMs, last("sync").body.n], [0, 2], "it wants an answer now");
  await first.answer(answer({ assignments: [assigned("a")] }));
  assert.equal(toldOf("start")[0]?.assignments[0]?.taskId, "a");
});

test("while the server is away the rests double, up to ten seconds", async () => {
  const { calls, last, advance, toldOf } = await joinedKit();
  const rests: number[] = [];
  for (let tries = 0; tries < 9; tries++) {
    const before = calls.length;
    const { at: brokenAt } = last("sync");
    await last("sync").refuse(refusal("network"));
    for (let steps = 0; calls.length === before && steps < 200; steps++) await advance(100);
    rests.push(last("sync").at - brokenAt);
  }
  assert.deepEqual(rests, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  assert.equal(toldOf("warning").length, 1, "it is said once");
  await last("sync").answer(answer());
  await advance(500);
  await last("sync").answer(answer());
  assert.deepEqual(
    toldOf("warning").map(({ message }) => message),
    ["refused: network; trying again until it answers", "the server answers now"],
    "and that it is back, once",
  );
});

for (const [what, begin] of [
  ["results to bring", ({ receive }: Kit) => receive(done("a"))],
  ["work", () => Promise.resolve()],
] as const)
  test(`with ${what} the rests are short until the lease is over, and begin small behind it`, async () => {
    const made = await workingKit();
    await begin(made);
    const callsIn = async (ms: number): Promise<number> => {
      const before = made.calls.length;
      for (let passed = 0; passed < ms; passed += 100) {
        await made.last("sync").refuse(refusal("network"));
        await made.advance(100);
      }
      return made.calls.length - before;
    };
    for (let seconds = 0; seconds < 9; seconds++) assert.ok((await callsIn(1000)) >= 1, "a tenth of a lease at most");
    assert.ok((await callsIn(3500)) >= 2, "one of the short rests ends, and the next is not much longer");
    assert.ok((await callsIn(30_000)) <= 6, "then nothing runs that another could be given");
  });

test("a server that answers at once and says nothing new is not asked in a tight loop", async () => {
  const { calls, last, advance } = await joinedKit();
  for (let times = 0; times < 4; times++) {
    const before = calls.length;
    await last("sync").answer(answer({ cancel: [one("nobody")] }));
    await advance(499);
    assert.equal(calls.length, before);
    await advance(1);
    assert.equal(calls.length, before + 1);
  }
});

test("when no answer came for nearly a lease what runs is stopped, and the handlers may begin nothing", async () => {
  const { last, toldOf, advance, cell, now } = await workingKit();
  const { at } = last("sync");
  await last("sync").answer(answer());
  await advance(at + 9000 - (now() - 1000) - 1);
  assert.equal(toldOf("stop").length, 0);
  assert.ok(cell.read() > now());
  await advance(1);
  assert.deepEqual(toldOf("stop")[0]?.stops, [{ ...one("a"), cause: "lease-lost" }]);
  assert.ok(cell.read() <= now());
  await last("sync").answer(answer());
  assert.deepEqual(last("sync").body.running, []);
  assert.equal(toldOf("warning").at(-1)?.message, "the server answers now");
});

for (const code of ["session_lost", "not_found"])
  test(`${code}: what ran is stopped, its results are dropped, and it joins anew`, async () => {
    const { calls, last, toldOf, receive, advance } = await workingKit(["a", "b"]);
    await receive(done("b"));
    const old = calls.at(-2);
    await last("sync").refuse(refusal(code));
    assert.deepEqual(toldOf("stop")[0]?.stops, [{ ...one("a"), cause: "session-lost" }]);
    // One that is taken from it soon again and again waits longer each time.
    await advance(100);
    await last("join").answer({ ...joined, session: "s2" });
    assert.deepEqual([last("sync").body.session, last("sync").body.results], ["s2", undefined]);
    assert.equal(last("sync").body.want, 1, "the handler that was stopped has its slot until it has ended");
    const before = calls.length;
    await old?.refuse(refusal(code));
    assert.equal(calls.length, before, "what is said of the old session is no news");
  });

test("a server that forgets it again and again is joined again and again, with rests that grow", async () => {
  const { last, toldOf, advance } = await joinedKit();
  for (const restMs of [100, 200, 400, 800]) {
    await last("sync").refuse(refusal("not_found"));
    await advance(restMs - 1);
    assert.equal(last("sync").kind, "sync");
    await advance(1);
    await last("join").answer(joined);
  }
  assert.deepEqual(toldOf("failed"), []);
});

test("of two with the same id the one that is thrown out twice gives up, and says what to do", async () => {
  const { calls, last, told, toldOf, advance } = await workingKit();
  await last("sync").refuse(refusal("session_lost"));
  const advice = "another worker has joined as ann: give each its own id";
  assert.equal(toldOf("warning").at(-1)?.message, `${advice}; joining again`);
  await advance(100);
  await last("join").answer({ ...joined, session: "s2" });
  await last("sync").refuse(refusal("session_lost", { status: 409 }));
  assert.deepEqual(told.at(-1), { type: "failed", error: { code: "session_lost", message: advice, status: 409 } });
  const before = calls.length;
  await advance(600_000);
  assert.equal(calls.length, before);
});

test("thrown out once a day, as by a server that is set back, it joins again", async () => {
  const { last, toldOf, advance } = await joinedKit();
  for (let day = 0; day < 5; day++) {
    for (let minute = 0; minute < 30; minute++) {
      await advance(2500);
      if (last("sync").kind === "sync") await last("sync").answer(answer());
    }
    await last("sync").refuse(refusal("session_lost"));
    await advance(100);
    await last("join").answer(joined);
  }
  assert.deepEqual(toldOf("failed"), []);
});

for (const code of ["unauthorized", "forbidden"])
  test(`${code}: it stops, says why, and stops what runs`, async () => {
    const { calls, last, told, toldOf, advance } = await workingKit();
    await last("sync").refuse(refusal(code, { status: 401 }));
    assert.equal(toldOf("stop").length, 1);
    assert.deepEqual(told.at(-1), { type: "failed", error: { code, message: `refused: ${code}`, status: 401 } });
    const before = calls.length;
    await advance(60_000);
    assert.equal(calls.length, before);
  });

test("a first join that the server refuses is an error; one that it does not hear is tried again", async () => {
  for (const code of ["bad_request", "not_found", "bad_answer", "conflict", "unsupported_protocol"]) {
    const { last, told } = await kit();
    await last("join").refuse(refusal(code));
    assert.equal(told.at(-1)?.type, "failed", code);
  }
  for (const code of ["network", "timeout", "closed", "overloaded", "limit", "internal"]) {
    const { calls, last, told, advance } = await kit();
    await last("join").refuse(refusal(code));
    await advance(100);
    assert.deepEqual([calls.length, told], [2, []], code);
  }
});

test("a join that was not answered in time is made again and has more time, up to a minute", async () => {
  const { last, told, advance } = await kit();
  const limits: number[] = [];
  for (let tries = 0; tries < 5; tries++) {
    limits.push(last("join").limitMs);
    await last("join").refuse(refusal("timeout"));
    await advance(10_000);
  }
  assert.deepEqual(limits, [10_000, 20_000, 40_000, 60_000, 60_000]);
  await last("join").answer(joined);
  assert.equal(told.at(-1)?.type, "joined");
});

test("it gives up on a server that stays away longer than it was told to wait", async () => {
  const { last, told, advance } = await joinedKit({ giveUpMs: 3000 });
  for (let tries = 0; tries < 6; tries++) {
    await last("sync").refuse(refusal("network"));
    await advance(1600);
  }
  assert.equal(told.at(-1)?.type, "failed");
});

test("a server that hangs is away from when it should have answered: it is told, and given up on", async () => {
  const { last, told, toldOf, advance } = await joinedKit({ giveUpMs: 10_000 });
  // The first may be held for 2.5 s of its 5, each other has 2.5 s.
  await advance(9999);
  assert.equal(toldOf("warning").length, 0);
  await advance(1);
  const away = "no answer from the server for 2500 ms; trying again until it answers";
  assert.deepEqual(toldOf("warning"), [{ type: "warning", message: away }]);
  await advance(2499);
  assert.equal(told.at(-1)?.type, "warning");
  await advance(1);
  assert.equal(told.at(-1)?.type, "failed");
  const calls = last("sync").at;
  await advance(60_000);
  assert.equal(last("sync").at, calls, "it asks no more");
});

test("a stale sync is passed over if a newer one is under way", async () => {
  const { calls, last, receive } = await workingKit();
  const poll = last("sync");
  await receive(done("a"));
  const before = calls.length;
  await poll.refuse(refusal("stale_sync"));
  assert.equal(calls.length, before);
});

test("a worker that drains leaves when its last result was answered", async () => {
  const { last, told, receive } = await workingKit();
  await receive({ type: "drain" });
  assert.deepEqual([last("sync").body.status, last("sync").body.want], ["draining", 0]);
  await last("sync").answer(answer());
  await receive(done("a"));
  await last("sync").answer(answer({ results: [{ ...one("a"), accepted: true }] }));
  assert.deepEqual(last("leave").body, { id: "ann", session: "s1" });
  await last("leave").answer();
  assert.equal(told.at(-1)?.type, "left");
});

test("a worker that another has replaced leaves alone", async () => {
  const { last, told, receive } = await joinedKit();
  await receive({ type: "drain" });
  await last("leave").refuse(refusal("session_lost"));
  assert.equal(told.at(-1)?.type, "left");
});

test("the server's wish to drain is passed on and followed", async () => {
  const { last, told, toldOf } = await joinedKit();
  await last("sync").answer(answer({ drain: true }));
  assert.equal(toldOf("draining").length, 1);
  await last("leave").refuse(refusal("not_found"));
  assert.equal(told.at(-1)?.type, "left");
});

test("a worker that closes delivers what it has, then leaves, and names the rest until then", async () => {
  const { last, told, receive } = await workingKit(["a", "b"]);
  await receive({ type: "closing" }, done("a"), { type: "ended", ...one("b"), report: { outcome: "failed" } });
  assert.deepEqual([last("sync").body.running, last("sync").body.results?.length], [[one("b")], 1]);
  await receive({ type: "leave" });
  await last("sync").answer(answer({ results: [{ ...one("a"), accepted: true }] }));
  await last("leave").answer();
  assert.equal(told.at(-1)?.type, "left");
});

test("leaving takes five seconds at most for results and five for the goodbye, if nobody answers", async () => {
  const { last, told, receive, advance } = await workingKit();
  await receive({ type: "closing" }, done("a"), { type: "leave" });
  await advance(5000);
  const goodbye = last("leave");
  assert.equal(goodbye.limitMs, 5000);
  await advance(5000);
  await goodbye.refuse(refusal("timeout"));
  assert.equal(told.at(-1)?.type, "left");
});

test("one that is closed before it could join is gone at once", async () => {
  const { last, told, receive } = await kit();
  await last("join").refuse(refusal("network"));
  await receive({ type: "closing" }, { type: "leave" });
  assert.equal(told.at(-1)?.type, "left");
});

test("one that is closed while it joins says goodbye when it has joined", async () => {
  const { last, told, receive } = await kit();
  await receive({ type: "closing" }, { type: "leave" });
  assert.equal(told.length, 0);
  await last("join").answer(joined);
  await last("leave").answer();
  assert.equal(told.at(-1)?.type, "left");
});

test("one closed while its join has no answer waits for it for five seconds, and heeds none later", async () => {
  const { last, told, calls, receive, advance } = await kit();
  await receive({ type: "closing" }, { type: "leave" });
  await advance(4999);
  assert.equal(told.length, 0);
  await advance(1);
  assert.deepEqual(told, [{ type: "left" }]);
  await last("join").answer(joined);
  assert.deepEqual([told.length, calls.length], [1, 1]);
});

test("a result that came too late is told as a warning", async () => {
  const { last, receive, toldOf } = await workingKit();
  await receive(done("a"));
  await last("sync").answer(answer({ results: [{ ...one("a"), accepted: false, code: "stale_attempt" }] }));
  assert.match(toldOf("warning")[0]?.message ?? "", /task a, attempt 1, was not taken: stale_attempt/);
});

test("a log that is wanted is told, and the next poll goes out at once", async () => {
  const made = await joinedKit({ logPlace: "here" });
  const logs = [{ id: "l", ...one("a"), lines: 5, bytes: 100 }];
  assert.equal(made.last("sync").body.logPlace, "here");
  const before = made.calls.length;
  await made.last("sync").answer(answer({ logs }));
  assert.deepEqual(made.toldOf("logs"), [{ type: "logs", wanted: { workerId: "ann", session: "s1", logs } }]);
  assert.equal(made.calls.length, before + 1);
  await made.last("sync").answer(answer({ logs }));
  assert.equal(made.calls.length, before + 1, "what it knows already makes it no faster");
});

test("that nothing is wanted ahead any more is said by an alarm, when a task has taken 50 ms", async () => {
  const { calls, last, receive, advance } = await kit({ aheadMax: 2 });
  await last("join").answer({ ...joined, brief: true, ahead: true });
  for (let round = 0; round < 3; round++) {
    await last("sync").answer(answer({ assignments: ["a", "b"].map((id) => assigned(`${id}${round}`)) }));
    await receive(done(`a${round}`), done(`b${round}`));
  }
  await last("sync").answer(answer({ assignments: ["x", "y"].map(assigned) }));
  await receive({ type: "began", ...one("x") }, { type: "began", ...one("y") });
  await advance(3);
  assert.deepEqual([last("sync").body.ahead, last("sync").body.want], [2, 2], "they are short as far as one knows");
  const [before, { at }] = [calls.length, last("sync")];
  await advance(46);
  assert.equal(calls.length, before);
  await advance(1);
  assert.deepEqual([last("sync").at - at, last("sync").body.ahead, last("sync").body.want], [47, undefined, 0]);
});

test("a mistake in a connection ends that worker alone: handlers are stopped, and it says what it was", async () => {
  for (const goWrong of [
    ({ last }: Kit) => last("sync").answer(answer({ assignments: [null as never] })),
    ({ receive }: Kit) => receive({ type: "all-done", names: null as never }),
    async ({ receive, advance }: Kit) => {
      await receive({ type: "progress", items: [{ ...one("a"), usage: 1n as never }] });
      await advance(30);
    },
    ({ last }: Kit) => last("sync").refuse(refusal("unavailable")),
  ]) {
    const made = await workingKit(["a"], { chance: () => assert.fail("no chance") });
    await goWrong(made);
    assert.deepEqual(made.toldOf("stop"), [{ type: "stop", stops: [{ ...one("a"), cause: "session-lost" }] }]);
    assert.equal(made.toldOf("failed").length, 1);
    assert.equal(made.cell.read(), 0, "and it may begin nothing");
    const calls = made.calls.length;
    await made.advance(10 * LEASE_MS);
    assert.equal(made.calls.length, calls);
  }
});
