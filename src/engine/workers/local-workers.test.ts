/**
 * What a handler returns, throws and is told.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { fewTurns, isPending } from "../../../test/kits/waits.ts";
import { LogFailure } from "../../log/log.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { RESULT_BYTES_MAX } from "../../std/index.ts";
import { createTestDrover, type TestDrover, type TestDroverOptions } from "../../testing/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { type Handler, type TaskContext, TaskRequeue } from "./local-workers.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

/** A Drover with one worker and one task, at rest. */
async function story(handler: Handler, more: object = {}, options: TestDroverOptions = {}): Promise<TestDrover> {
  const kit = await createTestDrover(options);
  await kit.drover.worker({ id: "w", slots: 4 }, handler);
  await kit.drover.submit(task("t", more));
  await kit.settle();
  return kit;
}

const kindsOf = async ({ drover }: TestDrover): Promise<string[]> => {
  const kinds: string[] = [];
  for await (const { kind, task: id } of drover.events()) if (id === "t") kinds.push(kind);
  return kinds;
};

test("submit, assign, finish: three events, the body as it was given, the result as it was returned", async () => {
  const seen: unknown[] = [];
  const body = { params: { b: 1, a: [null, "é"] }, payload: "deep", type: "code", ref: "r" };
  const kit = await story((given) => {
    seen.push(given);
    return { z: 1, a: ["ok"] };
  }, body);
  assert.deepEqual(seen, [{ ...body, agentId: "ann", action: "build", taskId: "t", attempt: 1 }]);
  const view = await kit.drover.task("t");
  assert.deepEqual([view.state, view.result, view.worker, view.attempt], ["done", { a: ["ok"], z: 1 }, "w", 1]);
  assert.deepEqual(view.params, body.params);
  assert.deepEqual(await kindsOf(kit), ["task-submitted", "task-assigned", "task-done"]);
});

const results: { name: string; returned: unknown; state: string; result?: unknown; error?: RegExp }[] = [
  { name: "nothing is a result", returned: undefined, state: "done", result: undefined },
  { name: "null is a result", returned: null, state: "done", result: null },
  { name: "text is a result", returned: "x", state: "done", result: "x" },
  {
    name: "a result of the greatest size is kept",
    returned: "x".repeat(RESULT_BYTES_MAX - 2),
    state: "done",
    result: "x".repeat(RESULT_BYTES_MAX - 2),
  },
  {
    name: "one byte more is refused for good",
    returned: "x".repeat(RESULT_BYTES_MAX - 1),
    state: "failed",
    error: /result is "262145 bytes".*artifact/,
  },
  { name: "a function is no result", returned: { f: () => 1 }, state: "failed", error: /result\.f is a function/ },
  { name: "a cycle is no result", returned: cycle(), state: "failed", error: /no cycle/ },
  { name: "NaN is no result", returned: [Number.NaN], state: "failed", error: /result\[0\] is NaN/ },
];
for (const { name, returned, state, result, error } of results)
  test(name, async () => {
    const { drover } = await story(() => returned);
    const view = await drover.task("t");
    assert.deepEqual([view.state, view.result, view.attempt], [state, result, 1]);
    assert.match(view.error ?? "", error ?? /^$/);
  });

function cycle(): unknown {
  const round: { self?: unknown } = {};
  round.self = round;
  return round;
}

test("a failure rests, doubling, and the task's iteration rises until its attempts are used up", async () => {
  const startedAt: number[] = [];
  const kit = await createTestDrover({ at: 0, config: { scheduler: { retry: { base: 1000, max: 3000 } } } });
  await kit.drover.worker({}, () => {
    startedAt.push(kit.clock.now());
    throw new Error(`no ${startedAt.length}`);
  });
  await kit.drover.submit(task("t", { maxAttempts: 4, iteration: 2 }));
  await kit.settle();
  assert.equal(kit.drover.state.tasks.get("t" as never)?.ownFailures, 1);
  await kit.clock.advance(60_000);
  const rests = startedAt.slice(1).map((at, index) => at - (startedAt[index] as number));
  for (const [index, base] of [1000, 2000, 3000].entries())
    assert.ok((rests[index] as number) >= base && (rests[index] as number) < base * 1.25, `${rests}`);
  const view = await kit.drover.task("t");
  assert.deepEqual([view.state, view.error, view.attempt], ["failed", "no 4", 4]);
  await kit.drover.retry("t");
  assert.equal(kit.drover.state.tasks.get("t" as never)?.iteration, 6, "2 + 4 failures");
});

