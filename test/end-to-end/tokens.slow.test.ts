/**
 * Who may do what: roles, tokens scoped to a project or an agent, and what a server without tokens is good for.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CALLS, type Call, type CallName, ROLES, type Role } from "../../src/protocol/index.ts";
import { statusUnder } from "../kits/raw-socket.ts";
import { openServer, pathOf, settingsOf, type TestServer } from "../kits/test-server.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const roles = ROLES.map((role) => ({ role, token: tokenOf(role) }));
const scoped = [
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
  { role: "agent", token: tokenOf("site"), project: "site" },
  { role: "agent", token: tokenOf("both"), agentId: "ann", project: "site" },
  { role: "viewer", token: tokenOf("looker"), project: "site" },
  { role: "agent", token: tokenOf("two"), agentId: "ann", projects: ["site", "other"] },
  { role: "agent", token: tokenOf("plain"), projects: ["default", "site"] },
];

let at: TestServer;
before(async () => {
  at = await openServer({ settings: { server: { tokens: [...roles, ...scoped] } } });
  const admin = { token: tokenOf("admin") };
  const tasks = [
    { id: "ann-site", agentId: "ann", project: "site" },
    { id: "ann-other", agentId: "ann" },
    { id: "bob-site", agentId: "bob", project: "site" },
    { id: "bob-other", agentId: "bob" },
  ];
  for (const one of tasks) assert.equal((await at.ask("submit", { body: { ...one, action: "x" } }, admin)).status, 202);
});
after(() => at.server.close());

/** What a call answers to somebody it lets in: anything but these two. */
const isLetIn = (status: number): boolean => status !== 401 && status !== 403;

for (const role of [...ROLES, null] as (Role | null)[])
  test(`${role ?? "nobody"} may make exactly the calls that the table allows`, async () => {
    for (const name of Object.keys(CALLS) as CallName[]) {
      const call = CALLS[name] as unknown as Call;
      const headers: Record<string, string> = role === null ? {} : { authorization: `Bearer ${tokenOf(role)}` };
      const path = pathOf(call.path, { id: "nobody" }, {});
      const reply = await at.call(call.method, path, { headers, ...(call.body === null ? {} : { body: "[]" }) });
      const isAllowed = call.roles === null || (role !== null && call.roles.includes(role));
      assert.equal(isLetIn(reply.status), isAllowed, `${name}: ${reply.status} ${reply.text.slice(0, 200)}`);
      if (isAllowed) continue;
      assert.equal(reply.status, role === null ? 401 : 403);
      assert.equal(reply.problem.code, role === null ? "unauthorized" : "forbidden");
      if (role === null) assert.equal(reply.headers.get("www-authenticate"), "Bearer");
    }
  });

test("a wrong token is 401 and is not repeated", async () => {
  const reply = await at.ask("tasks", { query: {} }, { token: "wrong-token-0123456789" });
  assert.deepEqual([reply.status, reply.problem.code], [401, "unauthorized"]);
  assert.doesNotMatch(reply.text, /wrong-token/);
});

test("a token is checked before the body is read", async () => {
  const reply = await at.call("POST", "/tasks", { body: "{", headers: { authorization: "Bearer nobody" } });
  assert.equal(reply.status, 401);
});

