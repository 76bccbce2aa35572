/**
 * Permits over the wire: against the real engine's counter, with a wire that breaks and a clock that is turned by hand.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError } from "../../client/index.ts";
import { openDrover } from "../../engine/index.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createWorkerPermits, type Holder, type PermitCalls } from "./permits.ts";

const broken = (): ClientError => new ClientError("network", "the connection broke", { retryable: true });
const limited = (retryAfterMs: number): Error => Object.assign(new Error("slow down"), { status: 429, retryAfterMs });

async function kit(more: { readonly permitTtl?: string } = {}) {
  const config = { gates: { default: { maxConcurrent: 1, ...more } }, workers: { lease: "10h" } };
  let isAtRest = async (): Promise<boolean> => true;
  const clock = createHandClock({ at: 1_767_225_600_000, isAtRest: () => isAtRest() });
  const { settle } = clock;
  const drover = await openDrover({ clock, config });
  isAtRest = async () => {
    const { seq } = drover.state;
    await drover.workers();
    return drover.state.seq === seq;
  };
  const asked: string[] = [];
  const wire = { isUp: true, isOld: false };
  const sessions = new Set<string | undefined>();
  const over = async <Answer>(name: string, act: () => Promise<Answer>): Promise<Answer> => {
    asked.push(name);
    if (!wire.isUp) throw broken();
    return act();
  };
  const client: PermitCalls = {
    askPermit: ({ session, ...body }, { signal, keepTicket } = {}) => {
      assert.equal(keepTicket, true, "what is given up is dropped here, and not by the client as well");
      sessions.add(session);
      return over(`ask ${body.id}`, async () => {
        if (wire.isOld && body.taskSeq !== undefined)
          throw new ClientError("bad_request", "taskSeq is not known", { status: 400, details: { field: "taskSeq" } });
        return await drover.permits.ask(body, signal === undefined ? {} : { signal });
      });
    },
    settlePermit: async (id, { session, ...body } = {}) => {
      sessions.add(session);
      await over(`settle ${id}`, () => drover.permits.settle(id, body));
      return { status: "settled", permitId: id };
    },
    dropPermit: async (id, { session } = {}) => {
      sessions.add(session);
      await over(`drop ${id}`, () => drover.permits.drop(id));
      return { status: "dropped", permitId: id };
    },
  };
  let ids = 0;
  const warnings: string[] = [];
  const permits = createWorkerPermits({
    ...{ client, chance: () => 1, newId: () => `call-${++ids}`, warn: (text) => void warnings.push(text) },
    session: () => "the session of w",
    clock,
  });
  await drover.submit({ id: "t", agentId: "ann", action: "go" });
  await drover.remote.join({ id: "w" });
  await settle();
  const holder: Holder = { taskId: "t", attempt: 1, signal: new AbortController().signal };
  const gate = () => drover.state.gates.get("llm" as never);
  return {
    ...{ drover, clock, settle, permits, holder, asked, warnings, wire, sessions },
    held: () => gate()?.held.size ?? 0,
    queued: () => gate()?.queue.entries.size ?? 0,
    blockedUntil: async () => (await drover.gates())[0]?.blockedUntil,
  };
}

/** A call that waits for the test to end it. */
function openCall() {
  const wait = Promise.withResolvers<string>();
  let calls = 0;
  return {
    call: () => {
      calls++;
      return wait.promise;
    },
    end: () => wait.resolve("answer"),
    calls: () => calls,
  };
}

test("a call goes out under a permit, and the permit goes back with what it used", async () => {
  const { permits, holder, settle, held, asked, sessions } = await kit();
  const first = openCall();
  const called = permits.withPermit(
    "llm",
    (permit) => {
      permit.usage({ inputTokens: 10, outputTokens: 5 });
      return first.call();
    },
    { tokens: 100 },
    holder,
  );
  await settle();
  assert.equal(held(), 1);
  first.end();
  assert.equal(await called, "answer");
  assert.equal(held(), 0);
  assert.deepEqual(asked, ["ask call-1", "settle call-1"]);
  assert.deepEqual([...sessions], ["the session of w"], "every call says as whom");
});

