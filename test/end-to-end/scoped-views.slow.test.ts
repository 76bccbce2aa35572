/**
 * A scoped token sees its own, whatever it asks. What other projects have is called secret here, what other agents of
 * its project have neighbour, and the words are in no answer to any call that reads. The table is the protocol's, so a
 * call that is added is asked too.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CALLS, type Call, type CallName, ENDPOINTS } from "../../src/protocol/index.ts";
import { openServer, pathOf, type TestServer } from "../kits/test-server.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
  { role: "agent", token: tokenOf("site"), project: "site" },
  { role: "agent", token: tokenOf("both"), agentId: "ann", projects: ["site", "shop"] },
  { role: "viewer", token: tokenOf("looker"), projects: ["site"] },
];
/** What each of them must not meet. Ann's agent has a task in the project elsewhere. */
const HIDDEN: Readonly<Record<string, RegExp>> = {
  ann: /secret|neighbour/,
  site: /secret|elsewhere/,
  both: /secret|neighbour|elsewhere/,
  looker: /secret|elsewhere/,
};

let at: TestServer;
const admin = { token: tokenOf("admin") };
const submit = async (body: { id: string; agentId: string } & Record<string, unknown>): Promise<void> => {
  const reply = await at.ask("submit", { body: { action: "x", ...body } }, admin);
  assert.equal(reply.status, 202, reply.text);
};
/** The own task waits behind others, for a lock of others, and for a budget that is judged on another's task. */
before(async () => {
  const projects = {
    ...{ secret: { maxPriority: "critical", weight: 100 }, "secret-heavy": { weight: 500 } },
    site: { budget: { limit: 1000 } },
  };
  at = await openServer({ settings: { server: { tokens }, gates: { anthropic: {} }, projects } });
  const secret = { agentId: "secret-agent", project: "secret", params: { text: "secret text" } };
  await submit({ ...secret, id: "secret-holder", locks: ["repo"], estimatedTokens: 10 });
  const { session } = (await at.ask("joinWorker", { body: { id: "w", slots: 3 } }, admin)).json;
  const { json } = await at.ask("sync", { params: { id: "w" }, body: { session } }, admin);
  assert.equal(json.assignments[0]?.taskId, "secret-holder");
  await at.ask("pause", { body: {} }, admin);
  await at.ask("joinWorker", { body: { id: "idle", capabilities: ["tab:secret-tab"] } }, admin);
  await at.ask("drainWorker", { params: { id: "idle" }, query: {} }, admin);
  await submit({ ...secret, id: "secret-urgent", priority: "critical" });
  await submit({ ...secret, id: "secret-next", type: "secret-type" });
  await submit({ ...secret, id: "secret-first", project: "secret-heavy" });
  await submit({ agentId: "a-neighbour", project: "site", id: "of-a-neighbour", estimatedTokens: 999 });
  await submit({ agentId: "ann", project: "site", id: "mine", locks: ["repo"], estimatedTokens: 10 });
  await submit({ agentId: "ann", project: "site", id: "mine-too", needs: ["mine"] });
  await submit({ agentId: "ann", project: "elsewhere", id: "ann-elsewhere" });
  await submit({ ...secret, project: "elsewhere", id: "secret-elsewhere" });
  for (const [id, gate] of Object.entries({ "secret-call": "secret-gate", "secret-other": "anthropic" }))
    await at.ask("askPermit", { body: { id, gate, project: "secret" } }, admin);
  await at.ask("askPermit", { body: { id: "my-call", gate: "of-site", project: "site" } }, admin);
  const task = { agentId: "secret-agent", project: "secret", action: "x" };
  await at.ask("putSchedule", { params: { id: "secret-schedule" }, body: { cron: "@yearly", task } }, admin);
});
after(() => at.server.close());

const READS = (Object.keys(ENDPOINTS) as CallName[]).filter((name) => ENDPOINTS[name].method === "GET");
const IDS = [
  "mine",
  "mine-too",
  "secret-holder",
  "secret-next",
  "secret",
  "site",
  "secret-schedule",
  "secret-gate",
].concat(["anthropic", "of-site"]);
const queriesOf = (name: CallName): string[] => {
  if (name === "wait") return ["?timeoutMs=0"];
  return name === "why" ? ["", `?at=${at.drover.state.seq}`] : [""];
};

for (const [who, hidden] of Object.entries(HIDDEN))
  test(`the token of ${who} finds nothing of others in any answer`, async () => {
    const headers = { authorization: `Bearer ${tokenOf(who)}` };
    const answered = new Set<string>();
    for (const name of READS) {
      const { path } = CALLS[name] as unknown as Call;
      for (const id of path.includes("{id}") ? IDS : [""]) {
        for (const query of queriesOf(name)) {
          const { status, text } = await at.call("GET", `${pathOf(path, { id }, {})}${query}`, { headers });
          if (status === 200) answered.add(name);
          // What a caller has named itself may come back in a refusal. Capabilities are the worker's, not a project's.
          const told = text.replaceAll(id, "").replaceAll("tab:secret-tab", "");
          assert.doesNotMatch(told, hidden, `${name} ${id}${query}`);
        }
      }
    }
    const expected = ["tasks", "task", "why", "wait", "projects", "workers", "gates", "stats", "queue", "line"];
    assert.deepEqual(
      [...expected, "schedules"].filter((name) => !answered.has(name)),
      [],
      "these were answered",
    );
  });

