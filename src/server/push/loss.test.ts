/**
 * A click is not repeated: what was posted and then lost ends, its outcome unknown, however it was lost.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Instance, network, type PushWorld, pushWorld } from "../../../test/kits/push-world.ts";
import type { OutboundAnswer, OutboundRequest } from "../../http/outbound.ts";
import { decodeEvent } from "../../log/format/codec.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createPushAttempts } from "./attempts.ts";

const OFFER = { capabilities: ["tab:a"] };
const UNKNOWN = "its outcome is unknown: attempt 1 had begun and was lost (worker-lost), and onLoss is fail";

async function kindsIn(log: Log): Promise<string[]> {
  const kinds: string[] = [];
  for await (const batch of log.read(0 as never))
    for (const { bytes } of batch.records) kinds.push(decodeEvent(bytes, 1 as never).event.kind);
  return kinds;
}

type Stage = { kit: PushWorld; browser: Instance; reopen: (isClosed: boolean) => Promise<PushWorld> };

/** A click that was posted, and ways to go on. */
async function posted(task: object): Promise<Stage> {
  const net = network();
  const browser = net.instance("browser:1");
  const log = createMemoryLog();
  const kit = await pushWorld({ net, log: { ...log, close: async () => {} } });
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
  await kit.submit("t", { tabId: "a", ...task });
  assert.equal(browser.posts.length, 1);
  const reopen = async (isClosed: boolean): Promise<PushWorld> => {
    if (isClosed) await kit[Symbol.asyncDispose]();
    const next = await pushWorld({ net, log: { ...log, close: async () => {} }, at: kit.clock.now() + 1000 });
    await next.driver.resume();
    await next.clock.advance(60_000);
    return next;
  };
  return { kit, browser, reopen };
}

const LOSSES: readonly { name: string; lose: (stage: Stage) => Promise<PushWorld> }[] = [
  { name: "the server stopped in good order", lose: ({ reopen }) => reopen(true) },
  { name: "the server died", lose: ({ reopen }) => reopen(false) },
  {
    name: "its worker registered anew",
    lose: async ({ kit, browser }) => {
      await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
      await kit.clock.advance(60_000);
      return kit;
    },
  },
  {
    name: "its worker was given up and came back",
    lose: async ({ kit, browser }) => {
      browser.be("dead");
      await kit.clock.advance(30_000);
      browser.be("up");
      await kit.clock.advance(60_000);
      return kit;
    },
  },
];

for (const { name, lose } of LOSSES) {
  test(`a task with a tab that was posted is not posted again after ${name}`, async () => {
    const stage = await posted({});
    const { drover } = await lose(stage);
    const { state, error, onLoss, attempt } = await drover.task("t");
    assert.deepEqual([state, error, onLoss, attempt], ["failed", UNKNOWN, "fail", 1]);
    assert.equal(stage.browser.posts.length, 1);
  });

  test(`with onLoss: retry it is, after ${name}`, async () => {
    const stage = await posted({ onLoss: "retry" });
    const { drover } = await lose(stage);
    assert.equal(stage.browser.posts.at(-1)?.request.headers["X-Drover-Attempt"], "2");
    assert.equal((await drover.task("t")).onLoss, "retry");
  });
}

test("the log has the attempt as running before it is posted", async () => {
  const net = network();
  const browser = net.instance("browser:1");
  const log = createMemoryLog();
  const seen: Promise<string[]>[] = [];
  const exchange: typeof net.exchange = (request) => {
    if (request.method === "POST") seen.push(kindsIn(log));
    return net.exchange(request);
  };
  await using kit = await pushWorld({ net: { ...net, exchange }, log });
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
  await kit.submit("t", { tabId: "a" });
  assert.equal((await seen[0])?.at(-1), "attempt-started");
});

