/**
 * The engine as a whole: alarms to the millisecond, pausing, reloading, one owner per data directory.
 */
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLogInHand } from "../../test/kits/log-in-hand.ts";
import { fewTurns } from "../../test/kits/waits.ts";
import { snapshotLines } from "../core/snapshot/snapshot.ts";
import { LogFailure } from "../log/log.ts";
import { createHandClock } from "../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../testing/index.ts";
import { openDrover } from "./drover.ts";
import { TaskRequeue } from "./workers/local-workers.ts";

const AT = 1_000_000;
const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

/** When tasks started, by id, on a worker that runs what `act` says. */
async function world(
  config: object,
  act: (taskId: string, attempt: number, kit: TestDrover) => unknown = () => {},
): Promise<TestDrover & { starts: string[] }> {
  const kit = await createTestDrover({ at: AT, config });
  const starts: string[] = [];
  await kit.drover.worker({ slots: 9 }, ({ taskId, attempt }) => {
    starts.push(`${taskId} ${kit.clock.now() - AT}`);
    return act(taskId, attempt, kit);
  });
  return { ...kit, starts };
}

const limited = Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 7000 });
const alarms: { name: string; config?: object; tell: (kit: TestDrover) => Promise<unknown>; starts: string[] }[] = [
  {
    name: "notBefore",
    tell: ({ drover }) => drover.submit(task("t", { notBefore: AT + 4321 })),
    starts: ["t 4321"],
  },
  {
    name: "the rest a task asked for",
    tell: ({ drover }) => drover.submit(task("requeue")),
    starts: ["requeue 0", "requeue 5000"],
  },
  {
    name: "a gate's block",
    tell: async ({ drover }) => {
      let isThrottled = false;
      void drover.withPermit("llm", () => {
        if (!isThrottled) {
          isThrottled = true;
          throw limited;
        }
      });
      await fewTurns();
      await drover.submit(task("t", { provider: "llm" }));
    },
    starts: ["t 7000"],
  },
  {
    name: "tokens leaving the budget's window",
    config: { projects: { default: { budget: { limit: 100, window: "10s" } } } },
    tell: async ({ drover, clock, settle }) => {
      await drover.submit(task("a", { estimatedTokens: 60 }));
      await settle();
      await clock.advance(2000);
      await drover.submit(task("b", { estimatedTokens: 60 }));
    },
    // A window is summed in a thousand buckets, which expire late: never before the ten seconds are over.
    starts: ["a 0", "b 10009"],
  },
  {
    name: "a timeout, its grace, and the rest after it",
    config: { workers: { killGrace: 3000 }, scheduler: { retry: { base: 1, max: 1 } } },
    tell: ({ drover }) => drover.submit(task("hang", { timeoutMs: 2000, maxAttempts: 2 })),
    starts: ["hang 0", "hang 5001"],
  },
];
for (const { name, config = {}, tell, starts: expected } of alarms)
  test(`an alarm is exact: ${name}`, async () => {
    const kit = await world(config, (taskId, attempt) => {
      if (taskId === "requeue" && attempt === 1) throw new TaskRequeue("later", { retryAfterMs: 5000 });
      return taskId === "hang" ? new Promise(() => {}) : undefined;
    });
    await tell(kit);
    await kit.settle();
    await kit.clock.advance(60_000);
    assert.deepEqual(kit.starts, expected);
  });

test("P12 a deadline is exact, queued or running, and counts as what it is", async () => {
  const kit = await world({ scheduler: { perType: { code: 1 } } }, () => new Promise(() => {}));
  await kit.drover.submit(task("running", { type: "code", deadline: AT + 5000 }));
  await kit.drover.submit(task("queued", { type: "code", deadline: AT + 5000 }));
  await kit.clock.advance(4999);
  assert.equal((await kit.drover.task("queued")).state, "queued");
  await kit.clock.advance(1);
  const [running, queued] = [await kit.drover.task("running"), await kit.drover.task("queued")];
  assert.deepEqual([running.state, running.error], ["failed", "deadline exceeded"]);
  assert.deepEqual([queued.state, queued.error], ["failed", "deadline exceeded while queued"]);
  assert.equal(queued.completedAt, new Date(AT + 5000).toISOString());
  const { metrics } = await kit.drover.stats();
  assert.deepEqual([metrics.tasksFailed, metrics.tasksExpired], [2, 1]);
});

test("C19 an idle fleet writes nothing to its log, however long it idles", async () => {
  const kit = await world({});
  const { seq } = kit.drover.state;
  await kit.clock.advance(3_600_000);
  assert.equal(kit.drover.state.seq, seq);
});

