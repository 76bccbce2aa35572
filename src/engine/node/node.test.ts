/**
 * Nodes of a cluster: one leads, the lead goes over, nothing acknowledged is lost, and who was told nothing asks again.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createCluster, LEASE_MS, type TestNode } from "../../../test/kits/cluster.ts";
import { isPending } from "../../../test/kits/waits.ts";
import { expireLead } from "../../log/journal/memory-journal.ts";
import { DroverError } from "../base/drover-error.ts";
import { type FileMedium, memoryMedium } from "../files/medium.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const roles = (nodes: readonly TestNode[]): string => nodes.map(({ life }) => life().role).join(" ");
const isRetryable = (error: unknown): boolean => error instanceof DroverError && error.retryable;
const drover = ({ life }: TestNode) => life().drover;

test("one node leads, the others follow, and all have the same state and the same hash", async (context) => {
  const cluster = await createCluster(context, ["a", "b", "c"]);
  const { nodes, leader, settle, states } = cluster;
  assert.equal(roles(nodes), "leader follower follower");
  const [, b] = nodes as [TestNode, TestNode];
  await drover(leader()).worker({ slots: 2 }, ({ taskId }) => ({ made: taskId }));
  await drover(leader()).submit(task("t"));
  await settle();
  assert.equal((await drover(b).wait("t")).state, "done");
  assert.deepEqual((await drover(b).task("t")).result, { made: "t" });
  assert.deepEqual(new Set(states()).size, 1);
  assert.deepEqual(new Set(nodes.map(({ applied }) => JSON.stringify(applied()))).size, 1);
  assert.deepEqual(b.applied().hash, cluster.store.head.hash);
});

test("C18 a leader whose lead was taken loses at its next append, and answers nothing as done", async (context) => {
  const { nodes, store, settle, states, clock } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  await drover(a).submit(task("kept"));
  expireLead(store);
  await settle();
  assert.equal(roles(nodes), "leader leader", "both believe it");
  assert.ok(b.applied().epoch > a.applied().epoch);
  const late = drover(a).submit(task("late"));
  await assert.rejects(late, isRetryable);
  await settle();
  assert.equal(roles(nodes), "follower leader");
  await assert.rejects(drover(b).task("late"), /late/);
  await drover(b).submit(task("late"));
  await settle();
  assert.equal((await drover(a).task("late")).state, "queued");
  assert.equal((await drover(a).task("kept")).state, "queued");
  assert.equal(new Set(states()).size, 1);
  await clock.advance(LEASE_MS * 2);
  assert.equal(roles(nodes), "follower leader", "it stays so");
});

test("a node that takes the lead doubts a clock that was set far ahead while it followed", async (context) => {
  const { nodes, store, settle, clock } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  await drover(a).submit(task("t", { deadline: clock.now() + 3_600_000 }));
  await settle();
  const before = clock.now();
  clock.setWall(before + 86_400_000);
  expireLead(store);
  await clock.advance(1000);
  await drover(b).submit(task("u"));
  assert.ok(drover(b).state.at <= before + 1000, "no more time has passed");
  assert.equal((await drover(b).task("t")).state, "queued");
  clock.setWall(before + 1000);
  await clock.advance(1000);
  await drover(b).submit(task("v"));
  assert.equal(drover(b).state.at, before + 2000);
});

test("a clock that was wrong while a node followed, and is right when it leads, has done no harm", async (context) => {
  const { nodes, store, settle, clock, open } = await createCluster(context, ["a"]);
  const [a] = nodes as [TestNode];
  await drover(a).submit(task("t", { deadline: clock.now() + 3_600_000 }));
  await settle();
  const before = clock.now();
  clock.setWall(before + 86_400_000);
  const b = await open("b");
  clock.setWall(before);
  await clock.advance(1_800_000);
  a.journal.fault({ cut: "both" });
  expireLead(store);
  await clock.advance(10_000);
  await settle();
  await drover(b).submit(task("u"));
  assert.ok(drover(b).state.at <= clock.now(), "no more time has passed");
  assert.equal((await drover(b).task("t")).state, "queued");
});

test("the lead is taken in the middle of a batch: what it held is gone, or comes back once", async (context) => {
  for (const landed of [false, true]) {
    const { nodes, store, settle, states, clock } = await createCluster(context, ["a", "b"]);
    const [a, b] = nodes as [TestNode, TestNode];
    const held = Promise.withResolvers<void>();
    a.journal.fault(landed ? { cut: "answers" } : { hold: held.promise });
    const submitted = drover(a).submit(task("t"));
    const read = drover(a).tasks();
    assert.ok(await isPending(Promise.race([submitted, read])));
    expireLead(store);
    await settle();
    a.journal.fault({ cut: "none", hold: null });
    held.resolve();
    await clock.advance(300);
    const outcomes = await Promise.allSettled([submitted, read]);
    for (const outcome of outcomes) {
      assert.equal(outcome.status, "rejected", `landed ${landed}`);
      assert.ok(outcome.status === "rejected" && isRetryable(outcome.reason));
    }
    await settle();
    assert.equal(roles(nodes), "follower leader");
    assert.equal(b.life().drover.state.tasks.size, landed ? 1 : 0);
    assert.equal((await drover(b).submit(task("t"))).taskId, "t");
    await settle();
    assert.equal(a.life().drover.state.tasks.size, 1);
    assert.equal(new Set(states()).size, 1);
  }
});

test("a leader that is cut off ends its lead before another begins, and follows when it is back", async (context) => {
  const { nodes, clock, settle, states } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const told: string[] = [];
  a.onLife(({ role, signal }) => {
    told.push(`a ${role}`);
    signal.addEventListener("abort", () => told.push(`a ended: ${(signal.reason as DroverError).code}`));
  });
  b.onLife(({ role }) => told.push(`b ${role}`));
  a.journal.fault({ cut: "both" });
  const submitted = drover(a).submit(task("t"));
  const outcome = submitted.catch((error: unknown) => error);
  await clock.advance(LEASE_MS - 400);
  assert.ok(await isPending(submitted), "it may still come through");
  assert.equal(a.life().leads(), true);
  await clock.advance(400);
  assert.ok(isRetryable(await outcome));
  assert.equal(a.life().leads(), false);
  await clock.advance(LEASE_MS);
  assert.equal(roles(nodes), "follower leader");
  assert.deepEqual(told, ["a leader", "b follower", "a ended: deposed", "a follower", "b leader"]);
  await drover(b).submit(task("u"));
  a.journal.fault({ cut: "none" });
  await settle();
  assert.equal((await drover(a).task("u")).state, "queued");
  assert.equal(new Set(states()).size, 1);
});

test("a node whose lead was not renewed knows that the journal is away, whatever else it asks", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode];
  // What is asked otherwise hangs, as at a member that has lost the others.
  Object.assign(a.journal, { head: () => new Promise(() => {}) });
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS);
  assert.equal(a.life().role, "follower");
  assert.match(a.journalAway()?.why ?? "", /^the lead of epoch 1 was not renewed in \d+ ms/);
});

test("the lead is given up in a second, also out of reach of the journal and after a failed life", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode];
  a.journal.fault({ cut: "both" });
  const submitted = drover(a).submit(task("t"));
  const outcome = submitted.catch((error: unknown) => error);
  const over = a.handOver();
  await clock.advance(1000);
  assert.equal(await isPending(over), false);
  assert.ok(isRetryable(await outcome));
  assert.equal(a.life().role, "follower");

  const other = await createCluster(context, ["a"]);
  const leader = other.leader();
  leader.journal.fault({ fullFor: 1000 });
  await assert.rejects(drover(leader).submit(task("t")), /told to be full/);
  await other.settle();
  assert.deepEqual(
    [leader.life().role, leader.life().signal.aborted],
    ["leader", true],
    "it rests before the next life",
  );
  assert.equal(await isPending(leader.handOver()), false);
  const closed = leader.close();
  await other.clock.advance(0);
  assert.equal(await isPending(closed), false, "the rest is not waited for");
});

test("a leader that has nothing to do loses its lead too, and keeps its state", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode, TestNode];
  const { state } = drover(a);
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS);
  assert.equal(a.life().role, "follower");
  assert.equal(drover(a).state, state, "all of it was committed");
});

test("what lands when its leader has ended starts nothing there", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a"]);
  const [a] = nodes as [TestNode];
  const started: string[] = [];
  await drover(a).worker({}, ({ taskId }) => void started.push(taskId));
  const held = Promise.withResolvers<void>();
  a.journal.fault({ hold: held.promise });
  const submitted = drover(a).submit(task("t"));
  const outcome = submitted.catch((error: unknown) => error);
  await clock.advance(0);
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS);
  assert.ok(isRetryable(await outcome));
  held.resolve();
  a.journal.fault({ cut: "none", hold: null });
  await clock.advance(LEASE_MS * 2);
  assert.equal(a.life().role, "leader");
  assert.equal((await drover(a).task("t")).state, "queued", "it had landed");
  assert.deepEqual(started, []);
});

test("a node that missed much leads only when it has all of it", async (context) => {
  const { nodes, settle, store } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  b.journal.fault({ cut: "both" });
  for (let count = 0; count < 50; count++) await drover(a).submit(task(`t${count}`));
  const { epoch } = store.head;
  await a.close();
  b.journal.fault({ cut: "none" });
  await settle();
  assert.equal(b.life().role, "leader");
  assert.equal(drover(b).state.tasks.size, 50);
  assert.equal(store.head.epoch, epoch + 1, "at its first try");
});

test("an answer that was lost for a moment costs nobody anything", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  a.journal.fault({ loseAnswers: 2, loseAppends: 1 });
  const submitted = drover(a).submit(task("t"));
  await clock.advance(200);
  assert.equal((await submitted).taskId, "t");
  await settle();
  assert.equal(roles(nodes), "leader follower");
  assert.equal(b.life().drover.state.tasks.size, 1);
});

test("C17 the next leader has every worker's attempt, gives each a full lease, and goes on", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"], { workers: { lease: 10_000 } });
  const [a, b] = nodes as [TestNode, TestNode];
  const { session } = await drover(a).remote.join({ id: "w", slots: 1 });
  await drover(a).submit(task("t"));
  const { assignments } = await drover(a).remote.sync("w", { session, n: 1 });
  assert.deepEqual(
    assignments.map(({ taskId }) => taskId),
    ["t"],
  );
  await drover(a).remote.sync("w", { session, n: 2, running: [{ taskId: "t", attempt: 1 }] });
  await clock.advance(8000);
  a.journal.fault({ cut: "both" });
  // Silent for longer than a lease in all, and never for one that the new leader would have heard.
  await clock.advance(LEASE_MS + 6000);
  assert.equal(roles(nodes), "follower leader");
  const token = drover(b).attemptTokens.of("t", 1) ?? "";
  assert.equal(drover(a).attemptTokens.read(token)?.task, "t", "a token of one leader is good for the next");
  const [worker] = await drover(b).workers();
  assert.equal(worker?.status, "busy");
  const results = [{ taskId: "t", attempt: 1, outcome: "done" as const, result: 7 }];
  const answer = await drover(b).remote.sync("w", { session, n: 3, results });
  assert.equal(answer.results[0]?.accepted, true);
  assert.equal((await drover(b).task("t")).state, "done");
  a.journal.fault({ cut: "none" });
  await settle();
  assert.equal((await drover(a).task("t")).result, 7);
});

test("the next leader makes up for schedules, and feels its way at gates", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const every = { agentId: "ann", action: "tick" };
  await drover(a).schedules.put("s", { cron: "* * * * *", catchUp: 10, overlap: "queue", task: every });
  const first = drover(a).withPermit("g", () => {});
  await settle();
  await first;
  await clock.advance(120_000);
  await settle();
  const before = a.life().drover.state.tasks.size;
  assert.equal(before, 2);
  a.journal.fault({ cut: "both" });
  await clock.advance(60_000 + 3 * LEASE_MS);
  await settle();
  assert.equal(roles(nodes), "follower leader");
  assert.equal(b.life().drover.state.tasks.size, 3, "one instant each");
  const asked = [1, 2].map((n) => drover(b).permits.ask({ gate: "g", id: `call-${n}` }));
  await settle();
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  assert.deepEqual(statuses, ["granted", "queued"], "one probe first");
});

test("what was settled is so for the next leader; a grant that was not stored is unknown there", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  for (const id of ["settled", "out"]) assert.equal((await drover(a).permits.ask({ gate: "g", id })).status, "granted");
  await drover(a).permits.settle("settled");
  await settle();
  assert.ok(b.life().drover.state.permits.has("out" as never), "a grant is stored with what comes next");
  a.journal.fault({ cut: "both" });
  const lost = drover(a).permits.ask({ gate: "g" });
  await settle();
  const { status, permitId } = await lost;
  assert.equal(status, "granted", "a grant waits for no journal");
  await clock.advance(3 * LEASE_MS);
  assert.equal(roles(nodes), "follower leader");
  const { permits } = drover(b);
  await assert.rejects(permits.ask({ gate: "g", id: "settled" }), { code: "conflict" });
  await permits.settle("settled");
  await assert.rejects(permits.settle(permitId), { code: "not_found" });
  await permits.settle("out");
  // No number of the log, which another call will have.
  assert.match(permitId, /^permit_a-\d+$/, "its id is never another's");
});

test("a lead that is handed over is another's within a second; what was under way is durable", async (context) => {
  const { nodes, clock, settle, states } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode, TestNode];
  const begun = Promise.withResolvers<void>();
  await drover(a).worker({}, () => {
    begun.resolve();
    return new Promise(() => {}); // It hears no signal.
  });
  await drover(a).submit(task("t"));
  await begun.promise;
  const last = drover(a).submit(task("last"));
  const handed = a.handOver();
  await clock.advance(999);
  await handed;
  assert.equal((await last).taskId, "last");
  await settle();
  assert.equal(roles(nodes), "follower leader");
  const [, b] = nodes as [TestNode, TestNode];
  assert.equal((await drover(b).task("t")).state, "queued", "its handler is of no account any more");
  assert.equal(new Set(states()).size, 1);
  await clock.advance(LEASE_MS * 3);
  assert.equal(roles(nodes), "follower leader");
});

test("a node that closes hands over; one that comes back has what it missed", async (context) => {
  const { nodes, clock, open, settle, leader } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  await drover(a).submit(task("t"));
  await a.close();
  await settle();
  assert.equal(b.life().role, "leader", "no lease had to run out");
  await assert.rejects(drover(a).submit(task("u")), DroverError);
  await drover(b).submit(task("u"));
  const again = await open("a", a.replica);
  assert.equal(again.life().role, "follower");
  assert.equal((await drover(again).task("u")).state, "queued");
  await clock.advance(LEASE_MS * 2);
  assert.equal(leader(), b);
});

test("a batch that comes while a node begins is known to be there, and the node can lead", async (context) => {
  const { nodes, clock, open, settle } = await createCluster(context, ["a"]);
  const [a] = nodes as [TestNode];
  let isFirst = true;
  const b = await open("b", undefined, (log) => ({
    ...log,
    loadSnapshot: async () => {
      if (isFirst) await drover(a).submit(task("t"));
      isFirst = false;
      await settle();
      return log.loadSnapshot();
    },
  }));
  assert.equal((await drover(b).task("t")).state, "queued");
  assert.equal(b.applied().seq, a.applied().seq);
  assert.equal(b.applied().hash, a.applied().hash);
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS * 2);
  assert.equal(roles(nodes), "follower leader");
});

for (const aheadMs of [0, -3_600_000, 3_600_000])
  test(`of two processes that are one node the later ends, its clock ${aheadMs} ms ahead`, async (context) => {
    await endsTheLater(context, aheadMs);
  });

async function endsTheLater(context: TestContext, aheadMs: number): Promise<void> {
  const { nodes, clock, open, aheadMs: dates } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  await clock.advance(2000);
  dates.set("a", aheadMs);
  const twin = await open("a");
  await clock.advance(6000);
  assert.deepEqual([await isPending(twin.failed), await isPending(a.failed)], [false, true]);
  const { code, message } = await twin.failed;
  assert.equal(code, "log_failed");
  assert.match(
    message,
    /another process is node a too, the one at http:\/\/a\.test, and was so before this one\. Give/,
  );
  await clock.advance(LEASE_MS * 2);
  const { epoch } = b.applied();
  await clock.advance(LEASE_MS * 10);
  assert.equal(b.applied().epoch, epoch, "nobody takes the lead from another any more");
  assert.ok(await isPending(a.failed));
}

test("a follower says when it has come to an event, and gives up with the signal", async (context) => {
  const { nodes, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const at = a.applied().seq + 2;
  const giveUp = new AbortController();
  const [reached, given] = [b.reached(at), b.reached(at + 1000, giveUp.signal)];
  assert.ok(await isPending(reached));
  await drover(a).submit(task("t"));
  await settle();
  await reached;
  giveUp.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  await b.reached(at);
});

test("a journal that is full ends the lead for a while, and the node comes back by itself", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a"]);
  const [a] = nodes as [TestNode];
  a.journal.fault({ fullFor: 3 });
  await assert.rejects(drover(a).submit(task("t")), DroverError);
  await settle();
  assert.match(a.warnings[0] ?? "", /^node a: READ-ONLY, since nothing can be written: .* full/);
  assert.match(a.readOnly() ?? "", /full/);
  await clock.advance(LEASE_MS * 3);
  assert.equal(roles(nodes), "leader");
  assert.equal((await drover(a).submit(task("t"))).taskId, "t");
});

test("who takes the lead decides before its files are counted, and each node counts them once", async (context) => {
  const [counting, lists] = [Promise.withResolvers<void>(), [] as string[]];
  const medium = (id: string): FileMedium => ({
    ...memoryMedium(),
    async list() {
      lists.push(id);
      await counting.promise;
      return [];
    },
  });
  const { nodes, clock } = await createCluster(context, ["a", "b"], {}, medium);
  context.after(() => counting.resolve());
  const [a, b] = nodes as [TestNode, TestNode];
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS * 2);
  assert.equal(roles(nodes), "follower leader");
  assert.equal((await drover(b).submit(task("t"))).taskId, "t");
  counting.resolve();
  const { hash } = await b.drover.files.put("kept");
  const handed = b.handOver();
  await clock.advance(1000);
  await handed;
  assert.equal(roles(nodes), "follower follower");
  assert.equal(b.drover.files.has(hash), true, "files outlive a life");
  assert.deepEqual(lists, ["a", "b"]);
});
