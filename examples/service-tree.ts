/**
 * A plan grows into specs, phases and code, over HTTP: a server, two workers, and a tree submitted in one batch.
 *
 *     node examples/service-tree.ts
 *
 * The worker that plans offers `planning`, the other `coding`; each task says which it needs. A task starts when its
 * parent and everything it needs are done. Planning may run twice at once and code ten times, whatever the slots: that
 * is `scheduler.perType`. In a program of your own the imports are `from "drover"` and `from "drover/worker"`.
 */
import assert from "node:assert/strict";
import { createClient } from "../src/client/index.ts";
import { type Handler, startWorker } from "../src/worker/index.ts";
import { startLocalServer } from "./kit/local-server.ts";

await using server = await startLocalServer("--no-worker", "--set", "scheduler.perType={plan: 2, code: 10}");
const { url } = server;
const drover = createClient({ url });

const order: string[] = [];
/** What both workers do; only what it costs differs. */
const handlerOf =
  (inputTokens: number): Handler =>
  (task, context) => {
    order.push(task.taskId);
    context.usage({ inputTokens });
    return `${task.action}: done`;
  };
await using _planner = await startWorker({ url, id: "planner", slots: 2, capabilities: ["planning"] }, handlerOf(500));
await using _coder = await startWorker({ url, id: "coder", slots: 4, capabilities: ["coding"] }, handlerOf(1200));

const planning = { capabilities: ["planning"] };
const coding = { type: "code", capabilities: ["coding"], estimatedTokens: 1500 };
const { accepted, rejected } = await drover.submitBatch({
  agentId: "ann",
  project: "shop",
  tasks: [
    { id: "page", action: "write the page", parent: "ui", needs: ["api"], ...coding },
    { id: "api", action: "write the API", parent: "backend", ...coding },
    { id: "ui", type: "phase", action: "the user interface", parent: "spec", ...planning },
    { id: "backend", type: "phase", action: "the server", parent: "spec", ...planning },
    { id: "spec", type: "spec", action: "write the spec", parent: "plan", ...planning },
    { id: "plan", type: "plan", action: "plan the feature", ...planning },
  ],
});
assert.deepEqual({ accepted, rejected }, { accepted: 6, rejected: 0 });

const page = await drover.wait("page", { withinMs: 30_000 });
for (const taskId of order) {
  const { state, worker } = await drover.task(taskId);
  console.log(`${taskId.padEnd(8)} ${state} by ${worker}`);
}
assert.equal(page.state, "done");
assert.equal(page.result, "write the page: done");
assert.deepEqual(order.slice(0, 2), ["plan", "spec"]);
assert.ok(order.indexOf("api") < order.indexOf("page"));
assert.deepEqual([...order].sort(), ["api", "backend", "page", "plan", "spec", "ui"]);

const { charged } = await drover.project("shop");
console.log(`project shop was charged ${charged}: its tokens, and 1000 for each start`);
assert.equal(charged, 4 * 500 + 2 * 1200 + 6 * 1000);