test("a call that is queued keeps its place over long polls and a server that was away", async () => {
  const { permits, holder, settle, clock, queued, asked, wire } = await kit();
  const [first, second, third] = [openCall(), openCall(), openCall()];
  const calls = [first, second].map(({ call }) => permits.withPermit("llm", call, undefined, holder));
  await settle();
  await clock.advance(25_000);
  wire.isUp = false;
  await clock.advance(20_000);
  wire.isUp = true;
  calls.push(permits.withPermit("llm", third.call, undefined, holder));
  await clock.advance(10_000);
  assert.equal(queued(), 2);
  assert.ok(asked.filter((one) => one === "ask call-2").length >= 3, "it asked again under its id");
  first.end();
  await settle();
  assert.deepEqual([second.calls(), third.calls()], [1, 0], "who asked first goes first");
  second.end();
  third.end();
  await Promise.all(calls);
});

test("a 429 is told to the gate, the permit goes back, and the call goes out again after the rest", async () => {
  const { permits, holder, settle, clock, held, blockedUntil } = await kit();
  let calls = 0;
  const called = permits.withPermit(
    "llm",
    () => {
      if (++calls === 1) throw limited(5000);
      return "answer";
    },
    undefined,
    holder,
  );
  await settle();
  assert.deepEqual([calls, held()], [1, 0]);
  assert.equal(await blockedUntil(), clock.now() + 5000);
  await clock.advance(4999);
  assert.equal(calls, 1);
  await clock.advance(1);
  assert.equal(await called, "answer");
});

test("a call that is throttled ten times is given up with the provider's error", async () => {
  const { permits, holder, clock, held, queued } = await kit();
  let calls = 0;
  const called = permits.withPermit(
    "llm",
    () => {
      calls++;
      throw limited(0);
    },
    undefined,
    holder,
  );
  const refused = assert.rejects(called, { status: 429 });
  await clock.advance(20 * 64_000);
  await refused;
  assert.deepEqual([calls, held(), queued()], [10, 0, 0]);
});

test("an error of the call itself gives the permit back and is thrown on", async () => {
  const { permits, holder, held } = await kit();
  const boom = (): never => {
    throw new Error("boom");
  };
  for (const call of [boom, async () => boom()])
    await assert.rejects(permits.withPermit("llm", call, undefined, holder), /boom/);
  assert.equal(held(), 0);
});

test("a call that is given up while it waits takes its ticket along, by either signal", async () => {
  const { permits, holder, settle, queued } = await kit();
  const first = openCall();
  const out = permits.withPermit("llm", first.call, undefined, holder);
  await settle();
  const [own, attempt] = [new AbortController(), new AbortController()];
  const waiting = [
    permits.withPermit("llm", () => 1, { signal: own.signal }, holder),
    permits.withPermit("llm", () => 1, undefined, { ...holder, signal: attempt.signal }),
  ];
  await settle();
  assert.equal(queued(), 2);
  const refused = waiting.map((one) => assert.rejects(one, /never mind/));
  own.abort(new Error("never mind"));
  attempt.abort(new Error("never mind"));
  await Promise.all(refused);
  await settle();
  assert.equal(queued(), 0);
  const before = AbortSignal.abort(new Error("too late"));
  await assert.rejects(
    permits.withPermit("llm", () => 1, { signal: before }, holder),
    /too late/,
  );
  first.end();
  await out;
});

/** A call has its permit, and ends while the server is away. */
async function endWhileAway({ permits, holder, settle, wire }: Awaited<ReturnType<typeof kit>>) {
  const { call, end } = openCall();
  const called = permits.withPermit("llm", call, undefined, holder);
  await settle();
  wire.isUp = false;
  end();
  return { called };
}

test("a server that is away does not keep the answer of a call from its handler", async () => {
  const parts = await kit();
  const { clock, warnings } = parts;
  const { called } = await endWhileAway(parts);
  await clock.advance(2000);
  assert.equal(await called, "answer");
  assert.deepEqual(warnings, []);
});

