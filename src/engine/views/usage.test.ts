import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { join as joinByHand } from "../../../test/kits/hand-worker.ts";
import { createTestDrover } from "../../testing/index.ts";
import type { TaskContext } from "../index.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** The next day is a minute away: days that pass on the test clock cost the test time. */
const at = Date.parse("2026-01-31T23:59:00Z");
const NEXT_DAY = 120_000;
const used = (inputTokens: number, outputTokens: number, cost?: number) => ({
  inputTokens,
  outputTokens,
  cachedTokens: 0,
  ...(cost === undefined ? {} : { cost }),
});

test("usage is summed up by project, agent, type, day and label, also when tasks are long gone", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-usage-"));
  const first = await createTestDrover({ data, at });
  const { drover, clock } = first;
  await drover.worker({}, ({ params }, { usage }) => usage(params as object));
  const submit = async (id: string, more: object, params: object) => {
    await drover.submit({ id, agentId: "ann", action: "x", params: { ...params }, ...more });
    await drover.wait(id);
  };
  await submit("a", { project: "web", type: "code", labels: { team: "red", run: "1" } }, used(10, 1, 0.5));
  await submit("b", { project: "web", type: "plan", labels: { team: "blue" } }, used(20, 2));
  await clock.advance(NEXT_DAY);
  await submit("c", { project: "api", agentId: "bob", type: "code", labels: { team: "red" } }, used(30, 3, 0.25));
  await submit("d", { project: "api" }, { outputTokens: 0 });
  await clock.advance(HOUR);
  assert.equal(drover.state.tasks.size, 0, "the records of all are gone");
  await drover.snapshot();
  await drover.close();

  await using second = await createTestDrover({ data, at: clock.now() });
  const { usage } = second.drover;
  const rows = async (options: object) =>
    (await usage(options)).rows.map(({ key, attempts, usage: one }) => [key, attempts, one]);
  assert.deepEqual(await usage(), {
    by: "project",
    rows: [
      { key: "api", attempts: 1, usage: used(30, 3, 0.25) },
      { key: "web", attempts: 2, usage: used(30, 3, 0.5) },
    ],
    count: 2,
    total: { attempts: 3, usage: used(60, 6, 0.75) },
  });
  assert.deepEqual(
    await rows({ by: "agent" }),
    [
      ["bob", 1, used(30, 3, 0.25)],
      ["ann", 2, used(30, 3, 0.5)],
    ].toSorted(),
  );
  assert.deepEqual(await rows({ by: "type", project: "web" }), [
    ["plan", 1, used(20, 2)],
    ["code", 1, used(10, 1, 0.5)],
  ]);
  assert.deepEqual(await rows({ by: "day" }), [
    ["2026-02-01", 1, used(30, 3, 0.25)],
    ["2026-01-31", 2, used(30, 3, 0.5)],
  ]);
  assert.deepEqual(await rows({ by: "day", since: "2026-02-01T23:00:00Z" }), [["2026-02-01", 1, used(30, 3, 0.25)]]);
  assert.deepEqual(await rows({ by: "label:team" }), [
    ["red", 2, used(40, 4, 0.75)],
    ["blue", 1, used(20, 2)],
  ]);
  assert.deepEqual(await rows({ by: "label:team", agentId: "bob" }), [["red", 1, used(30, 3, 0.25)]]);
  assert.deepEqual(await rows({ by: "label:nobody" }), []);
  const cut = await usage({ by: "type", limit: 1 });
  assert.deepEqual([cut.count, cut.omitted, cut.total.attempts], [1, 1, 3]);
  await rm(data, { recursive: true });
});

test("what usage cannot be summed up by is refused by its name", async () => {
  await using kit = await createTestDrover();
  for (const by of ["nobody", "label:", "label:a b", "label:a=b", "", 7])
    await assert.rejects(kit.drover.usage({ by } as never), {
      code: "bad_request",
      message: /by is .*, and must be project, agent, type, day, or label: and the key of a label/,
    });
  await assert.rejects(kit.drover.usage({ limit: 1001 }), { code: "bad_request" });
});

test("the oldest rows go first, and the report says since when it is whole", async () => {
  await using kit = await createTestDrover({ at });
  const { drover, clock } = kit;
  await drover.worker({ slots: 10 }, (_, { usage }) => usage({ outputTokens: 1 }));
  const runs = async (from: number, to: number) => {
    for (let run = from; run < to; run++) {
      const labels = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`l${index}`, `${run}`]));
      await drover.submit({ agentId: "ann", action: "x", labels });
    }
    await kit.settle();
  };
  await runs(0, 200);
  await clock.advance(NEXT_DAY);
  await runs(200, 313);
  const { rows, goneDay } = drover.state.ledger.labels;
  assert.deepEqual([rows.size, goneDay], [10_000, Math.floor(at / DAY)]);
  const [first, last] = [await drover.usage({ by: "label:l0" }), await drover.usage({ by: "label:l9" })];
  assert.deepEqual([first.total.attempts, last.total.attempts], [312, 313], "16 rows of the first run are gone");
  assert.deepEqual([first.completeSince, first.count, first.omitted], ["2026-02-01T00:00:00.000Z", 100, 212]);
  assert.equal((await drover.usage({ by: "label:l0", since: "2026-02-01T00:00:00Z" })).completeSince, undefined);
  assert.equal((await drover.usage({ by: "agent" })).completeSince, undefined);
});

const TOLD = { inputTokens: 1500, outputTokens: 300, cost: 0.2 };
const PERMITS: readonly [string, (context: TaskContext) => void, object][] = [
  ["and nothing else", () => {}, used(1500, 300, 0.2)],
  ["and less by its handler", ({ usage }) => usage({ inputTokens: 7, cost: 0.3 }), used(1500, 300, 0.3)],
  ["and more by its handler", ({ usage }) => usage({ inputTokens: 900, outputTokens: 901 }), used(900, 901, 0.2)],
];
for (const [name, say, expected] of PERMITS) {
  test(`what the permits of an attempt said is its usage, counted once: ${name}`, async () => {
    await using kit = await createTestDrover({ at });
    const { drover } = kit;
    await drover.worker({}, async (_task, context) => {
      await context.withPermit("llm", (permit) => permit.usage(TOLD), { tokens: 2000 });
      await context.withPermit("llm", () => "says nothing", { tokens: 5000 });
      say(context);
    });
    await drover.submit({ id: "a", agentId: "ann", action: "x", project: "web" });
    const { usage, attempts } = await drover.wait("a");
    assert.deepEqual([usage, attempts?.map((one) => one.usage)], [expected, [expected]]);
    assert.deepEqual((await drover.usage()).rows, [{ key: "web", attempts: 1, usage: expected }]);
  });
}

test("what the permits of a lost attempt said is kept, also over HTTP's permits and a restart", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-usage-"));
  const first = await createTestDrover({ data, at });
  const { drover } = first;
  const ann = await joinByHand(first);
  await drover.submit({ id: "a", agentId: "ann", action: "x", project: "web" });
  await ann.sync();
  await drover.permits.ask({ gate: "llm", id: "call", taskId: "a", attempt: 1, tokens: 2000 });
  await drover.permits.settle("call", { usage: TOLD });
  assert.deepEqual((await drover.usage()).rows, [], "it is not over");
  await drover.snapshot();
  await drover.close();

  await using second = await createTestDrover({ data, at: first.clock.now() });
  await second.clock.advance(HOUR);
  assert.deepEqual((await second.drover.usage()).rows, [{ key: "web", attempts: 1, usage: used(1500, 300, 0.2) }]);
  await rm(data, { recursive: true, force: true });
});
