/**
 * A project moves from one cell to another: two servers, a queue of tasks, nothing lost and nothing run twice.
 *
 *     node examples/move-project.ts
 *
 * The project is paused where it is, and what runs there may end. What is queued and stands alone is submitted in the
 * other cell under the same ids, then cancelled in the first. What hangs together (by needs, a parent, a batch, a plan)
 * stays, and ends there. Broken off anywhere, `moveProject` is called again: a submit with the same id and body is the
 * same task. Callers must have been sent to the other cell before; docs/scale.md says how.
 */
import assert from "node:assert/strict";
import { type Client, createClient, type TaskBody, type TaskView } from "../src/index.ts";
import { startWorker } from "../src/worker/index.ts";
import { startLocalServer } from "./kit/local-server.ts";

/** What a submit takes, of what a task shows. */
const CARRIED = [
  ...(["agentId", "action", "project", "params", "type", "priority", "deadline", "notBefore", "resources"] as const),
  ...(["capabilities", "locks", "zone", "provider", "estimatedTokens", "timeoutMs", "callbackUrl", "labels"] as const),
];

const bodyOf = (task: TaskView): TaskBody => ({
  ...(Object.fromEntries(CARRIED.flatMap((key) => (task[key] === undefined ? [] : [[key, task[key]]]))) as TaskBody),
  id: task.taskId,
});

/** Nothing is needed by it or needs it, and it is of no batch and no plan. */
async function standsAlone(cell: Client, { taskId, group }: TaskView): Promise<boolean> {
  if (group !== undefined) return false;
  const { up, down } = await cell.links(taskId);
  return up.length + down.length === 0;
}

async function moveProject(project: string, from: Client, to: Client): Promise<number> {
  await from.pause({ project });
  let moved = 0;
  let cursor: string | undefined;
  do {
    const page = await from.tasks({ project, state: ["queued"], ...(cursor === undefined ? {} : { cursor }) });
    for (const task of page.tasks) {
      if (!(await standsAlone(from, task))) continue;
      await to.submit(bodyOf(task));
      await from.cancel(task.taskId);
      moved++;
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  await from.resume({ project });
  return moved;
}

await using first = await startLocalServer("--no-worker");
await using second = await startLocalServer("--no-worker");
const [one, other] = [createClient({ url: first.url }), createClient({ url: second.url })];
const ran: string[] = [];
const workerOf = (url: string) => startWorker({ url, slots: 4 }, ({ taskId }) => void ran.push(taskId));
const task = (id: string) => ({ id, agentId: "ann", project: "web", action: "render" });

for (let count = 0; count < 40; count++) await one.submit(task(`page-${count}`));
await one.submit({ ...task("report"), needs: ["page-0"] });
await other.putProject("web", { weight: 2 });
console.log(`queued in the first cell: ${(await one.project("web")).queued}`);
const moved = await moveProject("web", one, other);
console.log(`moved to the second: ${moved}`);

await using _here = await workerOf(first.url);
await using _there = await workerOf(second.url);
for (let count = 1; count < 40; count++) await other.wait(`page-${count}`);
const { state } = await one.wait("report");
console.log(`report, which needs page-0, is ${state} in the first`);
console.log(`run: ${ran.length}, each once: ${new Set(ran).size === ran.length}`);
assert.deepEqual([moved, state, ran.length, new Set(ran).size], [39, "done", 41, 41]);
