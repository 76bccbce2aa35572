/**
 * What people are told of the attempts of a task, also of one that Drover has nearly forgotten.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import type { TaskView } from "../../protocol/shapes/tasks.ts";
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
  { name: "a task that waits has none yet", task: { state: "queued", createdAt }, shown: /attempt +none/ },
];
for (const { name, task, shown } of rows)
  test(name, () => assert.match(taskDetails({ taskId: "t", attempt: 0, ...task }, output), shown));
