/**
 * A task that must not run twice: what had begun and was lost ends, and what had not begun comes back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, type World } from "../../../test/kits/conformance/world.ts";
import { slowLog } from "../../../test/kits/slow-log.ts";
import { taskId } from "../../core/base/brand.ts";
import { decodeEvent } from "../../log/format/codec.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";
import { createTestDrover } from "../../testing/index.ts";

const start = (world: World): unknown => world.must({ type: "start-attempt", task: taskId("t"), attempt: 1 });

type Row = {
  name: string;
  onLoss: "retry" | "fail" | null;
  tab?: string;
  act: (world: World) => unknown;
  ends: string;
};
const ROWS: readonly Row[] = [
  { name: "lost before it began", onLoss: "fail", act: (world) => world.leave("w", true), ends: "queued" },
  {
    name: "lost after it had begun",
    onLoss: "fail",
    act: (world) => [start(world), world.leave("w", true)],
    ends: "its outcome is unknown: attempt 1 had begun and was lost (worker-lost), and onLoss is fail",
  },
  {
    name: "left in good order after it had begun",
    onLoss: "fail",
    act: (world) => [start(world), world.leave("w", false)],
    ends: "its outcome is unknown: attempt 1 had begun and was lost (worker-left), and onLoss is fail",
  },
  {
    name: "stopped for its budget after it had begun",
    onLoss: "fail",
    act: (world) => [
      start(world),
      world.must({ type: "report-usage", task: taskId("t"), attempt: 1, tokens: 5000 }),
      world.finish("t", { outcome: "cancelled" }),
    ],
    ends: "its outcome is unknown: attempt 1 had begun and was lost (budget), and onLoss is fail",
  },
  {
    name: "given back by its worker, which knows what it did",
    onLoss: "fail",
    act: (world) => [start(world), world.finish("t", { outcome: "requeue" })],
    ends: "queued",
  },
  {
    name: "returned by who had it as running and did not begin it",
    onLoss: "fail",
    act: (world) => [start(world), world.must({ type: "return-attempt", task: taskId("t"), attempt: 1 })],
    ends: "assigned",
  },
  {
    name: "with a tab and nothing said",
    onLoss: null,
    tab: "x",
    act: (world) => [start(world), world.leave("w", true)],
    ends: "its outcome is unknown: attempt 1 had begun and was lost (worker-lost), and onLoss is fail",
  },
  {
    name: "with a tab and retry",
    onLoss: "retry",
    tab: "x",
    act: (world) => [start(world), world.leave("w", true)],
    ends: "queued",
  },
  {
    name: "without a tab and nothing said",
    onLoss: null,
    act: (world) => [start(world), world.leave("w", true)],
    ends: "queued",
  },
];

for (const { name, onLoss, tab = null, act, ends } of ROWS) {
  test(`onLoss ${onLoss}, ${name}: ${ends.length < 10 ? "it comes back" : "its outcome is unknown"}`, () => {
    const world = createWorld({ projects: { p: { budget: { limit: 1000 } } } });
    world.join("w", { capabilities: ["tab:x"] });
    world.submit("t", { onLoss, tab });
    act(world);
    assert.equal(world.taskOf("t").end?.error ?? world.phaseOf("t"), ends);
  });
}

test("a handler in the process is called once the log has its attempt as running", async () => {
  const log = createMemoryLog();
  const kit = await createTestDrover({ log });
  const kinds = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const { records } of log.read(0 as never))
      for (const { bytes } of records) found.push(decodeEvent(bytes, 1 as never).event.kind);
    return found;
  };
  const seen: Promise<string[]>[] = [];
  await kit.drover.worker({ id: "w" }, () => {
    seen.push(kinds());
    return new Promise(() => {});
  });
  await kit.drover.submit({ id: "t", agentId: "ann", action: "pay", onLoss: "fail" });
  await kit.settle();
  assert.equal((await seen[0])?.at(-1), "attempt-started");
});

test("what a worker that leaves had begun fails; with onLoss: retry it comes back", async () => {
  for (const onLoss of ["fail", "retry"] as const) {
    const kit = await createTestDrover();
    const worker = await kit.drover.worker({ id: "w" }, (_, { signal }) => {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await kit.drover.submit({ id: "t", agentId: "ann", action: "pay", onLoss });
    await kit.settle();
    await worker.close();
    const { state, onLoss: shown } = await kit.drover.task("t");
    assert.deepEqual([state, shown], [onLoss === "fail" ? "failed" : "queued", onLoss]);
  }
});

test("what no handler was given when its worker leaves comes back, though the log has it as running", async () => {
  const slow = slowLog("attempt-started");
  const kit = await createTestDrover({ log: slow.log });
  let calls = 0;
  const worker = await kit.drover.worker({ id: "w" }, () => calls++);
  const submitted = kit.drover.submit({ id: "t", agentId: "ann", action: "pay", onLoss: "fail" });
  await slow.isWaiting;
  const closed = worker.close();
  slow.letGo();
  await Promise.all([submitted, closed]);
  assert.deepEqual([(await kit.drover.task("t")).state, calls], ["queued", 0]);
});
