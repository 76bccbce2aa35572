/**
 * An object that throws when it is read is the caller's fault, and is refused like any other: with a typed error that
 * names the place, wherever an object is taken. What Drover itself throws is never taken for it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reading } from "../src/engine/base/drover-error.ts";
import { type Drover, DroverError, openDrover } from "../src/engine/index.ts";
import { createTestDrover } from "../src/testing/index.ts";

const bad = (): never => {
  throw new Error("the caller's own");
};
/** The fields, and one more whose getter throws. */
const trap = (key: string, more: object = {}): never =>
  Object.defineProperty({ ...more }, key, { get: bad, enumerable: true }) as never;
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
const revoked = proxy as never;
const closed = new Proxy({}, { ownKeys: bad }) as never;
const hostile = new Proxy({}, { get: bad, getPrototypeOf: bad }) as never;
const task = { agentId: "ann", action: "x" };

const rows: [claim: string, call: (drover: Drover) => unknown, field: string][] = [
  ["a field of a task", (drover) => drover.submit(trap("action", { agentId: "ann" })), "action"],
  ["a part of a task", (drover) => drover.submit({ ...task, resources: trap("memoryBytes") }), "resources.memoryBytes"],
  ["deep in a payload", (drover) => drover.submit({ ...task, payload: [{ deep: trap("x") }] }), "payload[0].deep.x"],
  ["an item of a list", (drover) => drover.submit({ ...task, needs: trapList() }), "needs[1]"],
  ["a closed body", (drover) => drover.submit(closed), "(body)"],
  ["a revoked body", (drover) => drover.submit(revoked), "(body)"],
  ["a revoked field", (drover) => drover.submit({ ...task, type: revoked }), "type"],
  ["a field that cannot be shown", (drover) => drover.submit({ ...task, type: hostile }), "type"],
  ["a batch", (drover) => drover.submitBatch(trap("project", { agentId: "ann", tasks: [task] })), "project"],
  ["the list of a batch", (drover) => drover.submitBatch({ agentId: "ann", tasks: trapList() }), "tasks[1]"],
  ["a reason to cancel", (drover) => drover.cancel("t", trap("reason")), "options.reason"],
  ["closed options", (drover) => drover.cancel("t", closed), "options"],
  ["revoked options", (drover) => drover.cancel("t", revoked), "options"],
  ["a filter to cancel by", (drover) => drover.cancelWhere(trap("project")), "project"],
  ["all to cancel", (drover) => drover.cancelWhere(trap("all")), "all"],
  ["a filter", (drover) => drover.tasks(trap("state")), "state"],
  ["the limit of a page", (drover) => drover.tasks(trap("limit")), "limit"],
  ["a patch", (drover) => drover.patch("t", trap("priority")), "priority"],
  ["a signal to wait", (drover) => drover.wait("t", trap("signal")), "options.signal"],
  ["a signal to end", (drover) => drover.ended("t", trap("signal")), "options.signal"],
  ["why of the past", (drover) => drover.why("t", trap("at")), "options.at"],
  ["a worker", (drover) => drover.worker(trap("slots"), () => 1), "slots"],
  ["a worker's room", (drover) => drover.worker({ resources: trap("memoryBytes") }, () => 1), "resources.memoryBytes"],
  ["a worker over the wire", (drover) => drover.remote.join(trap("endpoint")), "endpoint"],
  ["a sync", (drover) => drover.remote.sync("w", trap("n")), "n"],
  [
    "a report",
    (drover) => drover.remote.sync("w", { n: 1, running: [trap("attempt")] } as never),
    "running[0].attempt",
  ],
  ["a project", (drover) => drover.putProject("p", trap("weight")), "weight"],
  ["a budget", (drover) => drover.putProject("p", { budget: trap("limit") }), "budget.limit"],
  ["options of a permit", (drover) => drover.withPermit("g", () => 1, trap("tokens")), "options.tokens"],
  [
    "usage of a permit",
    (drover) => drover.withPermit("g", (permit) => permit.usage(trap("inputTokens"))),
    "usage.inputTokens",
  ],
  ["a permit", (drover) => drover.permits.ask(trap("gate")), "gate"],
  ["the end of a permit", (drover) => drover.permits.settle("p", { usage: trap("inputTokens") }), "usage.inputTokens"],
  ["options of events", (drover) => drover.events(trap("after")), "options.after"],
  ["a config", (drover) => drover.reload({ scheduler: trap("maxInFlight") }), "scheduler.maxInFlight"],
  [
    "a table of a config",
    (drover) => drover.reload({ scheduler: { perType: trap("code") } }),
    "scheduler.perType.code",
  ],
  ["a change of the config", (drover) => drover.patchConfig({ retry: trap("base") }), "retry.base"],
  ["what to pause", (drover) => drover.pause(trap("project")), "project"],
  ["an anchor", (drover) => drover.verify({ expect: trap("seq") }), "options.expect.seq"],
  ["a schedule", (drover) => drover.schedules.put("s", trap("cron")), "cron"],
  ["the task of a schedule", (drover) => drover.schedules.put("s", { cron: "@daily", task: trap("id") }), "task.id"],
  ["a place to open", () => openDrover(trap("data")), "data"],
  ["a config to open with", () => openDrover({ config: { scheduler: trap("maxQueue") } }), "scheduler.maxQueue"],
];