test("a scoped caller's own tasks say that others go first, and an admin hears who", async () => {
  const why = async (token: string) => (await at.ask("why", { params: { id: "mine" }, query: {} }, { token })).json;
  const details = (await why(tokenOf("site"))).conditions.map(({ detail }) => detail);
  for (const told of [
    "a task of somebody else goes first, by the express lane",
    "another project goes first",
    "lock repo is held by a task of somebody else",
  ])
    assert.ok(details.includes(told), details.join("\n"));
  const ofAgent = (await why(tokenOf("both"))).conditions.map(({ detail }) => detail);
  for (const told of [
    "another agent of its project goes first",
    "the budget of its project is judged on a task of somebody else, which is next in line",
  ])
    assert.ok(ofAgent.includes(told), ofAgent.join("\n"));
  assert.match(JSON.stringify(await why(tokenOf("admin"))), /secret-holder/);
});

test("what others used is in no row, and claims another's is refused", async () => {
  await using other = await openServer({ settings: { server: { tokens } } });
  const { session } = (await other.ask("joinWorker", { body: { id: "w", slots: 9 } }, admin)).json;
  for (const [id, agentId, project] of [
    ["t1", "ann", "site"],
    ["t2", "a-neighbour", "site"],
    ["t3", "secret-agent", "secret"],
    ["t4", "ann", "elsewhere"],
  ] as const) {
    const labels = { who: `${agentId}@${project}` };
    await other.ask("submit", { body: { id, agentId, project, action: "x", labels } }, admin);
  }
  await other.ask("sync", { params: { id: "w" }, body: { session, want: 9 } }, admin);
  const ends = ["t1", "t2", "t3", "t4"].map((taskId) => ({
    taskId,
    attempt: 1,
    outcome: "done",
    usage: { inputTokens: 7 },
  }));
  await other.ask("sync", { params: { id: "w" }, body: { session, results: ends as never } }, admin);
  const keys = async (who: string, query: object): Promise<string[]> => {
    const { status, json, text } = await other.ask("usage", { query }, { token: tokenOf(who) });
    assert.equal(status, 200, text);
    assert.equal(json.total.usage.inputTokens, 7 * json.total.attempts);
    return json.rows.map(({ key }) => key).sort();
  };
  const all = ["a-neighbour@site", "ann@elsewhere", "ann@site", "secret-agent@secret"];
  for (const [who, expected] of Object.entries({
    admin: all,
    ann: ["ann@elsewhere", "ann@site"],
    site: ["a-neighbour@site", "ann@site"],
    both: ["ann@site"],
    looker: ["a-neighbour@site", "ann@site"],
  })) {
    assert.deepEqual(await keys(who, { by: "label:who" }), expected, who);
    const projects = [...new Set(expected.map((one) => one.replace(/.*@/, "")))].sort();
    assert.deepEqual(await keys(who, {}), projects, who);
  }
  for (const query of [{ project: "secret" }, { agentId: "secret-agent" }])
    assert.equal((await other.ask("usage", { query }, { token: tokenOf("both") })).status, 403);
  const bad = await other.call("GET", "/usage?by=nobody", { headers: { authorization: `Bearer ${tokenOf("admin")}` } });
  assert.deepEqual([bad.status, bad.json], [400, { ...(bad.json as object), code: "bad_request" }]);
  assert.match(bad.text, /project, agent, type, day, or label/);
});