type Claim = { token: string; body: Record<string, string>; field: string | null };
const claims: Claim[] = [
  { token: "ann", body: { agentId: "bob" }, field: "agentId" },
  { token: "ann", body: { agentId: "ann", project: "anything" }, field: null },
  { token: "site", body: { agentId: "anybody" }, field: null },
  { token: "site", body: { agentId: "ann", project: "other" }, field: "project" },
  { token: "both", body: { agentId: "bob", project: "site" }, field: "agentId" },
  { token: "both", body: { agentId: "ann", project: "other" }, field: "project" },
  { token: "two", body: { agentId: "ann", project: "other" }, field: null },
  { token: "two", body: { agentId: "ann" }, field: "project" },
  { token: "two", body: { agentId: "ann", project: "third" }, field: "project" },
  { token: "plain", body: { agentId: "ann" }, field: null },
];
for (const { token, body, field } of claims)
  test(`the token of ${token} ${field === null ? "may" : "may not"} claim ${JSON.stringify(body)}`, async () => {
    const more = { token: tokenOf(token) };
    const task = { ...body, action: "x" } as { agentId: string; action: string };
    const single = await at.ask("submit", { body: task }, more);
    const { agentId, action: _, ...rest } = task;
    const batch = await at.ask("submitBatch", { body: { agentId, ...rest, tasks: [{ action: "x" }] } }, more);
    const schedule = { params: { id: `of-${token}` }, body: { cron: "@yearly", task } };
    const put = await at.ask("putSchedule", schedule, more);
    const status = field === null ? [202, 202, 200] : [403, 403, 403];
    assert.deepEqual([single.status, batch.status, put.status], status, single.text + batch.text + put.text);
    if (field === null) return;
    assert.equal(single.problem.details?.field, field);
    assert.equal(put.problem.details?.field, `task.${field}`);
  });

test("who speaks for one agent need not say for which", async () => {
  const more = { token: tokenOf("ann") };
  const single = await at.ask("submit", { body: { action: "x", id: "unsaid" } as never }, more);
  const batch = await at.ask("submitBatch", { body: { tasks: [{ action: "x", id: "unsaid-2" }] } as never }, more);
  const schedule = { params: { id: "unsaid" }, body: { cron: "@yearly", task: { action: "x" } } };
  const put = await at.ask("putSchedule", schedule as never, more);
  assert.deepEqual([single.status, batch.status, put.status], [202, 202, 200], single.text + batch.text + put.text);
  for (const id of ["unsaid", "unsaid-2"]) assert.equal((await at.drover.task(id)).agentId, "ann");
  assert.equal(put.json.task.agentId, "ann");
  const other = await at.ask("submit", { body: { action: "x" } as never }, { token: tokenOf("site") });
  assert.deepEqual([other.status, other.problem.details?.field], [400, "agentId"], "a project has many agents");
});

test("an item of a batch may not claim another project either", async () => {
  const body = { agentId: "ann", tasks: [{ action: "x" }, { action: "x", project: "other" }] };
  const reply = await at.ask("submitBatch", { body }, { token: tokenOf("site") });
  assert.deepEqual([reply.json.accepted, reply.json.rejected], [1, 1]);
  assert.match(reply.json.tasks[1]?.error ?? "", /^tasks\[1\]\.project is other/);
});

test("what names no project is the project the token is scoped to", async () => {
  const more = { token: tokenOf("site") };
  const { taskId } = (await at.ask("submit", { body: { agentId: "ann", action: "x" } }, more)).json;
  assert.equal((await at.ask("task", { params: { id: taskId } }, more)).json.project, "site");
});