function trapList(): never {
  return Object.defineProperty(["a", "b", "c"], 1, { get: bad, enumerable: true }) as never;
}

for (const [claim, call, field] of rows)
  test(`${claim} that throws when it is read is refused by its place`, async () => {
    await using kit = await createTestDrover();
    await kit.drover.submit({ ...task, id: "t" });
    const head = kit.drover.state.seq;
    await assert.rejects(
      async () => await call(kit.drover),
      (error) => {
        assert.ok(error instanceof DroverError, `${String(error)} is no DroverError`);
        assert.deepEqual([error.code, error.details.field], ["bad_request", field], error.message);
        assert.match(error.message, /is something that throws when it is read, and must be /);
        return true;
      },
    );
    if (claim !== "usage of a permit") assert.equal(kit.drover.state.seq, head, "nothing has changed");
  });

test("an item of a batch that throws says where, and fails no other", async () => {
  await using kit = await createTestDrover();
  let asked = 0;
  const once = new Proxy({ action: "x" }, { get: (of, key) => (asked++ === 0 ? bad() : Reflect.get(of, key)) });
  const tasks = [trap("payload", { action: "x" }), { action: "x", params: { a: trap("b") } }, { action: "x" }, once];
  const answer = await kit.drover.submitBatch({ agentId: "ann", tasks });
  const [first, second] = answer.tasks;
  assert.match(first?.error ?? "", /^tasks\[0\]\.payload is something that throws when it is read, and must be plain/);
  assert.match(second?.error ?? "", /^tasks\[1\]\.params\.a\.b is something that throws when it is read, /);
  assert.match(answer.tasks[3]?.error ?? "", /^tasks\[3\] is .* may not throw when it is read$/);
  assert.deepEqual([answer.tasks[2]?.state, answer.rejected], ["queued", 3]);
});

test("a result that throws when it is read fails its task and says where", async () => {
  await using kit = await createTestDrover();
  await kit.drover.worker({ slots: 1 }, () => ({ a: trap("b") }));
  await kit.drover.submit({ ...task, id: "t", maxAttempts: 1 });
  await kit.settle();
  const { state, error } = await kit.drover.task("t");
  assert.equal(state, "failed");
  assert.match(error ?? "", /^result\.a\.b is something that throws when it is read, and must be plain data/);
});

test("what throws though all that was given can be read stays what it is", () => {
  const bug = new TypeError("ours");
  const round: { self?: unknown; list: unknown[] } = { list: [1, null, new Date(0)] };
  round.self = round;
  assert.throws(
    () =>
      reading(round, "", () => {
        throw bug;
      }),
    (error) => error === bug,
  );
});
