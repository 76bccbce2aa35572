import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_FILES } from "../../../test/kits/no-files.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createHandlers, type Handlers, type TaskContext } from "./handlers.ts";
import { createLeaseCell, type FromHandlers, type Handed } from "./messages.ts";
import { reportOfValue } from "./outcome.ts";
import { createProgressReports } from "./progress.ts";

type Run = {
  readonly name: string;
  readonly context: TaskContext;
  end(value?: unknown): Promise<void>;
  fail(error: unknown): Promise<void>;
};

/** Handlers that a test ends by hand. */
function kit(slots = 1, isLeaseHeld = (): boolean => true, files = NO_FILES) {
  const begun: number[] = [];
  const early: number[] = [];
  const revoked = new Set<number>();
  const disowned = new Set<number>();
  const clock = createHandClock({ at: 1000 });
  const { settle } = clock;
  const posts: FromHandlers[] = [];
  const runs: Run[] = [];
  const warnings: string[] = [];
  const clients: string[] = [];
  const post = (message: FromHandlers): void => void posts.push(message);
  const warn = (text: string): void => void warnings.push(text);
  const handlers: Handlers = createHandlers({
    clientAs: (token) => {
      clients.push(token);
      return { submit: async ({ id = "" }) => ({ taskId: id, state: "queued", position: 1, createdAt: "" }) };
    },
    ...{ slots, killGraceMs: 500, clock, post, warn, isLeaseHeld },
    reports: createProgressReports({ clock, warn, post: (items) => post({ type: "progress", items }) }),
    permits: {
      withPermit: async (_gate, _call, _options, { taskId, attempt, taskSeq }) => {
        throw new Error(`none for attempt ${attempt} of ${taskId}, event ${taskSeq}`);
      },
      flush: async () => {},
    },
    files,
    identity: () => ({ workerId: "w", session: "", tokenKey: null }),
    cell: {
      setBegun: (count) => void begun.push(count),
      setBegunEarly: (place) => void early.push(place),
      setLooked: () => {},
      isRevoked: (place) => revoked.has(place),
      isDisowned: (place) => disowned.has(place),
    },
    perform: async ({ taskId, attempt }, context, entry) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      runs.push({
        ...{ name: `${taskId}#${attempt}`, context },
        end: async (value) => {
          resolve(value);
          await settle();
        },
        fail: async (error) => {
          reject(error);
          await settle();
        },
      });
      return reportOfValue(await promise, entry.used);
    },
  });
  const ended = () =>
    posts.filter((message) => message.type === "ended").map(({ taskId, report }) => [taskId, report?.outcome ?? null]);
  const start = async (...ids: readonly Handed[]): Promise<void> => {
    handlers.start(ids);
    await settle();
  };
  const names = (): string[] => runs.map(({ name }) => name);
  return {
    begun,
    early,
    revoked,
    disowned,
    clients,
    handlers,
    start,
    posts,
    runs,
    warnings,
    ended,
    advance: clock.advance,
    settle,
    names,
  };
}
const handed = (taskId: string, attempt = 1): Handed => ({
  ...{ taskId, attempt },
  task: { taskId, attempt, state: "assigned", agentId: "ann", action: "go" },
});
const stop = (taskId: string, cause: "cancelled" | "lease-lost" = "cancelled") => [{ taskId, attempt: 1, cause }];

test("as many run as there are slots, in the order they came; the rest waits", async () => {
  const { handlers, start, runs, names, ended } = kit(2);
  await start(...["a", "b", "c"].map((id) => handed(id)));
  assert.deepEqual([names(), handlers.running], [["a#1", "b#1"], 2]);
  await runs[1]?.end("x");
  assert.deepEqual(names(), ["a#1", "b#1", "c#1"]);
  assert.deepEqual(ended(), [["b", "done"]]);
});

test("what is asked back is never begun if it waits for a slot, and goes on if it runs", async () => {
  const { handlers, start, runs, names, ended, settle } = kit(1);
  await start(...["a", "b", "c"].map((id) => handed(id)));
  handlers.giveBack(["a", "b", "nobody"].map((taskId) => ({ taskId, attempt: 1 })));
  assert.deepEqual(ended(), [["b", null]]);
  assert.equal(runs[0]?.context.signal.aborted, false);
  await runs[0]?.end();
  await settle();
  assert.deepEqual(names(), ["a#1", "c#1"]);
  assert.deepEqual(ended(), [
    ["b", null],
    ["a", "done"],
  ]);
});

test("what may not be begun any more is not, and is said not to have been", async () => {
  const { start, revoked, names, ended, begun } = kit(2);
  revoked.add(2);
  revoked.add(3);
  await start(handed("a"), handed("b"), { ...handed("c"), goesOn: true });
  assert.deepEqual([names(), ended(), begun.at(-1)], [["a#1", "c#1"], [["b", null]], 3]);
});