const throwers: { name: string; thrown: () => unknown; kind: string; error?: string; restsMs?: number }[] = [
  {
    name: "a permanent error ends the task at once",
    thrown: () => Object.assign(new Error("never"), { permanent: true }),
    kind: "task-failed",
    error: "never",
  },
  { name: "text can be thrown", thrown: () => "boom", kind: "attempt-failed" },
  { name: "nothing can be thrown", thrown: () => undefined, kind: "attempt-failed" },
  { name: "null can be thrown", thrown: () => null, kind: "attempt-failed" },
  { name: "an error without words", thrown: () => new TypeError(), kind: "attempt-failed" },
  { name: "broken text in an error", thrown: () => new Error("\ud800"), kind: "attempt-failed" },
  {
    name: "TaskRequeue gives the task back, after the rest it asks for",
    thrown: () => new TaskRequeue("later", { retryAfterMs: 70_000 }),
    kind: "attempt-lost",
    restsMs: 70_000,
  },
  {
    name: "a provider's 429 counts against nothing, and the task rests as long as the provider asks",
    thrown: () => Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "90" } }),
    kind: "attempt-lost",
    restsMs: 90_000,
  },
  {
    name: "a 529 with an endless wait is believed for a day",
    thrown: () => Object.assign(new Error("overloaded"), { status: 529, retryAfterMs: Number.POSITIVE_INFINITY }),
    kind: "attempt-lost",
    restsMs: 86_400_000,
  },
];
for (const { name, thrown, kind, error, restsMs } of throwers)
  test(name, async () => {
    const kit = await story(() => {
      throw thrown();
    });
    assert.equal((await kindsOf(kit)).at(-1), kind);
    const view = await kit.drover.task("t");
    if (error !== undefined) assert.equal(view.error, error);
    const record = kit.drover.state.tasks.get("t" as never);
    if (restsMs !== undefined) assert.equal(record?.restUntil, kit.clock.now() + restsMs);
    assert.equal(record?.losses, 0);
    assert.ok((await kit.drover.verify()).ok);
  });

/** A handler that notes why it was told to stop, and ends then. */
function listener(): { handler: Handler; reasons: string[] } {
  const reasons: string[] = [];
  const handler = (_: unknown, { signal }: TaskContext): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push((signal.reason as Error).message);
        reject(signal.reason);
      });
    });
  return { handler, reasons };
}

const stops: { name: string; more: object; act: (kit: TestDrover) => Promise<unknown>; end: string; why: string }[] = [
  {
    name: "cancel",
    more: {},
    act: ({ drover }) => drover.cancel("t", { reason: "no longer wanted" }),
    end: "cancelled",
    why: "cancelled: no longer wanted",
  },
  {
    name: "timeout",
    more: { timeoutMs: 5000, maxAttempts: 1 },
    act: ({ clock }) => clock.advance(5000),
    end: "failed",
    why: "stopped: timeout",
  },
  {
    name: "deadline",
    more: { deadline: 1_767_225_605_000 },
    act: ({ clock }) => clock.advance(5000),
    end: "failed",
    why: "deadline exceeded",
  },
  {
    name: "the worker leaving",
    more: {},
    act: ({ drover }) => drover.close(),
    end: "queued",
    why: "its worker leaves",
  },
];
for (const { name, more, act, end, why } of stops)
  test(`the signal fires on ${name}, and not a millisecond early`, async () => {
    const { handler, reasons } = listener();
    const store = createMemoryStore();
    const kit = await story(handler, more, { log: createMemoryLog({ store }) });
    await kit.clock.advance(name === "timeout" || name === "deadline" ? 0 : 1);
    assert.deepEqual(reasons, []);
    await act(kit);
    await kit.settle();
    assert.deepEqual(reasons, [why]);
    assert.equal(kit.drover.state.tasks.get("t" as never)?.phase, end);
  });

test("the signal fires when the budget is overrun, and the task comes back as a loss that asks for more", async () => {
  let spend: TaskContext["usage"] = () => {};
  const { handler, reasons } = listener();
  const config = { projects: { default: { budget: { limit: 1000 } } } };
  const kit = await story(
    (given, context) => {
      spend = context.usage;
      return handler(given, context);
    },
    { estimatedTokens: 100 },
    { config },
  );
  spend({ inputTokens: 900, cacheCreationTokens: 100 });
  await kit.settle();
  assert.deepEqual(reasons, [], "all of it may be used");
  spend({ inputTokens: 900, outputTokens: 1, cacheCreationTokens: 100 });
  await kit.settle();
  assert.deepEqual(reasons, ["stopped: budget"]);
  const record = kit.drover.state.tasks.get("t" as never);
  assert.deepEqual([record?.phase, record?.losses, record?.estimate], ["queued", 1, 1001]);
});

