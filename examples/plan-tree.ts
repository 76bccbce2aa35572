/**
 * A plan grows into specs, phases and code: a tree by `parent`, with one more edge by `needs`.
 *
 *     node examples/plan-tree.ts
 *
 * The whole tree is submitted at once, in any order. A task starts when its parent and everything it needs
 * are done; when one ends badly, what hangs on it is skipped and says so.
 */
import assert from "node:assert/strict";
import { openDrover } from "../src/index.ts";

const TREE = [
  { id: "code-page", type: "code", action: "write the page", parent: "phase-ui", needs: ["code-api"] },
  { id: "code-api", type: "code", action: "write the API", parent: "phase-server" },
  { id: "phase-ui", type: "phase", action: "the user interface", parent: "spec" },
  { id: "phase-server", type: "phase", action: "the server", parent: "spec" },
  { id: "phase-search", type: "phase", action: "the search", parent: "spec", maxAttempts: 1 },
  { id: "code-index", type: "code", action: "write the index", parent: "phase-search" },
  { id: "spec", type: "spec", action: "write the spec", parent: "plan" },
  { id: "plan", type: "plan", action: "plan the feature" },
  { id: "report", action: "say how it went", needs: ["code-page", "code-index"], onDependencyFailure: "run" as const },
];

await using drover = await openDrover();
const order: string[] = [];
await drover.worker({ slots: 2 }, (task) => {
  order.push(task.taskId);
  if (task.taskId === "phase-search") throw new Error("no search engine was chosen");
  return `${task.action}: done`;
});

const { accepted, rejected } = await drover.submitBatch({ agentId: "planner", project: "shop", tasks: TREE });
assert.deepEqual({ accepted, rejected }, { accepted: 9, rejected: 0 });
await drover.ended("report");

const { tasks } = await drover.tasks({ project: "shop" });
for (const { taskId, state, error } of tasks)
  console.log(`${taskId.padEnd(13)} ${state.padEnd(8)} ${error ?? ""}`.trimEnd());
console.log(`ran in this order: ${order.join(", ")}`);

const ends = new Map(tasks.map(({ taskId, state }) => [taskId, state]));
assert.equal(ends.get("phase-search"), "failed");
assert.equal(ends.get("code-index"), "skipped");
assert.equal(ends.get("report"), "done");
assert.equal([...ends.values()].filter((state) => state === "done").length, 7);
for (const { id, parent, needs = [] } of TREE) {
  if (!order.includes(id) || id === "report") continue;
  for (const before of parent === undefined ? needs : [parent, ...needs])
    assert.ok(order.indexOf(before) < order.indexOf(id), `${before} runs before ${id}`);
}
assert.equal(order.at(-1), "report");
