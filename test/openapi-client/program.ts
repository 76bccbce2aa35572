/**
 * A stranger's program: it knows Drover by nothing but the types that openapi-typescript made of /openapi.json.
 *
 * Its test generates `drover.d.ts` beside a copy of this file, compiles both in strict mode and runs it. So each line
 * here is a promise of the document: what must compile does, and what must not is marked.
 */
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./drover.d.ts";

const [url = ""] = process.argv.slice(2);
const drover = createClient<paths>({ baseUrl: url });

const body: components["schemas"]["TaskBody"] = {
  agentId: "ann",
  action: "exec",
  params: { command: "make", jobs: 4, env: { CI: "1" } },
  payload: ["anything"],
};
const submitted = await drover.POST("/tasks", { body });
assert.equal(submitted.response.status, 202);
const taskId = submitted.data?.taskId ?? "";

const task = await drover.GET("/tasks/{id}", { params: { path: { id: taskId } } });
const command: unknown = task.data?.params?.command;
assert.equal(command, "make");

const batch = await drover.POST("/tasks/batch", {
  body: {
    agentId: "ann",
    tasks: [
      { action: "a", params: { deep: { er: 1 } } },
      { action: "b", agentId: "ann" },
    ],
  },
});
assert.equal(batch.data?.accepted, 2);

const joined = await drover.POST("/workers", {
  body: { id: "w1", actions: ["exec"], resources: { cpuMillicores: 500 } },
});
const session = joined.data?.session ?? "";
const sync = await drover.POST("/workers/{id}/sync", { params: { path: { id: "w1" } }, body: { session, n: 1 } });
const given: Readonly<Record<string, unknown>> | undefined = sync.data?.assignments[0]?.task.params;
assert.deepEqual(given, body.params);
const { data: fleet } = await drover.GET("/workers");
const [worker] = fleet?.workers ?? [];
assert.equal(worker?.resources?.cpuMillicores, 500);
const joinedAt: string = worker?.joinedAt ?? "";
assert.match(joinedAt, /^\d{4}-/);

const events = await drover.GET("/events", { params: { query: { limit: 5 } } });
assert.ok(typeof events.data === "object", "a page of JSON, not the stream that the same call can be");
const payload: Record<string, unknown> | undefined = events.data.events[0]?.payload;
assert.equal(typeof payload, "object");

const missing = await drover.GET("/tasks/{id}", { params: { path: { id: "nobody" } } });
assert.equal(missing.error?.code, "not_found");
const details: Record<string, unknown> = missing.error?.details ?? {};
assert.equal(typeof details, "object");

// @ts-expect-error: a task has an action.
await drover.POST("/tasks", { body: { agentId: "ann" } });
// @ts-expect-error: params are an object.
await drover.POST("/tasks", { body: { agentId: "ann", action: "x", params: "make" } });
// @ts-expect-error: there is no such call.
await drover.GET("/taks");
console.log("a stranger's client works");
