import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

const ONE = { gates: { default: { maxConcurrent: 1, requests: 1000 } } };

test("a permit is granted, queued behind another, and granted when that one is settled", async () => {
  const { drover, clock } = await createTestDrover({ config: ONE });
  const first = await drover.permits.ask({ gate: "g" });
  assert.equal(first.status, "granted");
  const second = await drover.permits.ask({ gate: "g", id: "mine" });
  const wait = { status: "queued", position: 1, estimatedWaitMs: 30_000 };
  assert.deepEqual(second, { permitId: "mine", gate: "g", ...wait });
  const waiting = drover.permits.ask({ gate: "g", id: "mine", waitMs: 30_000 });
  await clock.advance(1000);
  await drover.permits.settle(first.permitId, { usage: { inputTokens: 5 } });
  assert.equal((await waiting).status, "granted");
  await drover.permits.settle(first.permitId);
  await drover.permits.settle("mine", { ok: false });
  await assert.rejects(drover.permits.settle("nobody"), /no permit nobody/);
  await drover.close();
});

test("T1 a caller that asks again keeps its place", async () => {
  const { drover } = await createTestDrover({ config: ONE });
  const held = await drover.permits.ask({ gate: "g" });
  await drover.permits.ask({ gate: "g", id: "first" });
  await drover.permits.ask({ gate: "g", id: "second" });
  assert.equal((await drover.permits.ask({ gate: "g", id: "first" })).position, 1);
  await drover.permits.drop(held.permitId);
  assert.equal((await drover.permits.ask({ gate: "g", id: "first" })).status, "granted");
  await assert.rejects(drover.permits.ask({ gate: "other", id: "second" }), /second/);
  await drover.close();
});

test("T2 a ticket nobody asks for is given up, and one whose caller hung up keeps its place for a while", async () => {
  const { drover, clock } = await createTestDrover({ config: ONE });
  const held = await drover.permits.ask({ gate: "g" });
  const gone = new AbortController();
  const asked = drover.permits.ask({ gate: "g", id: "mine", waitMs: 60_000 }, { signal: gone.signal });
  gone.abort(new Error("hung up"));
  await assert.rejects(asked, /hung up/);
  await clock.advance(59_000);
  assert.equal((await drover.permits.ask({ gate: "g", id: "mine" })).position, 1);
  await clock.advance(60_000);
  assert.equal(drover.state.permits.has("mine" as never), false);
  await drover.permits.drop(held.permitId);
  await drover.close();
});

for (const [how, ask] of [
  [
    "was told that it is queued, and asks no more",
    (kit: TestDrover) => kit.drover.permits.ask({ gate: "g", id: "mine" }),
  ],
  [
    "hung up",
    async (kit: TestDrover) => {
      const gone = new AbortController();
      const asked = kit.drover.permits.ask({ gate: "g", id: "mine", waitMs: 60_000 }, { signal: gone.signal });
      gone.abort(new Error("hung up"));
      await assert.rejects(asked, /hung up/);
    },
  ],
  [
    "was told that it waits no more, and does not ask what became of it",
    async (kit: TestDrover) => {
      await kit.drover.permits.ask({ gate: "g", id: "mine" });
      void kit.drover.permits.firstDecided(["mine"]);
    },
  ],
] as const)
  test(`T2 who ${how} holds the gate for a moment only, and keeps its position`, async () => {
    const kit = await createTestDrover({ config: ONE });
    const { drover, clock } = kit;
    const { permits } = drover;
    const held = await permits.ask({ gate: "g" });
    await ask(kit);
    await permits.ask({ gate: "g", id: "next" });
    await permits.drop(held.permitId);
    await clock.advance(14_999);
    assert.equal((await permits.ask({ gate: "g", id: "next" })).status, "queued");
    await clock.advance(1);
    const next = await permits.ask({ gate: "g", id: "next" });
    assert.equal(next.status, "granted");
    // It is heard of, so it stays; and behind it the first has the position that it had.
    await permits.ask({ gate: "g", id: "third" });
    await clock.advance(60_000);
    assert.equal((await permits.ask({ gate: "g", id: "next" })).status, "granted");
    await permits.ask({ gate: "g", id: "third" });
    assert.equal((await permits.ask({ gate: "g", id: "mine" })).position, 1);
    assert.equal((await permits.ask({ gate: "g", id: "third" })).position, 2);
    await permits.settle("next");
    assert.equal((await permits.ask({ gate: "g", id: "mine" })).status, "granted");
    await drover.close();
  });

test("who drops only what nobody has heard of keeps its position, and a call that is out stays out", async () => {
  const { drover } = await createTestDrover({ config: ONE });
  const { permits } = drover;
  const held = await permits.ask({ gate: "g" });
  await permits.drop(held.permitId, { ifUnheard: true });
  assert.equal((await permits.ask({ gate: "g", id: held.permitId })).status, "granted", "it was heard of");
  await permits.ask({ gate: "g", id: "mine" });
  await permits.ask({ gate: "g", id: "next" });
  await permits.settle(held.permitId);
  await permits.drop("mine", { ifUnheard: true });
  assert.equal((await permits.ask({ gate: "g", id: "next" })).status, "granted", "it went on to the next");
  assert.equal((await permits.ask({ gate: "g", id: "mine" })).position, 1);
  await permits.drop("mine", { ifUnheard: true });
  await assert.rejects(permits.drop("mine", { ifUnheard: "yes" } as never), /ifUnheard/);
  await drover.close();
});

