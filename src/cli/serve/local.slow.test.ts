/**
 * Who the worker that serve brings along works for, and what it takes.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { emptyDirectory, type Served, served } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { createRepo } from "../../../test/kits/faults/repository.ts";
import { until } from "../../../test/kits/waits.ts";
import { createClient } from "../../client/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const LIMIT = { timeout: 120_000 };
const ADMIN = "0123456789abcdef";
const AGENT = "fedcba9876543210";
const OF_EVE = `{ token: ${AGENT}, role: agent, agentId: eve }`;
const TOKENS = `server: { tokens: [{ token: ${ADMIN}, role: admin }, ${OF_EVE}] }\n`;

type Condition = { readonly code: string; readonly ok: boolean; readonly detail: string };

/** The conditions of `why` that are not met, by their codes. */
async function unmet(server: Served, id: string): Promise<readonly string[]> {
  const { out } = await server.drover(["why", id, "--json"]);
  const { conditions } = JSON.parse(out) as { conditions: readonly Condition[] };
  return conditions.filter(({ ok }) => !ok).map(({ code }) => code);
}

async function workersOf(server: Served): Promise<readonly { readonly id: string; readonly status: string }[]> {
  return JSON.parse((await server.drover(["workers", "--json"])).out).workers;
}

async function stateOf(server: Served, id: string): Promise<readonly [string, number]> {
  const { state, attempt = 0 } = JSON.parse((await server.drover(["task", id, "--json"])).out);
  return [state, attempt];
}

describe("where others may submit there is no local worker", LIMIT, () => {
  const rows: readonly [yaml: string, args: readonly string[], why: RegExp][] = [
    [
      TOKENS,
      [],
      /worker {2}none, since server\.tokens lets others in: start one with .* worker --commands .*, or --worker\n/,
    ],
    ["server: { allowedHosts: [drover.example] }\n", [], /worker {2}none, since server\.allowedHosts lets others in/],
    ["server: { allowedOrigins: ['https://a.example'] }\n", [], /none, since server\.allowedOrigins lets others in/],
    [
      TOKENS,
      ["--host", "0.0.0.0", "--set", "projects.autoCreate=true"],
      /worker {2}none, since others can reach this server: /,
    ],
  ];
  for (const [yaml, args, why] of rows) {
    test(`${yaml.trim()} ${args.join(" ")}: a command that is submitted waits`, async () => {
      const directory = emptyDirectory();
      writeFileSync(join(directory, "drover.yml"), yaml);
      const env = yaml === TOKENS ? { DROVER_TOKEN: ADMIN } : {};
      await using server = await served(["--log", "memory:", ...args], { directory, env });
      assert.match(server.terminal.shown(), why);
      await server.drover(["submit", "--command", "touch pwned", "--id", "t"]);
      assert.deepEqual(await workersOf(server), []);
      assert.deepEqual(await stateOf(server, "t"), ["queued", 0]);
      assert.ok((await unmet(server, "t")).includes("no-workers"));
    });
  }

  for (const args of [["--worker"], ["--exec", "sh -c 'echo {}'"]]) {
    test(`unless it is asked for by ${args[0]}`, async () => {
      const directory = emptyDirectory();
      writeFileSync(join(directory, "drover.yml"), TOKENS);
      await using server = await served(["--log", "memory:", ...args], { directory, env: { DROVER_TOKEN: ADMIN } });
      assert.match(server.terminal.shown(), / {2}worker {2}(runs|hands) /);
      const ran = await server.drover(["submit", "--command", "echo '{}'", "--wait"]);
      assert.equal(ran.code, 0, ran.err);
    });
  }

  test("and one that is there by itself goes when a reload lets others in", async () => {
    const directory = emptyDirectory();
    await using server = await served(["--log", "memory:"], { directory, env: { DROVER_TOKEN: ADMIN } });
    assert.equal((await workersOf(server)).length, 1);
    writeFileSync(join(directory, "drover.yml"), TOKENS);
    await server.terminal.saw("server.tokens lets others in: the local worker takes nothing more");
    await server.terminal.saw("the config has changed and is in force");
    const env = { DROVER_URL: server.url, DROVER_TOKEN: AGENT, DROVER_AGENT: "eve" };
    const eve = testTerminal({ env });
    assert.equal(await runCommandLine(["submit", "--command", "touch pwned", "--id", "t"], eve, VERBS), 0);
    assert.deepEqual(await stateOf(server, "t"), ["queued", 0]);
    assert.deepEqual(
      (await workersOf(server)).filter(({ status }) => status !== "draining"),
      [],
    );
  });
});

