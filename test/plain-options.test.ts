/**
 * Options that are of a class have no fields to tell and would count as none: they are refused wherever options are
 * taken, by their kind, and what is plain is taken wherever it was made.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createContext, runInContext } from "node:vm";
import * as core from "../src/core/index.ts";
import { type ConfigInput, createMemoryLog, type Drover, DroverError, openDrover } from "../src/engine/index.ts";
import { createTestDrover } from "../src/testing/index.ts";
import { wrong } from "./kits/bad-calls.ts";

class Settings {
  readonly slots = 1;
}
const foreign = createContext({});
const inAnotherRealm = (code: string): never => wrong(runInContext(`(${code})`, foreign));

const OF_A_CLASS: readonly (readonly [value: unknown, kind: string])[] = [
  [Promise.resolve({ data: "dd" }), "a Promise"],
  [new Date(0), "a Date"],
  [new Map([["project", "web"]]), "a Map"],
  [new Settings(), "a Settings"],
  [Object.create({ project: "web" }), "an object with a prototype of its own"],
  [inAnotherRealm("new Map()"), "a Map"],
];

let drover: Drover;
before(async () => {
  drover = (await createTestDrover({ config: { scheduler: { maxInFlight: 7 } } })).drover;
  await drover.submit({ id: "t", agentId: "ann", action: "build" });
});
after(() => drover.close());

const task = { agentId: "ann", action: "build" };
const calls: [claim: string, call: (value: never) => unknown, field: string][] = [
  ["openDrover", (value) => openDrover(value), "options"],
  ["openDrover's config", (value) => openDrover({ config: value }), "config"],
  ["a section of a config", (value) => openDrover({ config: { scheduler: value } }), "scheduler"],
  ["a table of a config", (value) => drover.reload({ scheduler: { perType: value } }), "scheduler.perType"],
  ["the projects of a config", (value) => drover.reload({ projects: value }), "projects"],
  ["the named projects", (value) => drover.reload({ projects: { named: value } }), "projects.named"],
  ["a gate of a config", (value) => drover.reload({ gates: { llm: value } }), "gates.llm"],
  ["createTestDrover", (value) => createTestDrover(value), "options"],
  ["reload", (value) => drover.reload(value), "config"],
  ["patchConfig", (value) => drover.patchConfig(value), "(body)"],
  ["a section of patchConfig", (value) => drover.patchConfig({ retry: value }), "retry"],
  ["pause", (value) => drover.pause(value), "(body)"],
  ["resume", (value) => drover.resume(value), "(body)"],
  ["submit", (value) => drover.submit(value), "(body)"],
  ["the params of a task", (value) => drover.submit({ ...task, params: value }), "params"],
  ["the resources of a task", (value) => drover.submit({ ...task, resources: value }), "resources"],
  ["submitBatch", (value) => drover.submitBatch(value), "(body)"],
  ["patch", (value) => drover.patch("t", value), "(body)"],
  ["cancel", (value) => drover.cancel("t", value), "options"],
  ["cancelWhere", (value) => drover.cancelWhere(value), "filter"],
  ["tasks", (value) => drover.tasks(value), "filter"],
  ["wait", (value) => drover.wait("t", value), "options"],
  ["why", (value) => drover.why("t", value), "options"],
  ["worker", (value) => drover.worker(value, () => 1), "(body)"],
  ["putProject", (value) => drover.putProject("p", value), "(body)"],
  ["the budget of a project", (value) => drover.putProject("p", { budget: value }), "budget"],
  ["withPermit", (value) => drover.withPermit("llm", () => 1, value), "options"],
  ["events", (value) => drover.events(value), "options"],
  ["verify", (value) => drover.verify(value), "options"],
  ["an anchor", (value) => drover.verify({ expect: value }), "options.expect"],
  ["a schedule", (value) => drover.schedules.put("s", value), "(body)"],
  ["the task of a schedule", (value) => drover.schedules.put("s", { cron: "@daily", task: value }), "task"],
  ["a permit", (value) => drover.permits.ask(value), "(body)"],
  ["a worker over the wire", (value) => drover.remote.join(value), "(body)"],
];
for (const [claim, call, field] of calls)
  test(`${claim} of a class is refused by its kind`, async () => {
    for (const [value, kind] of OF_A_CLASS) {
      const before = drover.state.seq;
      await assert.rejects(
        async () => await call(wrong(value)),
        (error) => {
          assert.ok(error instanceof DroverError, `${String(error)} is no DroverError`);
          assert.deepEqual([error.code, error.details.field], ["bad_request", field], error.message);
          assert.ok(error.message.includes(` is ${kind}`), error.message);
          assert.match(error.message, /, and must be a plain object/);
          return true;
        },
      );
      assert.equal(drover.state.seq, before, "nothing has changed");
    }
  });

test("an item of a batch of a class is refused, and no other", async () => {
  const tasks = [wrong(new Settings()), { action: "x" }];
  const answer = await drover.submitBatch({ agentId: "ann", tasks });
  assert.match(answer.tasks[0]?.error ?? "", /^tasks\[0\] is a Settings \(\{"slots":1\}\), and must be a plain object/);
  assert.equal(answer.rejected, 1);
});

test("the pieces refuse what would be a table without entries", () => {
  assert.throws(
    () => core.targetRatios(wrong(new Map([["a", 1]]))),
    /^InputError: weights is a Map, .* a plain object/,
  );
});

test("what is plain is taken wherever it was made", async () => {
  const bare = Object.assign(Object.create(null), { limit: 1 });
  assert.equal((await drover.tasks(bare)).count, 1);
  assert.equal((await drover.tasks(inAnotherRealm("{ limit: 1 }"))).count, 1);
  const payload = inAnotherRealm("{ deep: [{ n: 1 }] }");
  const { taskId } = await drover.submit({ agentId: "ann", action: "x", payload });
  assert.equal((await drover.task(taskId)).state, "queued");
  const source: string = "data:text/javascript,export const scheduler = { maxInFlight: 7 }";
  const config = (await import(source)) as ConfigInput;
  await using other = await openDrover({ config });
  assert.equal(other.effectiveConfig().scheduler.maxInFlight, 7);
});

test("a log and a host may be of a class", async () => {
  const log = createMemoryLog();
  class Wrapped {}
  await using other = await openDrover({ log: Object.assign(new Wrapped(), log) });
  assert.equal((await other.submit(task)).state, "queued");
});