test("a ticket for which somebody still waits is not given up because another caller went", async () => {
  const { drover, clock } = await createTestDrover({ config: ONE });
  const held = await drover.permits.ask({ gate: "g" });
  await drover.permits.ask({ gate: "g", id: "mine" });
  const gone = new AbortController();
  const waiting = drover.permits.firstDecided(["mine"]);
  const asked = drover.permits.ask({ gate: "g", id: "mine", waitMs: 60_000 }, { signal: gone.signal });
  gone.abort(new Error("hung up"));
  await assert.rejects(asked, /hung up/);
  await clock.advance(120_000);
  assert.ok(drover.permits.isWaiting("mine"));
  await drover.permits.drop(held.permitId);
  await waiting;
  assert.equal((await drover.permits.ask({ gate: "g", id: "mine" })).status, "granted");
  await drover.close();
});

test("a 429 that a caller reports blocks the gate", async () => {
  const { drover } = await createTestDrover();
  const { permitId } = await drover.permits.ask({ gate: "g" });
  await drover.permits.settle(permitId, { rateLimited: { retryAfterMs: 30_000 } });
  const next = await drover.permits.ask({ gate: "g" });
  assert.deepEqual([next.status, next.retryAfterMs, next.position], ["rate-limited", 30_000, 1]);
  await drover.close();
});

test("a caller that takes an instant for a span shuts the gate for a day, not for decades", async () => {
  const { drover, clock } = await createTestDrover();
  const { permitId } = await drover.permits.ask({ gate: "g" });
  await drover.permits.settle(permitId, { rateLimited: { retryAfterMs: clock.now() } });
  await clock.set(clock.now() + 24 * 3_600_000 - 1000);
  assert.equal((await drover.permits.ask({ gate: "g", id: "next" })).status, "rate-limited");
  await clock.advance(1000);
  assert.equal((await drover.permits.ask({ gate: "g", id: "next" })).status, "granted");
  await drover.close();
});

test("a call that met a 429 comes back to its own place, by its former permit or by the same id", async () => {
  for (const again of [{ id: "once-more", again: "first" }, { id: "first" }]) {
    const { drover, clock } = await createTestDrover({ config: ONE });
    await drover.permits.ask({ gate: "g", id: "first" });
    await drover.permits.ask({ gate: "g", id: "second" });
    await drover.permits.settle("first", { rateLimited: { retryAfterMs: 1000 } });
    await drover.permits.ask({ gate: "g", id: "thief", again: "first", project: "other" });
    const { ticket } = drover.state.gates.get("g" as never)?.queue.entries.get("thief") ?? {};
    assert.equal(ticket?.since, undefined, "the place is not another payer's");
    await drover.permits.drop("thief");
    assert.equal((await drover.permits.ask({ gate: "g", ...again })).position, 1);
    await clock.advance(2000);
    assert.equal((await drover.permits.ask({ gate: "g", ...again })).status, "granted");
    await drover.close();
  }
});

test("T17 a permit of another process outlives the engine, and runs out by itself", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-permits-"));
  const first = await createTestDrover({ data, config: ONE });
  await first.drover.permits.ask({ gate: "g", id: "mine" });
  await first.drover.close();
  const { drover, clock } = await createTestDrover({ data, at: first.clock.now() + 1000 });
  assert.equal((await drover.permits.ask({ gate: "g", id: "mine" })).status, "granted");
  assert.equal((await drover.permits.ask({ gate: "g", id: "other" })).status, "queued");
  await clock.advance(10 * 60_000);
  assert.equal(drover.state.permits.has("mine" as never), false);
  await drover.close();
  await rm(data, { recursive: true });
});

test("bad asks are refused by field", async () => {
  const { drover } = await createTestDrover();
  const bad: [object, string][] = [
    [{}, "gate"],
    [{ gate: "g", class: "vip" }, "class"],
    [{ gate: "g", tokens: -1 }, "tokens"],
    [{ gate: "g", waitMs: 1e9 }, "waitMs"],
    [{ gate: "g", taskId: "t" }, "(body)"],
    [{ gate: "g", surprise: 1 }, "surprise"],
  ];
  for (const [body, field] of bad)
    await assert.rejects(drover.permits.ask(body as never), (error: unknown) => {
      assert.equal((error as { details: { field: string } }).details.field, field);
      return true;
    });
  await assert.rejects(
    drover.permits.ask({ gate: "g", id: "p123" }),
    /^DroverError: id is "p123", and must be an id not of the form/,
  );
  await drover.close();
});

