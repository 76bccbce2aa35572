/**
 * `drover serve` and the verbs that talk to it, in this process, over real HTTP and a real log.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { emptyDirectory, type Served, served } from "../../../test/kits/cli/served.ts";
import { lines, testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import type { SettingsView } from "../../protocol/index.ts";
import { versionText } from "../../std/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import { logTargetOf, needsRestart } from "./messages.ts";

const LIMIT = { timeout: 300_000 };

describe("serve", LIMIT, () => {
  test("says where it is, what it keeps and what to try; and that first curl runs", async () => {
    await using server = await served();
    const { url, terminal } = server;
    assert.equal(
      terminal.shown().replaceAll(/\d+ at a time/g, "N at a time"),
      lines(
        `Drover ${versionText()} is ready at ${url}`,
        "  data    .drover",
        "  config  the defaults (no drover.yml here)",
        "  worker  runs what tasks with action exec bring, as you, N at a time (--no-worker: without it)",
        `  page    ${url}/ui/`,
        "",
        "Try it, in another terminal:",
        `  curl ${url}/tasks -H 'content-type: application/json' \\`,
        `    -d '{"agentId": "me", "action": "exec", "params": {"command": "echo hello"}}'`,
        `  npx drover tasks --url ${url}`,
        "",
        "Ctrl-C stops it.",
      ),
    );
    const [, body = ""] = /-d '(.*)'/.exec(terminal.shown()) ?? [];
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/tasks`, { method: "POST", headers, body });
    assert.equal(answer.status, 202);
    const { taskId } = (await answer.json()) as { taskId: string };
    const watched = await server.drover(["task", taskId, "--watch"]);
    assert.equal(watched.code, 0, watched.out);
    const { out } = await server.drover(["task", taskId, "--logs"]);
    assert.match(out, /hello/);
  });

  test("serves though its directory cannot say where it is, and says so", async () => {
    const directory = emptyDirectory();
    mkdirSync(join(directory, ".drover", "server.json"), { recursive: true, mode: 0o700 });
    await using server = await served(["--no-worker"], { directory });
    assert.match(server.terminal.complained(), /does not say where this server is \(.*\): commands need --url http/);
    assert.deepEqual(
      readdirSync(join(directory, ".drover")).filter((name) => name.startsWith("server.json")),
      ["server.json"],
    );
    assert.equal(await server.stop(), 0);
  });

  test("keeps what it was told over a restart", async () => {
    const directory = emptyDirectory();
    await using first = await served(["--no-worker"], { directory });
    const submitted = await first.drover(["submit", "later", "--id", "kept"]);
    assert.deepEqual([submitted.code, submitted.out], [0, "kept\n"]);
    assert.match(submitted.err, /^warning: /);
    assert.equal(await first.stop(), 0);
    await using second = await served(["--no-worker"], { directory });
    const { out } = await second.drover(["task", "kept", "--json"]);
    assert.equal(JSON.parse(out).state, "queued");
    assert.equal(await second.stop(), 0);
  });

  test("a worker that cannot be made leaves no server behind", async () => {
    const terminal = testTerminal({ cwd: emptyDirectory(), env: { PATH: process.env.PATH } });
    const args = ["serve", "--port", "0", "--log", "memory:", "--log-level", "info", "--exec", "a | b"];
    assert.equal(await runCommandLine(args, terminal, VERBS), 2);
    assert.match(terminal.complained(), /error: the command holds \|, which needs a shell/);
    const [url = ""] = /http:[^"]+/.exec(terminal.complained()) ?? [];
    await assert.rejects(fetch(`${url}/healthz`), { message: "fetch failed" });
  });

  test("a worker of somebody else's that was called local and is gone keeps nobody from starting", async () => {
    const directory = emptyDirectory();
    const first = await served(["--no-worker", "--set", "workers.lease=100ms"], { directory });
    const headers = { "content-type": "application/json" };
    const joined = await fetch(`${first.url}/workers`, { method: "POST", headers, body: '{"id": "local"}' });
    assert.equal(joined.status, 201);
    assert.equal(await first.stop(), 0);
    for (const args of [[], ["--exec", "true"]]) {
      await using again = await served([...args, "--set", "workers.lease=100ms"], { directory });
      const ran = await again.drover(["submit", "--command", "true", "--wait"]);
      assert.equal(ran.code, 0, ran.err);
    }
    rmSync(directory, { recursive: true });
  });

  test("--json is one object for a program", async () => {
    const terminal = testTerminal({ cwd: emptyDirectory(), env: { PATH: process.env.PATH } });
    const args = ["serve", "--port", "0", "--log", "memory:", "--no-worker", "--log-level", "silent", "--json"];
    const ended = runCommandLine(args, terminal, VERBS);
    await terminal.saw("}\n");
    const { url, data, worker, pid } = JSON.parse(terminal.shown());
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.deepEqual([data, worker, pid], [null, null, process.pid]);
    terminal.signal("SIGINT");
    assert.equal(await ended, 0);
    assert.equal(terminal.complained(), "");
  });

  test("a task that runs may end when the server stops", async () => {
    const directory = emptyDirectory();
    await using server = await served(["--set", "server.shutdownGrace=30s"], { directory });
    const { drover } = server;
    const go = join(directory, "go");
    const command = `while [ ! -e ${go} ]; do sleep 0.05; done; echo '{"ok":1}'`;
    await drover(["submit", "--command", command, "--id", "t"]);
    await untilRunning(server, "t");
    server.terminal.signal("SIGTERM");
    await server.terminal.saw("Stopping: nothing new begins, and what runs may end first (again: at once)");
    const refused = await drover(["submit", "x"]);
    assert.equal(refused.code, 3, refused.err);
    writeFileSync(go, "");
    assert.equal(await server.ended, 0);
    await using next = await served(["--no-worker"], { directory });
    assert.deepEqual(JSON.parse((await next.drover(["task", "t", "--json"])).out).result, { ok: 1 });
    assert.equal(await next.stop(), 0);
  });

  test("a second signal does not wait", async () => {
    await using server = await served();
    await server.drover(["submit", "--command", "exec sleep 600", "--id", "t"]);
    await untilRunning(server, "t");
    server.terminal.signal("SIGINT");
    server.terminal.signal("SIGINT");
    assert.equal(await server.ended, 130);
    // The process would be gone now; in a test somebody has to end what still runs.
    await server.drover(["cancel", "t"]);
  });
});

async function untilRunning(server: Served, id: string): Promise<void> {
  const watching = server.terminalFor();
  const watched = server.drover(["task", id, "--watch"], { terminal: watching });
  await watching.saw("running");
  watching.signal("SIGINT");
  await watched;
}

describe("serve is refused", LIMIT, () => {
  async function refused(args: readonly string[], cwd: string): Promise<{ code: number; err: string }> {
    const terminal = testTerminal({ cwd, home: cwd, env: { PATH: process.env.PATH } });
    const code = await runCommandLine(["serve", "--log-level", "silent", ...args], terminal, VERBS);
    assert.equal(terminal.shown(), "");
    return { code, err: terminal.complained() };
  }

  test("where a Drover listens already, and where another program does", async () => {
    await using server = await served(["--log", "memory:", "--no-worker"]);
    const port = new URL(server.url).port;
    const taken = await refused(["--port", port, "--log", "memory:"], server.directory);
    assert.equal(taken.code, 6);
    assert.equal(
      taken.err,
      lines(
        `error: port ${port} of 127.0.0.1 is taken: a Drover server (version ${versionText()}) runs there already`,
        "hint:  use that one (npx drover tasks), or start a second one apart from it: --port 0 --data OTHER",
      ),
    );
  });

  test("over a data directory that another server uses", async () => {
    await using server = await served(["--no-worker"]);
    const { code, err } = await refused(["--port", "0"], server.directory);
    assert.equal(code, 6);
    assert.match(
      err,
      /^error: the data directory \S+ is in use by process \d+\. Stop it first, or choose another directory\.\n/,
    );
    assert.match(err, /\nhint: {2}another directory: --data DIR; that server: npx drover tasks, or --url\n$/);
  });

  test("over a directory that cannot be made, a log nobody can open, a bad config, flags that contradict", async () => {
    const cwd = emptyDirectory();
    writeFileSync(join(cwd, "file"), "");
    const blocked = await refused(["--port", "0", "--data", "file/inside"], cwd);
    assert.equal(blocked.code, 6, blocked.err);
    const foreign = await refused(["--log", "mysql://x"], cwd);
    assert.deepEqual(
      [foreign.code, foreign.err.split("\n")[0]],
      [2, 'error: log.url is "mysql://x", which this version cannot open'],
    );
    writeFileSync(join(cwd, "drover.yml"), "server: { prot: 1 }\n");
    const bad = await refused([], cwd);
    assert.equal(bad.code, 2);
    assert.match(bad.err, /^error: drover\.yml:1:11: server\.prot is not a known field \(did you mean port\?\)\n/);
    rmSync(join(cwd, "drover.yml"));
    const shell = await refused(["--shell"], cwd);
    assert.equal(shell.err, "error: --shell is for --exec\nhint:  add --exec 'LINE'\n");
  });

  test("where others could reach it and nobody has a token", async () => {
    const cwd = emptyDirectory();
    const { code, err } = await refused(["--host", "0.0.0.0", "--port", "0", "--log", "memory:"], cwd);
    assert.equal(code, 2);
    assert.match(err, /^error: server\.host is 0\.0\.0\.0, which others can reach, and server\.tokens is empty/);
  });
});

describe("the config of a server", LIMIT, () => {
  test("is read again on SIGHUP, when the file changes, and by HTTP; a bad file changes nothing", async () => {
    const directory = emptyDirectory();
    const file = join(directory, "drover.yml");
    writeFileSync(file, "scheduler: { maxInFlight: 7 }\n");
    await using server = await served(["--no-worker", "--log", "memory:"], { directory });
    const { terminal, url } = server;
    const limit = async (): Promise<number> => {
      const answer = await fetch(`${url}/scheduler/config`);
      return ((await answer.json()) as { maxInFlight: number }).maxInFlight;
    };
    assert.match(terminal.shown(), / {2}config {2}drover\.yml\n/);
    assert.equal(await limit(), 7);
    writeFileSync(file, "scheduler: { maxInFlight: 0 }\n");
    terminal.signal("SIGHUP");
    await terminal.saw("error: the new config is not taken, the old one stays in force\ndrover.yml:1:14: ");
    assert.equal(await limit(), 7);
    writeFileSync(file, "scheduler: { maxInFlight: 8 }\nserver: { port: 9 }\n");
    terminal.signal("SIGHUP");
    await terminal.saw("the config has changed and is in force");
    assert.equal(await limit(), 8);
    writeFileSync(file, "scheduler: { maxInFlight: 9 }\n");
    const reloaded = await fetch(`${url}/scheduler/reload`, { method: "POST" });
    assert.equal(((await reloaded.json()) as { maxInFlight: number }).maxInFlight, 9);
    writeFileSync(file, "scheduler: 5\n");
    const refused = await fetch(`${url}/scheduler/reload`, { method: "POST" });
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as { error: string }).error, /drover\.yml:1:1: scheduler is 5/);
    assert.equal(await server.stop(), 0);
  });

  test("GET /config tells every knob and who set it: file and line, variable, flag, patch; and no secret", async () => {
    const directory = emptyDirectory();
    const file = join(directory, "drover.yml");
    const token = "0123456789abcdef";
    const tokens = `server: { tokens: [{ token: ${token}, role: admin }, { token: a${token}, role: agent }] }`;
    writeFileSync(file, lines("# ours", "scheduler:", "  maxInFlight: 7", "  resultTtl: 1h", tokens));
    const env = { DROVER_TOKEN: token, DROVER_SCHEDULER__MAX_QUEUE: "77" };
    const args = ["--no-worker", "--log", "memory:", "--set", "webhooks.timeout=3s"];
    await using server = await served(args, { directory, env });
    const ask = async (path: string, more: RequestInit = {}, by = token): Promise<Response> =>
      fetch(`${server.url}${path}`, {
        ...more,
        headers: { authorization: `Bearer ${by}`, "content-type": "application/json" },
      });
    const told = async (path: string): Promise<readonly unknown[]> => {
      const { settings } = (await (await ask("/config")).json()) as SettingsView;
      const found = settings.find((setting) => setting.path === path);
      return [found?.value, found?.origin, found?.where, found?.default];
    };
    assert.deepEqual(await told("scheduler.maxInFlight"), [7, "file", "drover.yml:3", 50]);
    assert.deepEqual(await told("scheduler.maxQueue"), [77, "variable", "DROVER_SCHEDULER__MAX_QUEUE", 100_000]);
    assert.deepEqual(await told("webhooks.timeout"), ["3s", "flag", "--set webhooks.timeout", "10s"]);
    assert.deepEqual(await told("server.port"), [0, "flag", "--port", 4747]);
    assert.deepEqual(await told("scheduler.perType.spec"), [5, "default", undefined, 5]);
    assert.ok(!(await (await ask("/config")).text()).includes(token), "no token is shown");
    const patch = { method: "PATCH", body: JSON.stringify({ resultTtl: 7_200_000 }) };
    assert.equal((await ask("/scheduler/config", patch)).status, 200);
    assert.deepEqual((await told("scheduler.resultTtl")).slice(0, 3), ["2h", "patch", "PATCH /scheduler/config"]);
    // What a new file says of some does not hold before the next start.
    writeFileSync(file, lines("scheduler: { maxInFlight: 8 }", tokens.replace("{ ", "{ telemetry: true, ")));
    assert.equal((await ask("/scheduler/reload", { method: "POST" })).status, 200);
    assert.deepEqual(await told("scheduler.maxInFlight"), [8, "file", "drover.yml:1", 50]);
    assert.deepEqual(await told("server.telemetry"), [false, "default", undefined, false]);
    assert.equal((await ask("/config", {}, `a${token}`)).status, 403);
  });

  test("a config that the server refuses does not reach the engine either", async () => {
    const directory = emptyDirectory();
    await using server = await served(["--no-worker", "--log", "memory:"], { directory });
    const { terminal, url } = server;
    const tokens = "server: { tokens: [{ tokenEnv: DROVER_TEST_NO_SUCH_TOKEN, role: admin }] }";
    writeFileSync(join(directory, "drover.yml"), lines("scheduler: { maxInFlight: 3 }", tokens));
    terminal.signal("SIGHUP");
    await terminal.saw("the old one stays in force\nserver.tokens[0].tokenEnv names DROVER_TEST_NO_SUCH_TOKEN");
    const tied = "server: { tokens: [{ role: worker, tokenEnv: A, project: web }] }";
    writeFileSync(join(directory, "drover.yml"), lines("scheduler: { maxInFlight: 3 }", tied));
    terminal.signal("SIGHUP");
    await terminal.saw('the old one stays in force\ndrover.yml:2:49: server.tokens[0].project is "web"');
    const config = (await (await fetch(`${url}/scheduler/config`)).json()) as { maxInFlight: number };
    assert.equal(config.maxInFlight, 50);
  });

  test("with tokens it may listen to others: no local worker then, and no project by itself", async () => {
    const directory = emptyDirectory();
    const token = "0123456789abcdef";
    writeFileSync(join(directory, "drover.yml"), `server: { tokens: [{ token: ${token}, role: admin }] }\n`);
    const env = { DROVER_TOKEN: token };
    await using server = await served(["--host", "0.0.0.0", "--log", "memory:"], { directory, env });
    assert.match(
      server.terminal.shown(),
      / {2}worker {2}none, since others can reach this server: start one with npx drover worker /,
    );
    assert.match(server.terminal.shown(), /-H "authorization: Bearer \$DROVER_TOKEN"/);
    const unknown = await server.drover(["submit", "x", "--project", "web"]);
    assert.deepEqual([unknown.code, unknown.err.split(";")[0]], [4, "error: no project is called web"]);
    const nobody = testTerminal({ env: { DROVER_URL: server.url } });
    assert.equal(await runCommandLine(["tasks"], nobody, VERBS), 4);
    assert.match(nobody.complained(), /\nhint: {2}set DROVER_TOKEN to a token of this server\n$/);
    assert.equal(await server.stop(), 0);
  });

  test("what cannot change while it runs is named", () => {
    const settings = (port: number): Parameters<typeof needsRestart>[0] =>
      ({
        server: { host: "h", port },
        log: { url: "u" },
        cluster: {},
        config: { workers: { killGrace: port } },
      }) as never;
    assert.deepEqual(needsRestart(settings(1), settings(1)), []);
    assert.deepEqual(needsRestart(settings(1), settings(2)), ["server.port", "workers.killGrace of the local worker"]);
  });
});

describe("small words", () => {
  test("a log's place", () => {
    assert.deepEqual(logTargetOf("memory:", "/x"), { kind: "memory" });
    assert.deepEqual(logTargetOf("sqlite:.drover/drover.db", "/x"), { kind: "sqlite", directory: "/x/.drover" });
    assert.deepEqual(logTargetOf("sqlite:data", "/x"), { kind: "sqlite", directory: "/x/data" });
    assert.deepEqual(logTargetOf("sqlite:///abs/data", "/x"), { kind: "sqlite", directory: "/abs/data" });
  });
});