test("what nobody can read has its place, and goes back as what it is", async () => {
  const { handlers, start, begun, names, posts } = kit(2);
  handlers.decline([{ taskId: "bad", attempt: 1 }]);
  assert.deepEqual(begun, [1]);
  await start(handed("a"));
  assert.deepEqual([begun, names()], [[1, 2], ["a#1"]]);
  const report = { outcome: "requeue", error: "its worker could not read it" };
  assert.deepEqual(posts, [{ type: "ended", taskId: "bad", attempt: 1, report }]);
});

test("what another worker may have is not begun, be it kept for this one or not", async () => {
  const { start, disowned, names, ended } = kit(3);
  for (const place of [1, 2]) disowned.add(place);
  await start(handed("a"), { ...handed("b"), goesOn: true }, handed("c"));
  assert.deepEqual(
    [names(), ended()],
    [
      ["c#1"],
      [
        ["a", null],
        ["b", null],
      ],
    ],
  );
});

test("thread and handlers never take the same one: whoever looks second sees what the other said", () => {
  const cell = createLeaseCell();
  cell.setBegun(3);
  assert.equal(cell.revoke(2, 6), 3, "the third was begun before");
  assert.deepEqual([2, 3, 4, 6, 7].filter(cell.isRevoked), [3, 4, 6]);
  cell.setBegunEarly(5);
  assert.equal(cell.revoke(8, 9), 5, "the fifth was begun out of turn");
  assert.deepEqual([2, 4, 8, 9, 10].filter(cell.isRevoked), [4, 8, 9], "what may still wait there stays revoked");
  cell.setBegun(9);
  cell.setLooked(9);
  assert.equal(cell.revoke(12, 14), 9);
  assert.deepEqual([9, 12, 13, 14, 15].filter(cell.isRevoked), [13, 14]);
});

test("what is urgent is begun before what waits for a slot, and after what is urgent too and runs", async () => {
  const { start, runs, names, begun } = kit(1);
  const urgent = (id: string, effectivePriority: number): Handed => {
    const { task, ...rest } = handed(id);
    return { ...rest, task: { ...task, effectivePriority } };
  };
  await start(...["a", "b", "c"].map((id) => handed(id)));
  await start(urgent("soon", -199), urgent("now", -200), handed("d"));
  for (let index = 0; index < 6; index++) await runs[index]?.end();
  assert.deepEqual(names(), ["a#1", "now#1", "b#1", "c#1", "soon#1", "d#1"]);
  assert.equal(begun.at(-1), 6);
});

test("an attempt submits all its children by one client, with its own token", async () => {
  const { clients, start, runs } = kit(2);
  await start({ ...handed("a"), token: "of-a" }, { ...handed("b"), token: "of-b" });
  const submitAll = (at: number): Promise<unknown> =>
    Promise.all(["x", "y"].map((id) => runs[at]?.context.submit({ id, action: "go" })));
  await submitAll(0);
  await submitAll(0);
  await submitAll(1);
  assert.deepEqual(clients, ["of-a", "of-b"]);
});

test("a permit is asked for with all that tells the attempt from others", async () => {
  const { start, runs } = kit();
  await start({ ...handed("a", 2), taskSeq: 17 });
  const asked = runs[0]?.context.withPermit("g", () => 1) ?? Promise.resolve();
  await assert.rejects(asked, /none for attempt 2 of a, event 17/);
});

test("no attempt has a getter of its own: its hidden class would keep it in memory for long", async () => {
  const { start, runs } = kit(1);
  await start(handed("a"));
  const { context } = runs[0] as Run;
  for (const [name, own] of Object.entries(Object.getOwnPropertyDescriptors(context)))
    assert.equal(own.get, undefined, name);
  assert.equal(context.signal, context.signal);
});

test("a task is not begun while an earlier attempt of it still runs here", async () => {
  const { handlers, start, runs, names } = kit(3);
  await start(handed("a"));
  handlers.stop(stop("a", "lease-lost"));
  await start(handed("a", 2), handed("b"));
  assert.deepEqual(names(), ["a#1", "b#1"]);
  await runs[0]?.fail(new Error("stopped"));
  assert.deepEqual(names(), ["a#1", "b#1", "a#2"]);
});

test("how many were begun in their order is counted when they are; one out of turn is told", async () => {
  const { handlers, start, runs, begun, posts } = kit(3);
  await start(handed("a"), handed("b"));
  assert.deepEqual([begun, posts], [[1, 2], []]);
  handlers.stop(stop("a", "lease-lost"));
  await start(handed("a", 2), handed("c"));
  assert.deepEqual([begun.at(-1), posts], [2, [{ type: "began", taskId: "c", attempt: 1 }]]);
  await runs[0]?.fail(new Error("stopped"));
  assert.deepEqual([begun.at(-1), posts.filter(({ type }) => type === "began").length], [4, 1]);
});

test("a name that waits is given to a later task of its id, and the place of the earlier one is counted", async () => {
  const { start, runs, names, begun } = kit(1);
  await start(handed("a"), handed("b"));
  await start(handed("b"));
  await runs[0]?.end();
  assert.deepEqual([names(), begun.at(-1)], [["a#1", "b#1"], 3]);
});

