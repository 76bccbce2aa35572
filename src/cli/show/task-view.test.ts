/**
 * What people are told of a task: every field as submitted, and its attempts, also when its record has expired.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import type { TaskBody, TaskView } from "../../protocol/index.ts";
import { taskFields } from "../../protocol/shapes/tasks.ts";
import { createOutput } from "../shell/output.ts";
import { taskDetails } from "./task-view.ts";

const output = createOutput(testTerminal({ now: () => Date.parse("2026-01-31T12:00:00Z") }), { json: false });
const createdAt = "2026-01-31T10:00:00.000Z";
const completedAt = "2026-01-31T10:05:00.000Z";

const rows: { name: string; task: Omit<TaskView, "taskId" | "attempt">; shown: RegExp }[] = [
  {
    name: "a task whose record has expired is shown as one",
    task: { state: "failed", createdAt, completedAt },
    shown: /attempt +not known any more; the record of this task has expired/,
  },
  {
    name: "a task that ended without an attempt had none",
    task: { state: "cancelled", createdAt, completedAt, latencyMs: 300_000 },
    shown: /attempt +none/,
  },
  {
    name: "a task that was turned away had none either",
    task: { state: "rejected", completedAt, error: "the queue is full" },
    shown: /attempt +none/,
  },
  {
    name: "a round is shown with what it used, in detail where its worker said so",
    task: {
      state: "failed",
      rounds: [
        { iteration: 1, outcome: "again", note: "red", usage: { tokens: 1500 } },
        {
          iteration: 2,
          outcome: "done",
          usage: { tokens: 1500, inputTokens: 1200, outputTokens: 300, cachedTokens: 9000, cost: 0.5 },
        },
      ],
    },
    shown: /round 1 +again, 1 500 tokens: red\nround 2 +done, 1 200 tokens in, 300 out, 9 000 from a cache; cost 0\.5/,
  },
  {
    name: "attempts are shown with what each used where there were several",
    task: {
      state: "done",
      attempts: [
        { attempt: 1, worker: "w", usage: { inputTokens: 10, outputTokens: 2, cachedTokens: 0 } },
        { attempt: 3, usage: { inputTokens: 20, outputTokens: 4, cachedTokens: 0, cost: 1 } },
      ],
    },
    shown: /attempt 1 +on w: 10 tokens in, 2 out\nattempt 3 +20 tokens in, 4 out; cost 1\n/,
  },
  { name: "a task that waits has none yet", task: { state: "queued", createdAt }, shown: /attempt +none/ },
];
for (const { name, task, shown } of rows)
  test(name, () => assert.match(taskDetails({ taskId: "t", attempt: 0, ...task }, output), shown));

/** A field that is not shown by its own name: the id is the taskId of what is shown. */
const NOT_SHOWN = ["id"];
const submitted: Required<Omit<TaskBody, "id" | "approval">> & Required<Pick<TaskView, "approval">> = {
  agentId: "ann",
  action: "build",
  project: "web",
  type: "code",
  tabId: "t1",
  ref: "e5",
  selector: "#go",
  params: { a: 1 },
  payload: "text",
  priority: "high",
  deadline: createdAt,
  notBefore: createdAt,
  callbackUrl: "https://example.com/hook",
  parent: "p",
  needs: ["a"],
  inputArtifact: "/tmp/x",
  resources: { cpuMillicores: 500 },
  capabilities: ["git"],
  locks: ["repo:x"],
  outputs: ["report/**"],
  zone: "eu",
  provider: "anthropic/default",
  estimatedTokens: 500,
  iteration: 2,
  maxAttempts: 1,
  timeoutMs: 600_000,
  onDependencyFailure: "run",
  onLoss: "fail",
  labels: { team: "web" },
  loop: { until: "npm test", max: 10 },
  wait: "children",
  approval: { question: "ship it?" },
};
for (const field of Object.keys(taskFields).filter((key) => !NOT_SHOWN.includes(key)))
  test(`${field} is shown`, () => {
    const task: TaskView = { ...submitted, taskId: "t", state: "queued", attempt: 0 };
    assert.notEqual(taskDetails({ ...task, [field]: undefined }, output), taskDetails(task, output));
  });

test("the limit of attempts is on own failures, and says so where more attempts than that were made", () => {
  const shown = (attempt: number): string =>
    /^attempts +(.*)$/m.exec(taskDetails({ taskId: "t", state: "running", attempt, maxAttempts: 1 }, output))?.[1] ??
    "";
  assert.equal(shown(1), "at most 1");
  assert.equal(shown(2), "at most 1; only those that fail by themselves count");
});