test("a failed call that does not say what it used is charged at its estimate", async () => {
  const { drover } = await createTestDrover();
  const spent = async () => (await drover.projects())[0]?.spent;
  const failed = await drover.permits.ask({ gate: "g", tokens: 500 });
  await drover.permits.settle(failed.permitId, { ok: false });
  assert.equal(await spent(), 500);
  const turnedAway = await drover.permits.ask({ gate: "h", tokens: 500 });
  await drover.permits.settle(turnedAway.permitId, { rateLimited: { retryAfterMs: 1000 } });
  assert.equal(await spent(), 500);
  await drover.close();
});

test("a permit of this process's own callers is out of reach, by whatever id", async () => {
  const { drover } = await createTestDrover();
  await drover.withPermit("g", async ({ id }) => {
    await assert.rejects(drover.permits.ask({ gate: "g", id }), /queued or held already/);
    await assert.rejects(drover.permits.settle(id), /no permit/);
    await assert.rejects(drover.permits.drop(id), /no permit/);
    assert.ok(drover.state.permits.has(id as never));
  });
  await drover.close();
});

test("a caller that has gone before it asked gets no ticket, and one whose ticket is dropped hears of it", async () => {
  const { drover, settle } = await createTestDrover({ config: ONE });
  await drover.permits.ask({ gate: "g" });
  const signal = AbortSignal.abort(new Error("hung up"));
  await assert.rejects(drover.permits.ask({ gate: "g", id: "gone", waitMs: 60_000 }, { signal }), /hung up/);
  assert.equal(drover.state.permits.has("gone" as never), false);
  const heard = assert.rejects(drover.permits.ask({ gate: "g", id: "mine", waitMs: 60_000 }), /no permit mine/);
  await settle();
  await drover.permits.drop("mine");
  await heard;
  await drover.close();
});

test("an id of the form that Drover makes itself is refused as such", async () => {
  const { drover } = await createTestDrover({ config: ONE });
  const made = drover.permits.ask({ gate: "g", id: "p99999" });
  await assert.rejects(made, { code: "bad_request", message: /^id is "p99999", and must be an id not of the form p</ });
  await drover.close();
});

test("an id that was settled or given back is not granted again for a while, also after a restart", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-permits-"));
  const first = await createTestDrover({ data });
  for (const id of ["settled", "dropped", "throttled"]) await first.drover.permits.ask({ gate: "g", id });
  await first.drover.permits.settle("settled");
  await first.drover.permits.drop("dropped");
  await first.drover.permits.settle("throttled", { rateLimited: { retryAfterMs: 1000 } });
  await first.drover.snapshot();
  await first.drover.close();
  const { drover, clock } = await createTestDrover({ data, at: first.clock.now() + 60_000 });
  for (const id of ["settled", "dropped"]) {
    const message = new RegExp(`permit ${id} is over and settled; ask under another id`);
    await assert.rejects(drover.permits.ask({ gate: "g", id }), { code: "conflict", message });
    await drover.permits.settle(id);
  }
  assert.equal((await drover.permits.ask({ gate: "g", id: "throttled" })).status, "granted", "it may come back");
  await clock.advance(9 * 60_000);
  assert.equal((await drover.permits.ask({ gate: "g", id: "settled" })).status, "queued", "its time is over");
  await drover.close();
  await rm(data, { recursive: true });
});

test("what was settled before another came back is repeated in vain, and answered when it is stored", async () => {
  const { drover } = await createTestDrover();
  const { permitId } = await drover.permits.ask({ gate: "g" });
  const [first, repeat] = [drover.permits.settle(permitId), drover.permits.settle(permitId)];
  assert.equal(await Promise.race([first.then(() => "first"), repeat.then(() => "repeat")]), "first");
  await repeat;
  await drover.close();
});

test("whoever waits for any of many hears of the first, and the others are kept in line meanwhile", async () => {
  const { drover, clock } = await createTestDrover({ config: ONE });
  const { permits, state } = drover;
  const { permitId: out } = await permits.ask({ gate: "g" });
  for (const id of ["a", "b", "c"]) await permits.ask({ gate: "g", id });
  const heard: string[] = [];
  const controller = new AbortController();
  const { signal } = controller;
  const all = permits.firstDecided(["a", "b", "c"], { signal }).then(() => heard.push("first"));
  await clock.advance(90_000);
  assert.deepEqual([heard, state.permits.size], [[], 4], "nobody was given up");
  await permits.settle(out);
  await all;
  assert.equal((await permits.ask({ gate: "g", id: "a" })).status, "granted");
  assert.deepEqual(["a", "b", "c"].map(permits.isWaiting), [false, true, true]);
  await permits.firstDecided(["b", "a"]);
  await permits.firstDecided(["b", "nobody"]);
  const rest = permits.firstDecided(["b", "c"], { signal });
  controller.abort(new Error("enough"));
  await assert.rejects(rest, /enough/);
  await assert.rejects(permits.firstDecided(["b"], { signal }), /enough/);
  await clock.advance(61_000);
  assert.deepEqual([...state.permits.keys()], ["a"], "those that nobody waits for are given up");
  const last = permits.ask({ gate: "g", id: "d" }).then(() => permits.firstDecided(["d"]));
  await clock.advance(0);
  await drover.close();
  await assert.rejects(last, { code: "closed" });
});