describe("the local worker", LIMIT, () => {
  test("takes commands only: other tasks stay queued, never-fits", async () => {
    await using server = await served(["--log", "memory:"]);
    await server.drover(["submit", "build", "--id", "t", "--params", '{"command": "true"}']);
    await server.drover(["submit", "write the page", "--id", "u"]);
    const ran = await server.drover(["submit", "--command", "true", "--wait"]);
    assert.equal(ran.code, 0, ran.err);
    for (const id of ["t", "u"]) {
      assert.deepEqual(await stateOf(server, id), ["queued", 0]);
      assert.ok((await unmet(server, id)).includes("never-fits"));
    }
    const { out } = await server.drover(["why", "t"]);
    assert.match(out, /it needs a worker that takes action build[^,]/);
  });

  test("leaves an exec without a command to others, however it was submitted", async () => {
    await using server = await served(["--log", "memory:"]);
    const task = { agentId: "ann", action: "exec" };
    const params = [
      undefined,
      {},
      { command: "" },
      { command: " " },
      { command: 5 },
      { command: [] },
      { command: [1] },
    ];
    const items = params.map((one, at) => ({ ...task, id: `t${at}`, ...(one === undefined ? {} : { params: one }) }));
    const post = (path: string, body: unknown): Promise<Response> =>
      fetch(server.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    for (const item of items) assert.ok((await post("/tasks", item)).ok);
    const batch = items.map(({ agentId: _, id, ...rest }) => ({ ...rest, id: `b${id}` }));
    assert.ok((await post("/tasks/batch", { agentId: "ann", tasks: batch })).ok);
    for (const command of ["true", ["true", "word"]]) {
      await post("/tasks", { ...task, id: `c-${typeof command}`, params: { command } });
      assert.equal((await server.drover(["task", `c-${typeof command}`, "--watch"])).code, 0);
    }
    for (const { id } of [...items, ...batch]) {
      assert.deepEqual(await stateOf(server, id), ["queued", 0], id);
      assert.ok((await unmet(server, id)).includes("never-fits"), id);
    }
    const { out } = await server.drover(["why", "t0"]);
    assert.match(out, /it needs a worker that takes action exec[^(,]/);
    const taken = server.terminalFor();
    const ended = runCommandLine(["worker", "--exec", "true", "--action", "exec", "--id", "other"], taken, VERBS);
    assert.equal((await server.drover(["task", "t0", "--watch"])).code, 0);
    taken.signal("SIGTERM");
    assert.equal(await ended, 0);
  });

  test("runs the first example of a task as /docs shows it", async () => {
    await using server = await served(["--log", "memory:"]);
    const { components } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      components: { schemas: { TaskBody: { examples: object[] } } };
    };
    const [example] = components.schemas.TaskBody.examples;
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ ...example, id: "shown" });
    assert.equal((await fetch(`${server.url}/tasks`, { method: "POST", headers, body })).status, 202);
    const { state } = (await (await fetch(`${server.url}/tasks/shown/wait`)).json()) as { state: string };
    assert.equal(state, "done");
  });

  test("leaves the queue alone when the only real worker is restarted", async () => {
    await using server = await served(["--log", "memory:"]);
    const headers = { "content-type": "application/json" };
    const post = async (path: string, body: unknown): Promise<unknown> =>
      (await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) })).json();
    for (let round = 0; round < 2; round++) {
      await post("/workers", { id: "real", slots: 1, capabilities: [] });
      await server.drover(["submit", "build", "--id", `t${round}`]);
      await fetch(`${server.url}/workers/real`, { method: "DELETE" });
      // Whatever the local worker is given, it is given before this command, and it takes nothing but this.
      const ran = await server.drover(["submit", "--command", "true", "--wait"]);
      assert.equal(ran.code, 0, ran.err);
      const [state] = await stateOf(server, `t${round}`);
      assert.equal(state, "queued");
    }
  });
});

test("a worker takes the actions, types and projects it names", LIMIT, async () => {
  await using server = await served(["--no-worker", "--log", "memory:"]);
  const terminal = server.terminalFor();
  const args = ["--action", "build-*,test", "--type", "code", "--project", "web", "--id", "picky"];
  const ended = runCommandLine(["worker", "--exec", "true", ...args], terminal, VERBS);
  await terminal.saw("picky has joined");
  const { drover } = server;
  const submit = (...more: string[]): ReturnType<typeof drover> => drover(["submit", ...more]);
  const refused = await submit("deploy", "--type", "code", "--project", "web", "--id", "a");
  assert.match(refused.err, /no known worker takes or offers action deploy/);
  await submit("test", "--project", "web", "--id", "b");
  await submit("test", "--type", "code", "--id", "c");
  for (const action of ["build-x", "test"]) {
    const ran = await submit(action, "--type", "code", "--project", "web", "--wait");
    assert.equal(ran.code, 0, ran.err);
  }
  for (const id of ["a", "b", "c"]) assert.deepEqual(await stateOf(server, id), ["queued", 0]);
  const [shown] = (await workersOf(server)) as unknown as readonly Record<string, unknown>[];
  assert.deepEqual([shown?.actions, shown?.types, shown?.projects], [["build-*", "test"], ["code"], ["web"]]);
  terminal.signal("SIGTERM");
  assert.equal(await ended, 0);
});