const seen: Record<string, string[]> = {
  ann: ["ann-site", "ann-other"],
  site: ["ann-site", "bob-site"],
  both: ["ann-site"],
  looker: ["ann-site", "bob-site"],
  two: ["ann-site"],
  plain: ["ann-site", "ann-other", "bob-site", "bob-other"],
};
for (const [token, ids] of Object.entries(seen))
  test(`the token of ${token} sees ${ids.join(" and ")}, and nothing else is there for it`, async () => {
    const more = { token: tokenOf(token) };
    for (const id of ["ann-site", "ann-other", "bob-site", "bob-other"]) {
      const expected = ids.includes(id) ? 200 : 404;
      const wait = await at.ask("wait", { params: { id }, query: { timeoutMs: 0 } }, more);
      const reads = [
        await at.ask("task", { params: { id } }, more),
        await at.ask("why", { params: { id }, query: {} }, more),
        wait,
      ];
      assert.deepEqual(
        reads.map(({ status }) => status),
        [expected, expected, expected],
        id,
      );
      if (expected === 404) assert.equal(reads[0]?.problem.error, `no task has the id ${id}`);
      if (token === "looker" || expected === 200) continue;
      const writes = [
        await at.ask("cancel", { params: { id }, body: {} }, more),
        await at.ask("patch", { params: { id }, body: { priority: 1 } }, more),
        await at.ask("retry", { params: { id } }, more),
      ];
      assert.deepEqual(
        writes.map(({ status }) => status),
        [404, 404, 404],
        id,
      );
    }
    const page = await at.ask("tasks", { query: { limit: 1000 } }, more);
    const owners = page.json.tasks.map(({ agentId, project }) => ({ agentId, project }));
    const { agentId, project } = scoped.find((one) => one.token === tokenOf(token)) ?? {};
    assert.ok(owners.length >= ids.length);
    for (const owner of owners) {
      if (agentId !== undefined) assert.equal(owner.agentId, agentId);
      if (project !== undefined) assert.equal(owner.project, project);
    }
  });

test("a filter that names somebody else is refused, and cancelling everything cancels one's own", async () => {
  const more = { token: tokenOf("both") };
  const foreign = await at.ask("tasks", { query: { agentId: "bob" } }, more);
  assert.deepEqual([foreign.status, foreign.problem.details?.field], [403, "agentId"]);
  const named = await at.ask("cancelWhere", { body: { filter: { project: "other" } } }, more);
  assert.equal(named.status, 403);
  await at.ask("submit", { body: { id: "mine", agentId: "ann", project: "site", action: "x" } }, more);
  const all = await at.ask("cancelWhere", { body: { filter: { all: true } } }, more);
  assert.ok(all.json.count >= 1);
  const admin = { token: tokenOf("admin") };
  assert.equal((await at.ask("task", { params: { id: "mine" } }, admin)).json.state, "cancelled");
  assert.equal((await at.ask("task", { params: { id: "bob-site" } }, admin)).json.state, "queued");
  assert.equal((await at.ask("task", { params: { id: "ann-other" } }, admin)).json.state, "queued");
});

test("lists show a scoped token its own", async () => {
  const more = { token: tokenOf("both") };
  const projects = await at.ask("projects", {}, more);
  assert.deepEqual(
    projects.json.projects.map(({ id }) => id),
    ["site"],
  );
  assert.equal((await at.ask("project", { params: { id: "default" } }, more)).status, 404);
  const queue = await at.ask("queue", {}, more);
  const agents = queue.json.projects.flatMap((one) => one.agents.map(({ agentId }) => agentId));
  assert.deepEqual(
    [...new Set(agents)].filter((agent) => agent !== "ann"),
    [],
  );
  const stats = await at.ask("stats", {}, more);
  assert.deepEqual(Object.keys(stats.json.metrics.agents), ["ann"]);
});

test("somebody else's schedule can be neither seen, replaced nor removed", async () => {
  const body = { cron: "@yearly", task: { agentId: "bob", action: "x" } };
  await at.ask("putSchedule", { params: { id: "bobs" }, body }, { token: tokenOf("admin") });
  const more = { token: tokenOf("ann") };
  assert.equal((await at.ask("schedule", { params: { id: "bobs" } }, more)).status, 404);
  assert.equal((await at.ask("removeSchedule", { params: { id: "bobs" } }, more)).status, 404);
  const own = { ...body, task: { agentId: "ann", action: "x" } };
  assert.equal((await at.ask("putSchedule", { params: { id: "bobs" }, body: own }, more)).status, 403);
  const list = await at.ask("schedules", { query: {} }, more);
  assert.ok(list.json.schedules.every(({ task }) => task.agentId === "ann"));
});

