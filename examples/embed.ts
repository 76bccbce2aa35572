/**
 * The quick start: a Drover in this program, first in memory, then with a data directory that outlives it.
 *
 *     node examples/embed.ts
 *
 * In a program of your own the import is `from "drover"`.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDrover } from "../src/index.ts";

async function inMemory(): Promise<void> {
  await using drover = await openDrover();
  await drover.worker({ id: "ada", slots: 2, capabilities: ["git"] }, (task) => `${task.action}: done`);

  const { taskId } = await drover.submit({ agentId: "ann", action: "write the tests", capabilities: ["git"] });
  const task = await drover.wait(taskId);
  console.log(`${task.taskId} is ${task.state} on ${task.worker}: ${JSON.stringify(task.result)}`);
  assert.equal(task.state, "done");
  assert.equal(task.result, "write the tests: done");

  // No worker here has a GPU. The task is accepted all the same, with a warning, and `why` says what it waits for.
  const stuck = await drover.submit({ agentId: "ann", action: "train a model", capabilities: ["gpu"] });
  const { summary, conditions } = await drover.why(stuck.taskId);
  console.log(summary);
  assert.equal(stuck.warnings?.[0]?.type, "never-fits");
  assert.ok(conditions.some(({ code, ok }) => code === "never-fits" && !ok));
  await drover.cancel(stuck.taskId, { reason: "no GPU here" });
}

/** What was acknowledged is there when the directory is opened again. */
async function onDisk(data: string): Promise<void> {
  const first = await openDrover({ data });
  await first.submit({ id: "nightly-1", agentId: "ann", action: "build" });
  await first.close();

  await using second = await openDrover({ data });
  await second.worker({}, (task) => `${task.action} after a restart`);
  const task = await second.wait("nightly-1");
  console.log(`${task.taskId} is ${task.state}: ${JSON.stringify(task.result)}`);
  assert.equal(task.result, "build after a restart");

  const { ok, events } = await second.verify();
  console.log(`${events} events verified: ${ok}`);
  assert.ok(ok);
}

await inMemory();
const data = await mkdtemp(join(tmpdir(), "drover-embed-"));
try {
  await onDisk(data);
} finally {
  await rm(data, { recursive: true });
}
