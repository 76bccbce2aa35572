/**
 * The token of an attempt over HTTP: what it is good for, what it is not, and when it is over.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import { createExecHandler } from "../../src/worker/exec/handler.ts";
import { startWorker } from "../../src/worker/index.ts";
import { answering } from "../kits/loopback.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";

const ADMIN = "an-admin-token-of-32-characters!";
const SETTINGS = { server: { tokens: [{ token: ADMIN, role: "admin" }] } };

type Running = { readonly taskId: string; readonly token: string; end(): void };

/** Tasks that run until they are told to end, and their tokens. */
async function runningTasks(server: TestServer, ...bodies: readonly Record<string, unknown>[]): Promise<Running[]> {
  const running: Running[] = [];
  const all = Promise.withResolvers<void>();
  await server.drover.worker({ id: "w", slots: 20 }, ({ taskId, action }, { token, signal }) => {
    if (action !== "hold") return "quick";
    const held = Promise.withResolvers<string>();
    signal.addEventListener("abort", () => held.resolve("stopped"));
    running.push({ taskId, token: token ?? "", end: () => held.resolve("held") });
    if (running.length === bodies.length) all.resolve();
    return held.promise;
  });
  for (const body of bodies) await server.drover.submit({ agentId: "ann", action: "hold", ...body });
  await within("all of them run", all.promise);
  return bodies.map(({ id }) => running.find(({ taskId }) => taskId === id) as Running);
}
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

for (const settings of [{}, SETTINGS]) {
  const where = Object.keys(settings).length === 0 ? "a server without tokens" : "one with tokens";
  test(`on ${where} an attempt submits children and reads its tree, and no more`, async () => {
    await using server = await openServer({ settings });
    await server.drover.submit({ id: "need", agentId: "eve", project: "else", action: "quick" });
    const own = { id: "one", project: "site", labels: { team: "web" }, needs: ["need"] };
    const [one, two] = (await runningTasks(server, own, { id: "two", project: "site" })) as [Running, Running];
    const as = (token: string, method: string, path: string, body?: unknown) =>
      server.call(method, path, { headers: bearer(token), ...(body === undefined ? {} : { body }) });
    const made = await as(one.token, "POST", "/tasks", { id: "child", action: "quick" });
    assert.equal(made.status, 202, made.text);
    const batch = await as(one.token, "POST", "/tasks/batch", {
      tasks: [{ action: "quick" }, { action: "quick", parent: "two" }],
    });
    assert.deepEqual((batch.json as { accepted: number }).accepted, 1, batch.text);
    await server.drover.wait("child");
    for (const id of ["one", "child", "need"])
      assert.equal((await as(one.token, "GET", `/tasks/${id}`)).status, 200, `${id} is of its tree`);
    const { parent, project, agentId, labels } = (await server.drover.task("child")) as unknown as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      { parent, project, agentId, labels },
      { parent: "one", project: "site", agentId: "ann", labels: { team: "web" } },
    );
    assert.equal((await as(two.token, "GET", "/tasks/child")).status, 404, "the child of another is not found");
    assert.equal((await as(one.token, "GET", "/tasks/two")).status, 404, "nor is another of the same agent");
    for (const [status, body] of [
      [403, { action: "quick", project: "else" }],
      [403, { action: "quick", agentId: "eve" }],
      [400, { action: "quick", parent: "two" }],
      [400, { action: "quick", needs: ["two"] }],
    ] as const)
      assert.equal((await as(one.token, "POST", "/tasks", body)).status, status, JSON.stringify(body));
    for (const [method, path, body] of [
      ["GET", "/tasks"],
      ["GET", "/tasks/one/why"],
      ["POST", "/tasks/one/cancel", {}],
      ["POST", "/tasks/child/cancel", {}],
      ["POST", "/tasks/one/approve", {}],
      ["POST", "/tasks/child/approve", { deny: true }],
      ["PATCH", "/tasks/one", { priority: -300 }],
      ["GET", "/scheduler/config"],
      ["GET", "/workers"],
      ["GET", "/events"],
      ["POST", "/permits", { gate: "openai" }],
    ] as const)
      assert.equal((await as(one.token, method, path, body)).status, 403, `${method} ${path}`);
    const forged = one.token.replace(
      Buffer.from("one").toString("base64url"),
      Buffer.from("two").toString("base64url"),
    );
    const higher = one.token.replace(/\.1\./, ".2.");
    for (const token of [forged, higher, one.token.slice(0, -1), "drover-attempt.x.1.y"])
      assert.equal((await as(token, "GET", "/tasks/two")).status, 401, token);
    one.end();
    await server.drover.wait("one");
    assert.equal((await as(one.token, "POST", "/tasks", { action: "quick" })).status, 401, "its attempt is over");
    assert.equal((await as(one.token, "GET", "/tasks/one")).status, 401);
    two.end();
  });
}