test("pausing the fleet, a project or a task stops starts there and nowhere else", async () => {
  const kit = await world({});
  const { drover } = kit;
  await drover.putProject("p", {});
  await drover.pause();
  await drover.pause({ project: "p" });
  await drover.submit(task("in-p", { project: "p" }));
  await drover.submit(task("alone"));
  await drover.submit(task("free"));
  await drover.pause({ task: "alone" });
  await kit.settle();
  assert.deepEqual(kit.starts, []);
  await drover.resume();
  await kit.settle();
  assert.deepEqual(kit.starts, ["free 0"]);
  await drover.resume({ task: "alone" });
  await kit.settle();
  assert.deepEqual(kit.starts, ["free 0", "alone 0"]);
  assert.equal((await drover.projects()).find(({ id }) => id === "p")?.status, "paused");
  await drover.resume({ project: "p" });
  await drover.resume({ project: "p" });
  await kit.settle();
  assert.deepEqual(kit.starts, ["free 0", "alone 0", "in-p 0"]);
  await assert.rejects(drover.pause({ project: "nobody" }), { code: "not_found" });
  await assert.rejects(drover.pause({ task: "free" }), { code: "conflict" });
});

test("P14 a reload is all or nothing, and what it changes is in force at once", async () => {
  const kit = await world({ scheduler: { maxInFlight: 1 } }, () => new Promise(() => {}));
  for (const id of ["a", "b", "c"]) await kit.drover.submit(task(id));
  await kit.settle();
  assert.equal(kit.starts.length, 1);
  const before = [...snapshotLines(kit.drover.state)];
  const bad = { scheduler: { maxInFlight: 3, retry: { base: "10s", max: "1s" } } };
  await assert.rejects(kit.drover.reload(bad), { code: "bad_request", message: /^scheduler\.retry\.max/ });
  await assert.rejects(kit.drover.reload({ scheduler: { maxInFlight: 3, maxQueue: 0 } }), { message: /maxQueue is 0/ });
  assert.deepEqual([...snapshotLines(kit.drover.state)], before);
  const config = await kit.drover.reload({ scheduler: { maxInFlight: 2 } });
  await kit.settle();
  assert.equal(kit.starts.length, 2, "P5 raising a limit wakes who waits for it");
  assert.equal((await kit.drover.stats()).config.maxInFlight, config.scheduler.maxInFlight);
  await kit.drover.reload({});
  assert.equal((await kit.drover.stats()).config.maxInFlight, 50, "what is absent has its default again");
});

test("putProject registers, changes what it names, and keeps the rest", async () => {
  const { drover } = await createTestDrover({ config: { projects: { p: { weight: 3 } } } });
  const first = await drover.putProject("p", { budget: { limit: 10 } });
  assert.deepEqual([first.weight, first.budget.limit, first.budget.window], [3, 10, 86_400_000]);
  const second = await drover.putProject("p", { weight: 1.5, budget: { window: "1h" } });
  assert.deepEqual([second.weight, second.budget.limit, second.budget.window], [1.5, 10, 3_600_000]);
  assert.equal((await drover.putProject("p", { budget: { limit: null } })).budget.limit, null);
});

test("a data directory has one owner, and is free again when it closes", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-owner-"));
  const first = await openDrover({ data });
  await first.submit(task("t"));
  await assert.rejects(openDrover({ data }), (error) => {
    assert.ok(error instanceof LogFailure);
    assert.match(error.message, new RegExp(`in use by process ${process.pid}`));
    return error.code === "locked";
  });
  assert.equal((await first.task("t")).state, "queued", "the owner did not notice");
  await first.close();
  await using second = await openDrover({ data });
  assert.equal((await second.task("t")).state, "queued");
  await second.close();
  await rm(data, { recursive: true });
});

test("a bad config opens nothing: no directory, no file", async () => {
  const home = await mkdtemp(join(tmpdir(), "drover-none-"));
  const data = join(home, "data");
  await assert.rejects(openDrover({ data, config: { scheduler: { maxInFlight: 0 } } }), { code: "bad_request" });
  assert.deepEqual(await readdir(home), []);
  await rm(home, { recursive: true });
});

test("an open that fails leaves nothing running", async () => {
  const hand = createLogInHand();
  const clock = createHandClock({ at: 0 });
  let alarms = 0;
  const counting = {
    ...clock,
    ringAt: () => {
      alarms++;
      return () => void alarms--;
    },
  };
  hand.next({ type: "fail", error: new LogFailure("disk-full", "no room") });
  await assert.rejects(openDrover({ log: hand.log, clock: counting }), { code: "log_failed", message: "no room" });
  assert.equal(alarms, 0);
  await assert.rejects(hand.log.head(), { code: "closed" });
});