test("somebody else's permit can be neither asked for again, settled nor dropped", async () => {
  const admin = { token: tokenOf("admin") };
  await at.ask("askPermit", { body: { gate: "g", id: "theirs", project: "other" } }, admin);
  const more = { token: tokenOf("site") };
  assert.equal((await at.ask("askPermit", { body: { gate: "g", id: "theirs" } }, more)).status, 404);
  assert.equal((await at.ask("settlePermit", { params: { id: "theirs" }, body: {} }, more)).status, 404);
  assert.equal((await at.ask("dropPermit", { params: { id: "theirs" }, query: {} }, more)).status, 404);
  assert.equal((await at.ask("askPermit", { body: { gate: "g", project: "other" } }, more)).status, 403);
  assert.equal((await at.ask("askPermit", { body: { gate: "g", taskId: "ann-other", attempt: 1 } }, more)).status, 404);
  const own = await at.ask("askPermit", { body: { gate: "g", id: "ours" } }, more);
  assert.equal(own.status, 200);
  assert.equal((await at.ask("settlePermit", { params: { id: "ours" }, body: {} }, more)).status, 200);
});

test("a permit that is no task's is that agent's who asked for it, however its id is guessed", async () => {
  const [ann, admin] = [{ token: tokenOf("ann") }, { token: tokenOf("admin") }];
  const { permitId } = (await at.ask("askPermit", { body: { gate: "g" } }, admin)).json;
  assert.equal((await at.ask("askPermit", { body: { gate: "g", id: permitId } }, ann)).status, 404);
  const throttle = { rateLimited: { retryAfterMs: 3_600_000 } };
  assert.equal((await at.ask("settlePermit", { params: { id: permitId }, body: throttle }, ann)).status, 404);
  assert.equal((await at.ask("dropPermit", { params: { id: permitId }, query: {} }, ann)).status, 404);
  for (const id of [undefined, "anns"]) {
    const body = { gate: "g", ...(id === undefined ? {} : { id }) };
    const own = (await at.ask("askPermit", { body }, ann)).json;
    assert.equal((await at.ask("askPermit", { body: { gate: "g", id: own.permitId } }, ann)).status, 200);
    assert.equal((await at.ask("settlePermit", { params: { id: own.permitId }, body: {} }, ann)).status, 200);
  }
});

test("what speaks of the work of all is not for a scoped token", async () => {
  const headers = { authorization: `Bearer ${tokenOf("looker")}` };
  const reply = await at.call("GET", CALLS.metrics.path, { headers });
  assert.deepEqual([reply.status, reply.problem.code], [403, "forbidden"]);
  assert.match(reply.problem.error, /scoped to project site/);
});

test("without tokens the server listens to this machine only", async () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1"])
    await assert.rejects(openServer({ settings: { server: { host } } }), /server\.tokens is empty/, host);
});

test("with a token it listens to all, and answers under any address but no foreign name", async () => {
  const tokens = [{ role: "admin", token: tokenOf("admin") }];
  await using open = await openServer({ settings: { server: { host: "0.0.0.0", tokens } } });
  assert.equal(await statusUnder(`${open.url}/healthz`, { host: "10.1.2.3:4747" }), 200);
  assert.equal(await statusUnder(`${open.url}/healthz`, { host: "evil.example:4747" }), 403);
  assert.match(open.url, /^http:\/\/127\.0\.0\.1:\d+$/);
});

test("new settings hold at once: a token that is gone no longer opens anything", async () => {
  const tokens = [{ role: "admin", token: tokenOf("old") }];
  await using one = await openServer({ settings: { server: { tokens } } });
  assert.equal((await one.ask("workers", {}, { token: tokenOf("old") })).status, 200);
  one.server.change(settingsOf({ server: { tokens: [{ role: "admin", token: tokenOf("new") }] } }));
  assert.equal((await one.ask("workers", {}, { token: tokenOf("old") })).status, 401);
  assert.equal((await one.ask("workers", {}, { token: tokenOf("new") })).status, 200);
});