test("a handler that ignores its signal is given up after killGrace, and its late answer is refused", async () => {
  const answers: ((value: string) => void)[] = [];
  const kit = await createTestDrover({ config: { workers: { killGrace: "10s" }, scheduler: { retry: { base: 1 } } } });
  await kit.drover.worker({}, () => new Promise((resolve) => answers.push(resolve)));
  await kit.drover.submit(task("t", { timeoutMs: 1000 }));
  await kit.settle();
  await kit.clock.advance(10_999);
  assert.equal(answers.length, 1, "it holds its slot for the whole grace");
  await kit.clock.advance(2);
  assert.equal(answers.length, 2, "then the task is tried again");
  answers[0]?.("late");
  await kit.settle();
  assert.equal((await kit.drover.task("t")).state, "running");
  answers[1]?.("in time");
  assert.equal((await kit.drover.wait("t")).result, "in time");
});

test("a handler that was given up does not keep a drain waiting", async () => {
  const kit = await createTestDrover({ config: { workers: { killGrace: 5000 } } });
  const worker = await kit.drover.worker({}, () => new Promise(() => {}));
  await kit.drover.submit(task("t"));
  await kit.settle();
  const drained = worker.drain();
  await kit.drover.cancel("t");
  await kit.clock.advance(4999);
  assert.ok(await isPending(drained));
  await kit.clock.advance(1);
  await drained;
});

test("a draining worker finishes what it has and takes no more", async () => {
  const answers: ((value?: unknown) => void)[] = [];
  const kit = await createTestDrover();
  const worker = await kit.drover.worker({}, () => new Promise((resolve) => answers.push(resolve)));
  await kit.drover.submit(task("a"));
  await kit.drover.submit(task("b"));
  await kit.settle();
  const drains = [worker.drain(), worker.drain()];
  assert.ok(await isPending(drains[0] as Promise<void>));
  answers[0]?.();
  await Promise.all(drains);
  await kit.settle();
  assert.deepEqual([(await kit.drover.task("a")).state, (await kit.drover.task("b")).state], ["done", "queued"]);
  assert.equal(answers.length, 1);
  await worker.close();
  await worker.close();
  assert.deepEqual(await kit.drover.workers(), []);
});