test("what is given back before it was begun is not begun", async () => {
  const { handlers, settle, names } = kit(2);
  handlers.start([handed("a"), handed("b")]);
  handlers.stop([{ taskId: "a", attempt: 1, cause: "not-begun" }]);
  await settle();
  assert.deepEqual(names(), ["b#1"]);
});

test("what is said while a handler keeps the event loop is heard before the next one is begun", async () => {
  const { handlers, start, runs, names } = kit(2);
  const push = runs.push.bind(runs);
  runs.push = (...added) => {
    // As if it had come while this handler computed.
    handlers.stop(stop("b"));
    return push(...added);
  };
  await start(handed("a"), handed("b"));
  assert.deepEqual(names(), ["a#1"]);
});

test("nothing is begun once the lease is over", async () => {
  const { start, names, posts } = kit(1, () => false);
  await start(handed("a"));
  assert.deepEqual(names(), []);
  assert.deepEqual(posts, [{ type: "ended", taskId: "a", attempt: 1, report: null }]);
});

test("what waits and is stopped is never begun, and is confirmed", async () => {
  const { handlers, start, runs, names, ended } = kit();
  await start(handed("a"), handed("b"));
  handlers.stop(stop("b"));
  assert.deepEqual(ended(), [["b", "cancelled"]]);
  await runs[0]?.end();
  assert.deepEqual(names(), ["a#1"]);
});

test("one that does not stop is given up after the kill grace, once", async () => {
  const { handlers, start, runs, ended, advance, warnings } = kit();
  await start(handed("a"), handed("b"));
  handlers.stop([...stop("a"), ...stop("a"), ...stop("nobody")]);
  await advance(499);
  assert.equal(handlers.running, 1);
  assert.deepEqual(ended(), []);
  await advance(1);
  assert.deepEqual([ended(), handlers.running], [[["a", "cancelled"]], 1]);
  assert.equal(warnings.length, 1);
  await runs[0]?.end("too late");
  assert.deepEqual(ended(), [["a", "cancelled"]]);
});

test("one that stops in time is not given up later", async () => {
  const { handlers, start, runs, ended, advance, warnings } = kit();
  await start(handed("a"));
  handlers.stop(stop("a"));
  await runs[0]?.fail(runs[0].context.signal.reason);
  await advance(1000);
  assert.deepEqual([ended(), warnings], [[["a", "failed"]], []]);
});

test("what one that is told to stop has left is kept all the same: it may have ended before it heard", async () => {
  const put = async (_content: unknown, { signal }: { signal?: AbortSignal } = {}) => {
    signal?.throwIfAborted();
    return { hash: "h", size: 1 };
  };
  const { handlers, start, runs, posts } = kit(1, () => true, { ...NO_FILES, put });
  await start(handed("a"));
  const [run] = runs;
  assert.equal(run?.context.signal.aborted, false);
  handlers.stop(stop("a"));
  await run?.context.output("left.txt", "x");
  await run?.end("done");
  const files = [{ path: "left.txt", hash: "h", size: 1 }];
  assert.deepEqual(posts.at(-1), {
    ...{ type: "ended", taskId: "a", attempt: 1 },
    report: { outcome: "done", result: '"done"', files },
  });
});

test("what is reported after the end is not passed on, and usage counts in the report", async () => {
  const { start, runs, posts, advance } = kit();
  await start(handed("a"));
  const [run] = runs;
  run?.context.usage({ inputTokens: 4 });
  run?.context.usage({ inputTokens: 3 });
  assert.throws(() => run?.context.usage({ tokens: 1 } as never), /usage\.tokens is not known/);
  await run?.end(1);
  run?.context.progress("late");
  run?.context.usage({ inputTokens: 9 });
  await advance(1000);
  assert.deepEqual(posts, [
    { type: "progress", items: [{ taskId: "a", attempt: 1, usage: { inputTokens: 4 } }] },
    { type: "ended", taskId: "a", attempt: 1, report: { outcome: "done", result: "1", usage: { inputTokens: 4 } } },
  ]);
});

test("what arrives when all was told to stop is not begun, since its worker leaves", async () => {
  for (const cause of ["closing", "session-lost"] as const) {
    const { handlers, start, runs, ended } = kit();
    handlers.stopAll(cause);
    await handlers.idle();
    await start(handed("a"), handed("b"));
    assert.equal(runs.length, 0);
    assert.deepEqual(ended(), [
      ["a", null],
      ["b", null],
    ]);
  }
});

test("stopping all forgets what waits and resolves idle when the last has ended", async () => {
  const { handlers, start, runs, ended } = kit();
  await start(handed("a"), handed("b"));
  handlers.stopAll("closing");
  assert.deepEqual(ended(), [["b", null]]);
  let isIdle = false;
  const idle = handlers.idle().then(() => {
    isIdle = true;
  });
  await runs[0]?.fail(new Error("x"));
  await idle;
  assert.ok(isIdle);
  await handlers.idle();
});
