/**
 * Plans over HTTP: whose they are, and what is said of one that cannot be.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import { projectId, type State } from "../../src/core/index.ts";
import { groupFor } from "../../src/core/lifecycle/groups.ts";
import { groupOfPlan, newPlan } from "../../src/core/lifecycle/plans.ts";
import { openServer } from "../kits/test-server.ts";

const ann = { token: "token-of-ann-0123456789" };
const bob = { token: "token-of-bob-0123456789" };
const site = { token: "token-of-site-0123456789" };
const admin = { token: "token-of-admin-0123456789" };
const tokens = [
  { role: "admin", ...admin },
  { role: "agent", ...ann, agentId: "ann" },
  { role: "agent", ...bob, agentId: "bob" },
  { role: "agent", ...site, project: "site" },
];
const params = { id: "release" };
const body = { tasks: { build: "make", test: { run: "make test", needs: ["build"] } } };

test("a scoped token puts what it could submit, and sees the plans that are all its own", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const put = await at.ask("putPlan", { params, query: { only: ["build"] }, body }, ann);
  assert.deepEqual([put.status, put.json.submitted, put.json.total], [202, 1, 1]);
  const task = await at.ask("task", { params: { id: put.json.tasks[0]?.taskId ?? "" } }, ann);
  assert.equal(task.json.agentId, "ann", "who says nothing means the agent of the token");
  for (const name of ["plan", "pausePlan", "resumePlan", "retryPlan", "removePlan"] as const)
    assert.equal((await at.ask(name, { params }, bob)).status, 404, name);
  assert.equal((await at.ask("cancelPlan", { params, body: {} }, bob)).status, 404);
  assert.deepEqual((await at.ask("plans", { query: {} }, bob)).json.plans, []);
  assert.equal((await at.ask("putPlan", { params, query: {}, body }, bob)).status, 403);
  const listed = await at.ask("plans", { query: {} }, admin);
  assert.deepEqual(
    listed.json.plans.map(({ id }) => id),
    ["release"],
  );
  const others = { tasks: { a: { run: "x", agent: "bob" } } };
  const foreign = await at.ask("putPlan", { params: { id: "other" }, query: {}, body: others }, ann);
  assert.deepEqual([foreign.status, foreign.problem.details?.field], [403, "tasks.a.agentId"]);
  const mine = await at.ask("putPlan", { params: { id: "mine" }, query: {}, body }, site);
  assert.deepEqual([mine.status, mine.json.project], [202, "site"]);
  assert.equal((await at.ask("plan", { params: { id: "mine" }, query: {} }, ann)).status, 404);
});

test("what is left of another's plan is not cancelled by one of its name", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const put = await at.ask("putPlan", { params, query: {}, body }, ann);
  const task = { id: put.json.tasks[0]?.taskId ?? "" };
  await at.ask("cancelPlan", { params, body: {} }, ann);
  assert.equal((await at.ask("removePlan", { params }, ann)).status, 200);
  assert.equal((await at.ask("retry", { params: task }, ann)).status, 202);
  const other = { tasks: { deploy: "make deploy" } };
  assert.equal((await at.ask("putPlan", { params, query: {}, body: other }, bob)).status, 403);
  assert.equal((await at.ask("task", { params: task }, ann)).json.state, "queued");
  assert.equal((await at.ask("putPlan", { params, query: {}, body }, ann)).status, 202);
});

test("of two who put a large plan of one name at once, it is of the one, and the other is refused", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const tasks = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`t${index}`, `make ${index}`]));
  const puts = [ann, bob].map((who) => at.ask("putPlan", { params, query: {}, body: { tasks } }, who));
  const answers = await Promise.all(puts);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 403]);
  const { counts, total } = (await at.ask("plan", { params, query: {} }, admin)).json;
  assert.deepEqual([counts.queued, total], [2000, 2000]);
});

test("a plan of which no task came into the log is put again by a scoped token", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const state = at.drover.state as State;
  const whose = { agent: null, documentHash: "", project: projectId("default") };
  const facts = { ...whose, seq: 0, putAt: state.at, directory: null, run: 1, failsFast: false };
  const plan = newPlan({ id: params.id, createdAt: state.at, ...facts, tasks: [], others: [], adopted: 0 });
  state.plans.set(plan.id, { ...plan, open: 1 });
  state.groups.set(groupOfPlan(plan.id), { ...groupFor(state, groupOfPlan(plan.id), state.at), plan });
  assert.equal((await at.ask("plan", { params, query: {} }, ann)).status, 404);
  const again = await at.ask("putPlan", { params, query: {}, body }, ann);
  assert.deepEqual([again.status, again.json.submitted], [202, 2]);
});

test("every mistake of a document is in details, with its path, and nothing is put", async () => {
  await using at = await openServer();
  const bad = { tasks: { a: { run: "x", needs: "b" }, c: { cmd: "x" } } };
  const { status, problem } = await at.ask("putPlan", { params, query: {}, body: bad as object });
  assert.equal(status, 400);
  const problems = (problem.details?.problems ?? []) as { path: string }[];
  assert.deepEqual(problems.map(({ path }) => path).sort(), ["tasks.a.needs", "tasks.c.cmd"]);
  assert.equal((await at.ask("putPlan", { params, query: {}, body: { ...body, name: "other" } })).status, 400);
  assert.equal((await at.ask("putPlan", { params, query: { only: ["deploy"] }, body })).status, 400);
  assert.equal((await at.ask("plan", { params, query: {} })).status, 404);
});

test("the metrics tell how plans stand, and how many tasks they hold", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  await at.ask("putPlan", { params, query: {}, body }, admin);
  await at.ask("putPlan", { params: { id: "over" }, query: {}, body }, admin);
  await at.ask("cancelPlan", { params: { id: "over" }, body: {} }, admin);
  const { text } = await at.call("GET", "/metrics", { headers: { authorization: `Bearer ${admin.token}` } });
  const lines = text.split("\n").filter((line) => line.startsWith("drover_plan"));
  assert.deepEqual(lines, [
    ...['drover_plans{state="running"} 1', 'drover_plans{state="paused"} 0', 'drover_plans{state="done"} 0'],
    ...['drover_plans{state="failed"} 0', 'drover_plans{state="cancelled"} 1', "drover_plan_tasks 4"],
  ]);
});

test("the document that was put is told on demand, also after a put that changed nothing", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  for (const tasks of [{ build: "cc" }, body.tasks, body.tasks])
    await at.ask("putPlan", { params, query: {}, body: { tasks } }, ann);
  const told = await at.ask("plan", { params, query: { document: true } }, ann);
  assert.deepEqual(told.json.document, body);
  assert.equal("document" in (await at.ask("plan", { params, query: {} }, ann)).json, false);
  assert.equal((await at.ask("plan", { params, query: { document: true } }, bob)).status, 404);
  await at.ask("cancelPlan", { params, body: {} }, ann);
  assert.deepEqual((await at.ask("plan", { params, query: { document: true } }, ann)).json.document, body);
  const mixed = { tasks: { a: { run: "x", agent: "ann" }, b: { run: "y", agent: "bob", env: { KEY: "bobs" } } } };
  await at.ask("putPlan", { params: { id: "mixed" }, query: { only: ["a"] }, body: mixed }, admin);
  const own = { params: { id: "mixed" }, query: {} };
  assert.equal((await at.ask("plan", own, ann)).status, 200);
  const refused = await at.ask("plan", { ...own, query: { document: true } }, ann);
  assert.deepEqual([refused.status, JSON.stringify(refused).includes("bobs")], [403, false]);
});

test("a client waits for the end of a plan", async () => {
  await using at = await openServer();
  const client = createClient({ url: at.url });
  await client.plans.put("release", body);
  await assert.rejects(client.plans.wait("release", { withinMs: 1 }), {
    code: "timeout",
    // A machine that stands still for a second has no answer in time.
    message: /^(plan release is running after|the server has not answered within) 1 ms$/,
  });
  const waiting = client.plans.wait("release");
  await client.plans.cancel("release");
  const { state, tasks } = await waiting;
  assert.deepEqual([state, tasks.length], ["cancelled", 2]);
  await assert.rejects(client.plans.wait("other"), { code: "not_found" });
});