test("what was settled and dropped while the server was away is brought when it is back", async () => {
  const { permits, holder, settle, clock, wire, warnings, held, queued } = await kit();
  const [first, own] = [openCall(), new AbortController()];
  const called = permits.withPermit("llm", first.call, undefined, holder);
  await settle();
  const waiting = assert.rejects(
    permits.withPermit("llm", () => 1, { signal: own.signal }, holder),
    /never mind/,
  );
  await settle();
  wire.isUp = false;
  first.end();
  own.abort(new Error("never mind"));
  await clock.advance(50_000);
  await Promise.all([called, waiting]);
  assert.deepEqual([held(), queued()], [1, 1]);
  wire.isUp = true;
  await clock.advance(10_000);
  assert.deepEqual([held(), queued(), warnings], [0, 0, []]);
});

test("a settlement is kept as long as its permit is good, by the server's word, and then given up", async () => {
  const parts = await kit({ permitTtl: "1h" });
  const { clock, warnings, asked } = parts;
  const { called } = await endWhileAway(parts);
  await clock.advance(3_590_000);
  assert.equal(await called, "answer");
  assert.deepEqual(warnings, []);
  await clock.advance(20_000);
  assert.match(warnings.join(), /^permit call-1 was not settled: the connection broke$/);
  const tries = asked.length;
  assert.ok(tries < 400, `${tries} calls in an hour: one every 10 s`);
  await clock.advance(60_000);
  assert.equal(asked.length, tries);
});

test("a worker that goes waits a little for its settlements, and keeps none", async () => {
  const parts = await kit();
  const { permits, settle, clock, warnings, asked } = parts;
  const { called } = await endWhileAway(parts);
  await clock.advance(2000);
  await called;
  const flushed = permits.flush(2000);
  await clock.advance(2000);
  await flushed;
  await settle();
  assert.match(warnings.join(), /^permit call-1 was not settled: the connection broke$/);
  const tries = asked.length;
  await clock.advance(60_000);
  assert.equal(asked.length, tries);
});

test("a 429 that the gate hears of late shuts it no longer than the provider asked for", async () => {
  const { permits, holder, settle, clock, wire, blockedUntil } = await kit();
  const blocked = clock.now() + 60_000;
  const own = new AbortController();
  const call = (): never => {
    wire.isUp = false;
    throw limited(60_000);
  };
  const called = assert.rejects(permits.withPermit("llm", call, { signal: own.signal }, holder), /never mind/);
  await settle();
  await clock.advance(20_000);
  wire.isUp = true;
  await clock.advance(10_000);
  assert.equal(await blockedUntil(), blocked);
  own.abort(new Error("never mind"));
  await called;
});

test("what the server refuses is thrown to the handler; a wrong call is refused by name", async () => {
  const { permits, holder } = await kit();
  await assert.rejects(
    permits.withPermit("no gate", () => 1, undefined, holder),
    { code: "bad_request" },
  );
  await assert.rejects(
    permits.withPermit("llm", () => 1, undefined, { ...holder, attempt: 9 }),
    { code: "stale_attempt" },
  );
  await assert.rejects(permits.withPermit("llm", 1 as never, undefined, holder), /call must be a function/);
  await assert.rejects(
    permits.withPermit("llm", () => 1, { clas: "high" } as never, holder),
    /options\.clas is not known/,
  );
  const usage = ({ usage }: { usage(used: object): void }): void => usage({ tokens: 1 });
  await assert.rejects(permits.withPermit("llm", usage, undefined, holder), /usage\.tokens is not known/);
});

test("a call names the task that its attempt is of, and goes by its id alone where the server is older", async () => {
  const { permits, holder, drover, wire, asked } = await kit();
  const { seq: taskSeq } = drover.state.tasks.get("t" as never) as { seq: number };
  assert.equal(await permits.withPermit("llm", () => 1, undefined, { ...holder, taskSeq }), 1);
  await assert.rejects(
    permits.withPermit("llm", () => 1, undefined, { ...holder, taskSeq: taskSeq + 1 }),
    { code: "stale_attempt" },
  );
  wire.isOld = true;
  assert.equal(await permits.withPermit("llm", () => 2, undefined, { ...holder, taskSeq: taskSeq + 1 }), 2);
  assert.deepEqual(asked.slice(-3), ["ask call-3", "ask call-3", "settle call-3"]);
});