test("an attempt puts files of its own and reads those that its task needs, and no others", async () => {
  await using server = await openServer({ settings: SETTINGS });
  const { drover } = server;
  const secret = await drover.files.put("secret");
  const needed = await drover.files.put("needed");
  const leave = async (id: string, hash: string, more: object = {}) => {
    await drover.remote.join({ id: `w-${id}`, slots: 1, capabilities: [id] });
    await drover.submit({ id, action: "leave", agentId: "ann", capabilities: [id], ...more });
    await drover.remote.sync(`w-${id}`, { n: 1, running: [{ taskId: id, attempt: 1 }] });
    const results = [{ taskId: id, attempt: 1, outcome: "done" as const, files: [{ path: "f", hash, size: 6 }] }];
    await drover.remote.sync(`w-${id}`, { n: 2, results });
    assert.equal((await drover.task(id)).state, "done");
  };
  await leave("need", needed.hash, { agentId: "eve", project: "else" });
  await leave("other", secret.hash);
  const [one, two] = (await runningTasks(server, { id: "one", needs: ["need"] }, { id: "two" })) as [Running, Running];
  const files = (token: string) => createClient({ url: server.url, token, retries: 0 }).files;
  const { hash } = await files(one.token).put("of one");
  assert.deepEqual(drover.files.totals().count, 3);
  assert.equal(String(Buffer.from(await files(one.token).get(needed.hash))), "needed");
  for (const [what, call] of Object.entries({
    "what its task does not need": () => files(one.token).get(secret.hash),
    "what no task lists yet": () => files(one.token).get(hash),
    "what another needs": () => files(two.token).get(needed.hash),
    "of a task that is not of its tree": () => files(one.token).get(secret.hash, { task: "other" }),
  }))
    await assert.rejects(call(), { code: "not_found" }, what);
  for (const given of [{ task: "two", attempt: 1 }, { attempt: 2 }])
    await assert.rejects(files(one.token).put("x", given), { code: "forbidden" }, JSON.stringify(given));
  one.end();
  await drover.wait("one");
  await assert.rejects(files(one.token).put("late"), { code: "unauthorized" });
  two.end();
});

test("a push worker is posted the token of its attempt in a header, and submits children by it", async () => {
  await using server = await openServer({ settings: SETTINGS });
  const said: unknown[] = [];
  const own = await answering(async (request, response) => {
    if (request.method === "GET") return void response.writeHead(404).end();
    const token = String(request.headers["x-drover-token"]);
    request.resume();
    const made = await server.call("POST", "/tasks", { headers: bearer(token), body: { id: "kid", action: "leaf" } });
    const other = await server.call("GET", "/tasks/other", { headers: bearer(token) });
    said.push(made.status, other.status, token);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  try {
    await server.drover.submit({ id: "other", agentId: "eve", action: "leaf" });
    const join = { id: "p", endpoint: own.url, actions: ["grow"] };
    const joined = await server.call("POST", "/workers", { headers: bearer(ADMIN), body: join });
    assert.equal(joined.status, 201, joined.text);
    await server.drover.submit({ id: "mother", agentId: "ann", action: "grow" });
    assert.equal((await server.drover.wait("mother")).state, "done");
    const [made, other, token] = said;
    assert.deepEqual([made, other], [202, 404]);
    assert.equal((await server.drover.task("kid")).parent, "mother");
    // The attempt is over, and so is its token.
    assert.equal((await server.call("GET", "/tasks/mother", { headers: bearer(String(token)) })).status, 401);
  } finally {
    await own.close();
  }
});

test("the key lies in the data directory for its owner only, and tokens outlive a restart", async () => {
  const data = mkdtempSync(join(tmpdir(), "drover-"));
  try {
    let token = "";
    {
      await using server = await openServer({ open: { data } });
      await server.drover.remote.join({ id: "r", slots: 1 });
      await server.drover.submit({ id: "one", agentId: "ann", action: "hold" });
      const { assignments } = await server.drover.remote.sync("r", { n: 1 });
      token = assignments[0]?.token ?? "";
      assert.equal(statSync(join(data, "attempt-key")).mode & 0o777, 0o600);
    }
    await using server = await openServer({ open: { data } });
    assert.equal((await server.call("GET", "/tasks/one", { headers: bearer(token) })).status, 200);
    assert.equal((await server.call("GET", "/tasks", { headers: bearer(token) })).status, 403);
  } finally {
    rmSync(data, { recursive: true });
  }
});

test("a pull worker's handler submits by its context, a command by the variables it has", async () => {
  await using server = await openServer({ settings: SETTINGS });
  const data = mkdtempSync(join(tmpdir(), "drover-"));
  const script =
    'curl -s -H "authorization: Bearer $DROVER_TOKEN" -H "content-type: application/json" ' +
    `-d '{"id":"grown","action":"leaf"}' "$DROVER_URL/tasks"; echo "it is $DROVER_TOKEN"`;
  const exec = createExecHandler({ command: script, shell: true, data, workerId: "p", url: server.url, cwd: data });
  const worker = await startWorker({ url: server.url, token: ADMIN, id: "p", slots: 4 }, async (task, context) => {
    if (task.action === "sdk") return (await context.submit({ id: "by-sdk", action: "leaf" })).taskId;
    if (task.action !== "exec") return "leaf";
    return exec.run(task, context);
  });
  try {
    await server.drover.submit({ id: "sdk", agentId: "ann", action: "sdk", project: "site" });
    await server.drover.submit({ id: "cmd", agentId: "ann", action: "exec", project: "site" });
    await within("sdk ends", server.drover.wait("sdk"));
    await within("cmd ends", server.drover.wait("cmd"));
    assert.equal((await server.drover.task("by-sdk")).parent, "sdk");
    assert.equal((await server.drover.task("grown")).parent, "cmd");
    const tail = await exec.tail("cmd", undefined, { lines: 50 });
    const shown = tail !== null && "text" in tail ? tail.text : "";
    assert.match(shown, /it is /);
    assert.doesNotMatch(shown, /drover-attempt\.[\w-]+\./, "the token is not in the log");
  } finally {
    await worker.close();
    await exec.close();
    rmSync(data, { recursive: true, force: true });
  }
});