test("a task that waits for a slot of its worker was not posted, and may run again", async () => {
  await using kit = await pushWorld({ config: { scheduler: { placement: { maxQueuePerWorker: 1 } } } });
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
  await kit.submit("first", { tabId: "a" });
  await kit.submit("second", { tabId: "a" });
  await kit.clock.advance(60_000);
  assert.deepEqual([await kit.stateOf("first"), await kit.stateOf("second")], ["running", "assigned"]);
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
  await kit.settle();
  browser.posts.at(-1)?.answer(200);
  await kit.settle();
  assert.deepEqual([await kit.stateOf("first"), await kit.stateOf("second")], ["failed", "done"]);
});

test("a slot that becomes free is given to the next at once", async () => {
  await using kit = await pushWorld({ config: { scheduler: { placement: { maxQueuePerWorker: 3 } } } });
  const browser = kit.instance("browser:1");
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  for (const id of ["t", "u", "v"]) await kit.submit(id);
  for (const [index, id] of ["t", "u", "v"].entries()) {
    assert.equal(browser.posts.length, index + 1);
    browser.posts[index]?.answer(200);
    await kit.settle();
    assert.equal(await kit.stateOf(id), "done");
  }
});

test("one that is cancelled in the answer that would let it be posted is not posted", () => {
  const posts: unknown[] = [];
  const clock = createHandClock({ at: 0 });
  const exchange = async (request: unknown): Promise<never> => {
    posts.push(request);
    throw new Error("nobody is asked");
  };
  const world = { clock, exchange, version: "0.0.0", onProblem: () => {} };
  const attempts = createPushAttempts({
    target: { endpoint: "http://b:1", path: null },
    slots: 1,
    world,
    onNews: () => {},
  });
  const task = { taskId: "t", state: "assigned", attempt: 1, action: "click" } as const;
  attempts.take([{ taskId: "t", attempt: 1, task, leaseUntil: "" }]);
  const named = attempts.running();
  assert.deepEqual([named, attempts.isNaming()], [[{ taskId: "t", attempt: 1 }], true]);
  attempts.cancel(named);
  attempts.post(named);
  assert.deepEqual([posts, attempts.results()], [[], [{ taskId: "t", attempt: 1, outcome: "cancelled" }]]);
});

test("the answer to an earlier task of the same id is not that of a later one", async () => {
  const answers: PromiseWithResolvers<OutboundAnswer>[] = [];
  const signals: AbortSignal[] = [];
  const exchange = ({ signal }: OutboundRequest): Promise<OutboundAnswer> => {
    const answer = Promise.withResolvers<OutboundAnswer>();
    answers.push(answer);
    signals.push(signal);
    return answer.promise;
  };
  const world = { clock: createHandClock({ at: 0 }), exchange, version: "0.0.0", onProblem: () => {} };
  const target = { endpoint: "http://b:1", path: null };
  const attempts = createPushAttempts({ target, slots: 2, world, onNews: () => {} });
  const task = { taskId: "t", state: "assigned", attempt: 1, action: "click" } as const;
  const name = (taskSeq: number) => ({ taskId: "t", attempt: 1, taskSeq });
  const read = async () => ({ bytes: Buffer.alloc(0), isWhole: true });
  const done: OutboundAnswer = { status: 200, headers: {}, read, drop: () => {} };
  for (const seq of [4, 9]) {
    attempts.take([{ ...name(seq), task }]);
    assert.deepEqual(attempts.running(), [name(seq)]);
    attempts.post([name(4), name(seq)]);
  }
  assert.deepEqual([answers.length, signals.map(({ aborted }) => aborted)], [2, [true, false]]);
  attempts.cancel([name(4)]);
  for (const answer of answers) answer.resolve(done);
  await world.clock.settle();
  assert.deepEqual(attempts.results(), [{ ...name(9), outcome: "done" }]);
  attempts.confirm([name(4)]);
  assert.equal(attempts.results().length, 1);
  attempts.confirm([name(9)]);
  assert.equal(attempts.results().length, 0);
});
