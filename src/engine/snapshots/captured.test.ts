/**
 * Every fact of a task is noted when a snapshot is captured: what happens to it later does not show. Histories of all
 * kinds are in test/laws; here each fact has its own turn, alone and of a task in a group.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf } from "../../../test/kits/laws/live.ts";
import { instant, type Pin, workerId } from "../../core/base/brand.ts";
import { newExtra } from "../../core/lifecycle/labels.ts";
import type { State, Task } from "../../core/model/state.ts";
import { capturedLines } from "../../core/snapshot/index.ts";
import { createTestDrover } from "../../testing/index.ts";

const end = { at: instant(5), seq: 7, error: "no", resultHash: null, resultSize: 0, resultSeq: null };
const links = { ...{ parent: null, needs: [], ofRunning: false, unmet: 0, artifact: null }, dependents: [] };
const CHANGES: readonly Partial<Task>[] = [
  ...[
    { phase: "running" },
    { phase: "done", end },
    { paused: true },
    { priority: 7 },
    { iteration: 3 },
    { estimate: 9 },
  ],
  ...[{ runnableAt: 11 }, { restUntil: 12 }, { deadline: 13 }, { lastSeq: 14 }, { ownFailures: 2 }, { losses: 2 }],
  ...[
    { attempts: 1, lastWorker: workerId("w"), startedAt: 15 },
    { attempts: 2, requeues: 3 },
    { attempts: 2, throttles: 4 },
  ],
  ...[{ pin: "w" as Pin }, { links: { ...links, notified: 0, children: 2, namedBy: 0, due: true } }],
  { extra: { ...newExtra(), approval: { required: true, question: "?", until: 5, given: null, askedBy: 1 } } },
] as readonly Partial<Task>[];

test("what changes of a task after it was captured does not show", async () => {
  const { drover } = await createTestDrover({});
  const state = drover.state as State;
  const single = await drover.submit({ agentId: "ann", action: "x" });
  const { tasks } = await drover.submitBatch({ agentId: "ann", tasks: [{ action: "x" }, { action: "y" }] });
  await drover.submitBatch({ agentId: "ann", tasks: [{ action: "of another group" }] });
  for (const id of [single.taskId, tasks[0]?.taskId, tasks[1]?.taskId]) {
    const task = [...state.tasks.values()].find((one) => one.id === id) as Task;
    const before = { ...task };
    for (const change of CHANGES) {
      Object.assign(task, change);
      const expected = bytesOf(state);
      const captured = capturedLines(state, 10) ?? [];
      Object.assign(task, before);
      assert.equal([...captured].join("\n"), expected, JSON.stringify(change));
      const unchanged = capturedLines(state, 10) ?? [];
      const plain = bytesOf(state);
      assert.notEqual(plain, expected, JSON.stringify(change));
      Object.assign(task, change);
      assert.equal([...unchanged].join("\n"), plain, JSON.stringify(change));
      Object.assign(task, before);
    }
  }
});
