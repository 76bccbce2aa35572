import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { join, kitWith } from "../../../test/kits/hand-worker.ts";
import { holdsInTime } from "../../../test/kits/laws/cases.ts";
import type { SyncAnswer } from "../../protocol/index.ts";
import { assignedTask } from "../../worker/pull/handlers.ts";
import type { Handed } from "../../worker/pull/messages.ts";
import { parseNames, together } from "../../worker/pull/unread-tasks.ts";
import type { TaskInput } from "../tasks/task-body.ts";

const CASES = 400;
/** Texts that look like the id of a body, or need to be escaped. */
const word = fc.constantFrom("x", 'a","id":"x"', '{"id":"x"}', "ü", "\\", "\u2028", "project");
const name = fc.constantFrom("x", 'q"u', "ü", "a,b", "tsk_x");
const params = fc.dictionary(fc.constantFrom("id", "project", "taskId", "a"), word, { maxKeys: 3 });
const usual = fc.record(
  {
    ...{ id: name, project: name, params, capabilities: fc.constant([]), labels: fc.constant({ id: "x" }) },
    ...{ type: fc.constant("code"), selector: word, callbackUrl: fc.constant("https://example.com/?id=1") },
  },
  { requiredKeys: [] },
);
const rare = fc.constantFrom(
  ...[{ priority: undefined }, { priority: 0 }, { priority: -5 }, { priority: "high" as const }],
  ...[{ deadline: 4_000_000_000_000 }, { deadline: "2100-01-01T00:00:00Z" }, { iteration: 1 }, { iteration: 3 }],
  ...[{ notBefore: 0 }, { notBefore: "1970-01-01T00:00:00Z" }, { onLoss: "fail" as const }, { loop: { max: 3 } }],
);
const body = fc.tuple(usual, fc.option(rare, { nil: {} })).map(([most, few]) => ({ ...most, ...few }));
const given = fc.record({
  body,
  manner: fc.constantFrom("full", "brief", "lean"),
  isBatch: fc.boolean(),
  isFailedOnce: fc.boolean(),
});

test("the text of an answer says what the answer says, each field once, whatever the task", async () => {
  await holdsInTime(CASES, given, async ({ body, manner, isBatch, isFailedOnce }) => {
    const kit = await kitWith();
    try {
      const { session, sync } = await join(kit);
      const task = { agentId: 'an"n', action: "go", ...body } as TaskInput;
      const answer = isBatch
        ? (await kit.drover.submitBatch({ agentId: 'an"n', tasks: [task] })).tasks[0]
        : await kit.drover.submit(task);
      const [first] = (await sync()).assignments;
      assert.equal(first?.taskId, answer?.taskId);
      if (isFailedOnce && first !== undefined) {
        await sync({ results: [{ taskId: first.taskId, attempt: 1, outcome: "failed", error: "no" }] });
        await kit.clock.advance(5000);
      }
      const asked = { full: {}, brief: { brief: true }, lean: { brief: true, lean: true } }[manner];
      const text = await kit.drover.remote.syncText("ann", { session, ...asked });
      assert.equal(JSON.stringify(JSON.parse(text)).length, text.length, "a field that is there twice is lost");
      const answers = [JSON.parse(text), plain(await sync(asked))] as readonly SyncAnswer[];
      if (manner === "lean") {
        const { tasks, ...said } = answers[0] as SyncAnswer;
        const unread = { named: JSON.stringify(said.named), tasks: JSON.stringify(tasks) };
        assert.deepEqual(parseNames(text), { ...said, assignments: said.named, unread }, "found without being read");
        const shown = seen((await sync()).assignments as readonly Handed[]);
        for (const { named = [], tasks = [] } of answers) assert.deepEqual(seen(together(named, tasks)), shown);
      } else {
        const { n: _, ...inObjects } = answers[1] as SyncAnswer;
        assert.deepEqual(answers[0], inObjects);
        assert.deepEqual(parseNames(text), answers[0]);
      }
    } finally {
      await kit.drover.close();
    }
  });
});

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
/** As handlers see what is given. */
const seen = (given: readonly Handed[]): unknown => plain(given.map((handed) => assignedTask(handed, "ann")));
