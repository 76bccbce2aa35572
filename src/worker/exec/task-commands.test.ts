/** What a task brings: what goes wrong before its command starts, and what it is said to have used. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryHome } from "../../../test/kits/faults/exec-world.ts";
import { createTaskCommands } from "./task-commands.ts";

test("a connection lost while a large result is read is no failure of the task", async (t) => {
  const warnings: string[] = [];
  const data = temporaryHome(t);
  await using commands = createTaskCommands({ data, cwd: data, onWarning: (text) => void warnings.push(text) });
  const result = { file: { hash: "a".repeat(64), size: 9 } };
  const task = {
    taskId: "t1",
    action: "exec",
    agentId: "ann",
    project: "default",
    params: { plan: "p", task: "t1", work: { command: { kind: "line", line: "true" } } },
    inputs: { large: { taskId: "l", state: "done" as const, result } },
  };
  const { signal } = new AbortController();
  const context = { attempt: 1, signal, progress: () => {}, usage: () => {}, file: lost };
  const outcome = await commands.run(task as never, context as never);
  const error = "its inputs could not be read: connection reset";
  assert.deepEqual(outcome, { outcome: "requeue", error, retryAfterMs: 15_000 });
  assert.deepEqual(warnings, [`t1: ${error}`]);
});

// biome-ignore lint/correctness/useYield: it is lost before there is anything to yield
async function* lost(): AsyncGenerator<Uint8Array> {
  throw new Error("connection reset");
}

for (const [estimatedTokens, used] of [
  [undefined, [{ inputTokens: 0 }]],
  [0, [{ inputTokens: 0 }]],
  [5, []],
] as const)
  test(`a command that says no usage, of which ${estimatedTokens} tokens were expected`, async (t) => {
    const data = temporaryHome(t);
    await using commands = createTaskCommands({ data, cwd: data });
    // It only stands for what it needs, so no process is started.
    const params = { plan: "p", task: "t1", work: { command: { kind: "nothing" } } };
    const task = { taskId: "t1", action: "exec", agentId: "ann", project: "default", params, estimatedTokens };
    const said: unknown[] = [];
    const { signal } = new AbortController();
    const usage = (given: unknown): void => void said.push(given);
    await commands.run(task as never, { attempt: 1, signal, progress: () => {}, usage, file: lost } as never);
    assert.deepEqual(said, used);
  });