test("a worker's note is for those who see all", async () => {
  await using other = await openServer({ settings: { server: { tokens } } });
  const { session } = (await other.ask("joinWorker", { body: { id: "w" } }, admin)).json;
  const note = "keeps the worktree of secret-holder;\nworker w: and of secret-urgent";
  await other.ask("sync", { params: { id: "w" }, body: { session, want: 0, note } }, admin);
  await other.ask("submit", { body: { id: "mine", agentId: "ann", project: "site", action: "x" } }, admin);
  for (const name of ["admin", ...Object.keys(HIDDEN)]) {
    const token = tokenOf(name);
    const why = await other.ask("why", { params: { id: "mine" }, query: {} }, { token });
    const workers = await other.ask("workers", {}, { token });
    for (const { text } of [why, workers]) {
      if (name === "admin") assert.match(text, /secret-holder/);
      else assert.doesNotMatch(text, /secret/, name);
    }
    assert.match(why.text, /"the one worker has no room for it: (not taking work|without a free slot)/);
  }
});

test("a task of another project is no dependency: it is answered as if it were not there", async () => {
  const more = { token: tokenOf("site") };
  for (const dependency of ["secret-holder", "not-there"]) {
    const task = { agentId: "ann", action: "x", needs: [dependency] };
    const replies = [
      await at.ask("submit", { body: task }, more),
      await at.ask("submit", { body: { ...task, needs: { by: dependency } } }, more),
      await at.ask("submit", { body: { agentId: "ann", action: "x", parent: dependency } }, more),
    ];
    for (const { status, problem } of replies) {
      assert.equal(status, 400);
      assert.match(problem.error, new RegExp(`names ${dependency}, which no task has`));
    }
    const put = await at.ask("putSchedule", { params: { id: "s" }, body: { cron: "@yearly", task } }, more);
    assert.equal(put.status, 403, "its schedules may name no task at all");
    const batch = await at.ask("submitBatch", { body: { agentId: "ann", tasks: [task] } }, more);
    assert.doesNotMatch(batch.text, /"accepted":1/);
  }
  const own = await at.ask("submit", { body: { agentId: "ann", action: "x", needs: ["mine"] } }, more);
  assert.equal(own.status, 202);
});

test("of two projects a token sees both, and lists both at once", async () => {
  const more = { token: tokenOf("both") };
  await submit({ agentId: "ann", project: "shop", id: "in-shop" });
  const ids = async (query: { project?: string }): Promise<string[]> =>
    (await at.ask("tasks", { query }, more)).json.tasks.map(({ taskId }) => taskId);
  assert.deepEqual(
    (await ids({})).filter((id) => !id.startsWith("tsk_")),
    ["mine", "mine-too", "in-shop"],
  );
  assert.deepEqual(await ids({ project: "shop" }), ["in-shop"]);
  assert.equal((await at.ask("tasks", { query: { project: "secret" } }, more)).status, 403);
  const listed = (await at.ask("projects", {}, more)).json.projects.map(({ id }) => id);
  assert.deepEqual(listed.sort(), ["shop", "site"]);
  const cancelled = await at.ask("cancelWhere", { body: { filter: { all: true } } }, more);
  assert.ok(cancelled.json.count >= 3);
  for (const id of ["ann-elsewhere", "of-a-neighbour"])
    assert.equal((await at.ask("task", { params: { id } }, admin)).json.state, "queued", id);
});

test("of a group a token sees, waits for, cancels and retries the part that is its own", async () => {
  const tasks = [
    { id: "g-site", action: "x", project: "site" },
    { id: "g-secret", action: "x", project: "secret" },
  ];
  const { json: batch } = await at.ask("submitBatch", { body: { agentId: "eve", tasks } }, admin);
  const params = { id: batch.groupId ?? "" };
  const more = { token: tokenOf("site") };
  const { json: whole } = await at.ask("group", { params }, admin);
  assert.deepEqual([whole.total, whole.projects], [2, ["secret", "site"]]);
  const { json: own, text } = await at.ask("group", { params }, more);
  assert.deepEqual([own.total, own.projects, own.counts.queued], [1, ["site"], 1]);
  assert.doesNotMatch(text, /secret/);
  const { json: cancelled } = await at.ask("cancelGroup", { params, body: {} }, more);
  assert.equal(cancelled.count, 1);
  const { json: ended } = await at.ask("waitGroup", { params, query: {} }, more);
  assert.equal(ended.counts.cancelled, 1);
  const { json: waited } = await at.ask("waitGroup", { params, query: { timeoutMs: 1 } }, admin);
  assert.deepEqual([waited.counts.queued, waited.endedAt], [1, undefined]);
  assert.equal((await at.ask("retryGroup", { params }, more)).json.count, 1);
  assert.equal((await at.ask("cancelGroup", { params, body: {} }, more)).json.count, 1);
  const secret = await at.ask(
    "submitBatch",
    { body: { agentId: "eve", tasks: [{ action: "x", project: "secret" }] } },
    admin,
  );
  const hidden = { id: secret.json.groupId ?? "" };
  const refused = [
    await at.ask("group", { params: hidden }, more),
    await at.ask("waitGroup", { params: hidden, query: {} }, more),
    await at.ask("cancelGroup", { params: hidden, body: {} }, more),
    await at.ask("retryGroup", { params: hidden }, more),
  ];
  for (const { status } of refused) assert.equal(status, 404);
});

test("an agent's token that lists no projects sees those its agent has tasks in", async () => {
  const seen = async (token: string): Promise<string[]> =>
    (await at.ask("projects", {}, { token })).json.projects.map(({ id }) => id).sort();
  assert.deepEqual(await seen(tokenOf("ann")), ["elsewhere", "shop", "site"]);
  assert.deepEqual(await seen(tokenOf("looker")), ["site"]);
});