test("progress is shown while it runs, and running is said only of what still runs a turn later", async () => {
  let end: (value?: unknown) => void = () => {};
  const kit = await story((_, { progress }) => {
    progress({ step: 1 });
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  const view = await kit.drover.task("t");
  assert.deepEqual([view.state, view.progress], ["running", { step: 1 }]);
  assert.equal((await kindsOf(kit)).at(-1), "attempt-started");
  end();
  const done = await kit.drover.wait("t");
  assert.ok(!("progress" in done));
});

test("what an attempt used is charged once: the larger of its permits and its own word", async () => {
  const kit = await story(async (_, { usage, withPermit }) => {
    await withPermit("llm", (permit) => permit.usage({ inputTokens: 70, outputTokens: 30 }));
    usage({ inputTokens: 150 });
    usage({ inputTokens: 20 });
  });
  const [project] = await kit.drover.projects();
  assert.deepEqual([project?.charged, project?.spent, project?.reserved], [1150, 150, 0]);
});

test("P6 closing keeps the rest of the queue in the log, and what ran is queued again", async () => {
  const store = createMemoryStore();
  const { handler, reasons } = listener();
  const kit = await story(handler, {}, { log: createMemoryLog({ store }) });
  await kit.drover.submit(task("next", { needs: ["t"] }));
  await kit.drover.close();
  assert.deepEqual(reasons, ["its worker leaves"]);
  const again = await createTestDrover({ log: createMemoryLog({ store }), at: kit.clock.now() });
  assert.deepEqual(
    [(await again.drover.task("t")).state, (await again.drover.task("next")).state],
    ["queued", "waiting"],
  );
  const seen: string[] = [];
  await again.drover.worker({}, ({ taskId, attempt }) => void seen.push(`${taskId}#${attempt}`));
  await again.settle();
  assert.deepEqual(seen, ["t#2", "next#1"]);
});

test("when the log fails, handlers are told to stop, drains end, and closing a worker is no fault", async () => {
  const hand = createLogInHand();
  const { drover, settle } = await createTestDrover({ log: hand.log });
  const { handler, reasons } = listener();
  const worker = await drover.worker({}, handler);
  await drover.submit(task("t"));
  await settle();
  const drained = worker.drain();
  await fewTurns();
  hand.next({ type: "fail", error: new LogFailure("io", "the disk is gone") });
  await assert.rejects(drover.submit(task("u")), { code: "log_failed" });
  await assert.rejects(drained, DroverError);
  assert.deepEqual(reasons, ["the disk is gone"]);
  await worker.close();
  await drover.close();
});

test("a worker's name is taken while it is here, and free when it has left", async () => {
  const { drover } = await createTestDrover();
  const worker = await drover.worker({ id: "w" }, () => 1);
  await assert.rejects(
    drover.worker({ id: "w" }, () => 1),
    { code: "conflict", message: /w is here already/ },
  );
  await worker.close();
  await using _again = await drover.worker({ id: "w" }, () => 1);
});

test("a worker runs no more at once than its slots, whatever else was assigned to it", async () => {
  const gates: (() => void)[] = [];
  let active = 0;
  let most = 0;
  const kit = await createTestDrover({ config: { scheduler: { placement: { maxQueuePerWorker: 3 } } } });
  await kit.drover.worker({ id: "w", slots: 2 }, async () => {
    most = Math.max(most, ++active);
    await new Promise<void>((resolve) => {
      gates.push(resolve);
    });
    active--;
  });
  for (const id of ["a", "b", "c", "d", "e", "f"]) await kit.drover.submit(task(id));
  await kit.settle();
  assert.deepEqual([kit.drover.state.inFlight, active], [5, 2], "five are assigned, two run");
  await kit.drover.cancel("c");
  await kit.settle();
  assert.equal(kit.drover.state.tasks.get("c" as never)?.attempt, null, "what had not begun is over at once");
  while (gates.length > 0) {
    gates.shift()?.();
    await kit.settle();
  }
  const { tasksCompleted, tasksCancelled } = (await kit.drover.stats()).metrics;
  assert.deepEqual([most, tasksCompleted, tasksCancelled], [2, 5, 1]);
});

test("a task whose body is gone fails and says so, and no handler is called for it", async () => {
  const store = createMemoryStore();
  const first = await createTestDrover({ log: createMemoryLog({ store }) });
  await first.drover.submit(task("t"));
  await first.drover.close();
  const log = createMemoryLog({ store });
  const kit = await createTestDrover({ log: { ...log, readRecord: async () => null } });
  let calls = 0;
  await kit.drover.worker({}, () => ++calls);
  await kit.settle();
  const view = await kit.drover.task("t");
  assert.deepEqual([calls, view.state, view.attempt], [0, "failed", 1]);
  assert.match(view.error ?? "", /its stored body is damaged/);
});

test("a worker that may run none leaves tasks queued and says why, until it may again", async () => {
  const kit = await createTestDrover();
  const worker = await kit.drover.worker({ id: "w", slots: 2, limit: 0 }, () => 1);
  await kit.drover.submit(task("t"));
  await kit.settle();
  await worker.limit(0, "the disk is full");
  assert.equal((await kit.drover.task("t")).state, "queued");
  assert.match(JSON.stringify(await kit.drover.why("t")), /the disk is full/);
  await worker.limit(1);
  await kit.settle();
  assert.equal((await kit.drover.task("t")).state, "done");
  await assert.rejects(worker.limit(-1), /limit/);
});

test("a limit above its slots lets a worker run no more than its slots", async () => {
  const kit = await createTestDrover({ config: { scheduler: { placement: { maxQueuePerWorker: 10 } } } });
  let running = 0;
  const held = Promise.withResolvers<void>();
  const worker = await kit.drover.worker({ id: "w", slots: 2, limit: 50 }, async () => {
    running++;
    await held.promise;
  });
  for (const id of ["a", "b", "c", "d", "e"]) await kit.drover.submit(task(id));
  await kit.settle();
  assert.equal(running, 2);
  await worker.limit(7);
  await kit.settle();
  assert.equal(running, 2);
  held.resolve();
});

test("why says what to do about a task whose action has no name in the log", async () => {
  const kit = await createTestDrover();
  await kit.drover.worker({ id: "w", actions: ["exec"] }, () => 1);
  await kit.drover.submit({ ...task("t"), action: "write the page" });
  const { summary } = await kit.drover.why("t");
  assert.match(summary, /\(a sentence, or from a log of an older version: cancel and submit it again, or have/);
});