test(
  "the local worker has a line for each task on the terminal of the server, and none with --quiet",
  LIMIT,
  async () => {
    for (const [flags, lines] of [
      [[], /^start {5}t {2}exec\ndone {6}t {2}\S+\n$/],
      [["--quiet"], /^$/],
    ] as const) {
      await using server = await served(["--log", "memory:", ...flags]);
      assert.equal((await server.drover(["submit", "--command", "true", "--id", "t", "--wait"])).code, 0);
      assert.match(server.terminal.complained(), lines);
    }
  },
);

test("outside a repository a task that wants a worktree hears so, and nobody before there is one", LIMIT, async () => {
  await using server = await served(["--log", "memory:"]);
  const client = createClient({ url: server.url });
  const submit = (id: string, params: object): Promise<unknown> =>
    client.submit({ id, agentId: "ann", action: "exec", params: { command: "true", ...params } });
  const notes = async () => (await client.workers()).workers.map(({ note }) => note);
  assert.deepEqual(await notes(), [undefined], "no task has asked for a worktree");
  await submit("tree", { worktree: true });
  await submit("plain", {});
  assert.equal((await client.wait("plain")).state, "done");
  assert.deepEqual(await stateOf(server, "tree"), ["queued", 0]);
  assert.deepEqual(await unmet(server, "tree"), ["worker-room"]);
  await until("the worker says why", async () => (await notes())[0] !== undefined);
  const [note = ""] = await notes();
  assert.match(note, /^\/\S+ is not inside a git repository, so there can be no worktree \(git init makes one\)$/);
  const { out } = await server.drover(["why", "tree"]);
  assert.ok(out.includes(`worker local: ${note}`), out);
  assert.doesNotMatch(server.terminal.complained(), /worktree/);
});

test("at the limit of worktrees a task of the local worker waits, until the limit is raised", LIMIT, async (t) => {
  const { repo } = createRepo(t);
  const config = join(repo, "drover.yml");
  writeFileSync(config, "workers: { maxWorktrees: 1 }\n");
  await using server = await served(["--log", "memory:"], { directory: repo });
  const client = createClient({ url: server.url });
  const submit = (id: string): Promise<unknown> =>
    client.submit({ id, agentId: "ann", action: "exec", params: { command: "echo > made", worktree: true } });
  await submit("one");
  assert.equal((await client.wait("one")).state, "done");
  await submit("two");
  await server.terminal.saw("no task with a worktree is taken: ");
  assert.match(server.terminal.complained(), /1 worktree exists, and at most 1 may: \S+; merge their work/);
  assert.deepEqual(await stateOf(server, "two"), ["queued", 0]);
  writeFileSync(config, "workers: { maxWorktrees: 2 }\n");
  assert.equal((await client.wait("two")).state, "done");
});

test(
  "a task of the local worker has a worktree if it asks for one, and goes on from what another left",
  LIMIT,
  async (t) => {
    const { repo } = createRepo(t);
    writeFileSync(join(repo, ".git", "info", "exclude"), ".drover\n");
    await using server = await served([], { directory: repo });
    const submit = async (id: string, command: string, worktree: unknown, ...more: string[]): Promise<string> => {
      const params = JSON.stringify({ command, worktree });
      const { out, err } = await server.drover([
        "submit",
        "exec",
        "--id",
        id,
        "--params",
        params,
        ...more,
        "--wait",
        "--json",
      ]);
      assert.equal(err, "", err);
      return out;
    };
    await submit("impl", "echo new > n", true);
    assert.match((await server.drover(["task", "impl"])).out, /branch +drover\/impl\n/);
    const review = JSON.parse(await submit("review", "cat n", { from: "impl" }, "--needs", "impl"));
    assert.equal(review.result.output, "new");
    assert.equal((await server.drover(["worktrees", "merge", "impl", "--into", "main"])).code, 0);
    assert.equal(readFileSync(join(repo, "n"), "utf8"), "new\n");
  },
);
