/**
 * The verbs against a real server: that what they ask is what it takes, and what it answers is what they show.
 *
 * One server for all; each story has tasks and projects of its own. Their exact words are in verbs.test.ts and
 * verbs/fleet.test.ts.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { emptyDirectory, type Ran, type Served, served } from "../../test/kits/cli/served.ts";
import type { TestTerminal } from "../../test/kits/cli/test-terminal.ts";
import { createClient } from "../client/index.ts";
import { runCommandLine } from "./command-line.ts";
import { VERBS } from "./verbs.ts";

const LIMIT = { timeout: 300_000 };
let server: Served;
before(async () => {
  server = await served();
});
after(async () => {
  await server[Symbol.asyncDispose]();
});
const drover = (...args: string[]): Promise<Ran> => server.drover(args);
const json = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await drover(...args, "--json")).out) as Record<string, unknown>;

describe("tasks", LIMIT, () => {
  test("a command is run, its result printed, its output kept", async () => {
    const ran = await drover("submit", "--command", `echo working; echo '{"answer": 42}'`, "--id", "answer", "--wait");
    assert.deepEqual([ran.code, ran.out], [0, '{\n  "answer": 42\n}\n']);
    assert.match(ran.err, /answer done: ran \S+ on local\n$/);
    const { out } = await drover("task", "answer", "--logs");
    assert.match(out, /working/);
    const again = await drover("submit", "--command", `echo working; echo '{"answer": 42}'`, "--id", "answer");
    assert.deepEqual([again.code, again.out], [0, "answer\n"]);
    assert.equal(again.err, "warning: answer was submitted before and is done; to run it again, take a new id\n");
    const other = await drover("submit", "--command", "true", "--id", "answer");
    assert.equal(other.code, 4, other.err);
  });

  test("one that fails says why, with code 1, and can be tried again", async () => {
    const flag = join(server.directory, "mended");
    const ran = await drover("submit", "--command", `test -e ${flag}`, "--id", "mend", "--max-attempts", "1", "--wait");
    assert.equal(ran.code, 1);
    assert.match(ran.err, /mend failed: .*exit code 1/);
    writeFileSync(flag, "");
    assert.deepEqual((await drover("retry", "mend")).out, "mend submitted again\n");
    assert.equal((await drover("task", "mend", "--watch")).code, 0);
    assert.equal((await drover("retry", "mend")).code, 4);
  });

  test("what a command leaves is listed, fetched once and never over a file, and missed by verify", async () => {
    const path = (name: string): string => join(server.directory, name);
    const command = `mkdir -p report; echo '# spec' > spec.md; echo a > report/a.txt; ln -s /etc/passwd report/b.txt`;
    const flags = ["--output", "spec.md", "--output", "report/**"];
    assert.equal((await drover("submit", "--command", command, "--id", "left", ...flags, "--wait")).code, 0);
    const { files } = (await json("files", "left")) as { files: { path: string; hash: string; size: number }[] };
    assert.deepEqual(
      files.map(({ path: one, size }) => `${one} ${size}`),
      ["report/a.txt 2", "spec.md 7"],
    );
    const [a, spec] = files.map(({ hash }) => hash) as [string, string];
    const listed = await drover("files", "left");
    assert.match(listed.out, /^PATH +SIZE +HASH\nreport\/a\.txt +2 B +[0-9a-f]{64}\nspec\.md +7 B +[0-9a-f]{64}\n$/);
    writeFileSync(path("spec.md"), "mine");
    const taken = await drover("files", "left", "--get", "spec.md");
    assert.deepEqual([taken.code, readFileSync(path("spec.md"), "utf8")], [2, "mine"]);
    assert.match(taken.err, /it is there already\nhint: {2}name another with --out FILE/);
    assert.equal((await drover("files", "left", "--get", "spec.md", "--out", "other.md")).code, 0);
    assert.equal(readFileSync(path("other.md"), "utf8"), "# spec\n");
    assert.equal((await drover("files", "left", "--get", "report/a.txt")).code, 0);
    assert.equal(readFileSync(path("a.txt"), "utf8"), "a\n");
    const unknown = await drover("files", "left", "--get", "report/b.txt");
    assert.match(
      unknown.err,
      /^error: left has left no file report\/b\.txt\nhint: {2}it has left report\/a\.txt, spec\.md\n/,
    );
    assert.equal((await drover("files", "left", "--out", "x")).code, 2);
    assert.equal((await drover("files", "nobody")).code, 4);
    const stored = (hash: string): string => path(`.drover/files/${hash.slice(0, 2)}/${hash.slice(2)}`);
    rmSync(stored(a));
    writeFileSync(stored(spec), "# sPec\n");
    const { code, out } = await drover("verify");
    assert.equal(code, 1);
    assert.ok(out.includes(`the file ${a}, which left has left as report/a.txt, is not there`), out);
    assert.ok(out.includes(`the file ${spec} is not what was stored`), out);
    const damaged = await drover("files", "left", "--get", "spec.md", "--out", "third.md");
    assert.deepEqual([damaged.code === 0, existsSync(path("third.md"))], [false, false]);
    assert.match(damaged.err, /is not what was stored; run drover verify/);
    writeFileSync(stored(spec), "# spec\n");
    writeFileSync(stored(a), "a\n");
    assert.equal((await drover("verify")).code, 0);
  });

  test("one without a command is told that nobody takes it", async () => {
    const { code, err } = await drover("submit", "exec", "--id", "bare");
    assert.equal(code, 0);
    assert.equal((await drover("cancel", "bare")).code, 0);
    assert.match(err, /no known worker takes or offers action exec; the task waits for one that does/);
  });

  test("are listed by what they are", async () => {
    await drover("submit", "never", "--project", "listed", "--capability", "gpu", "--id", "l1");
    await drover("submit", "never", "--project", "listed", "--capability", "gpu", "--id", "l2", "--agent", "ben");
    const ids = async (...args: string[]): Promise<string[]> =>
      ((await json("tasks", "--project", "listed", ...args)).tasks as { taskId: string }[]).map(({ taskId }) => taskId);
    assert.deepEqual(await ids(), ["l2", "l1"]);
    assert.deepEqual(await ids("--agent", "ben"), ["l2"]);
    assert.deepEqual(await ids("--state", "running,done"), []);
    assert.deepEqual(await ids("--limit", "1", "--all"), ["l2", "l1"]);
    assert.match(
      (await drover("tasks", "--project", "listed", "--limit", "1")).out,
      /\nThere are more: --cursor \d+, or --all\.\n$/,
    );
    const wrong = await drover("tasks", "--state", "zebra");
    assert.deepEqual([wrong.code, wrong.out], [2, ""]);
    assert.match(wrong.err, /^error: .*zebra.*waiting, queued/);
  });

  test("that cannot run say why; cancelled, they say that", async () => {
    await drover("submit", "train", "--project", "stuck", "--capability", "gpu", "--id", "stuck");
    const { code, out } = await drover("why", "stuck");
    assert.equal(code, 0);
    assert.match(out, /^stuck is queued\. It waits because no worker here could ever run it: it needs gpu/);
    assert.match(out, /\n {2}✘ never-fits {2,}/);
    assert.doesNotMatch(out, /✔/);
    const all = (await drover("why", "stuck", "--all")).out;
    assert.match(all, /\n {2}✘ never-fits {3,}[\s\S]*\n {2}✔ fleet-paused {2,}the fleet is not paused\n/);
    const why = await json("why", "stuck");
    assert.equal(why.state, "queued");
    assert.equal((await drover("cancel", "stuck", "--reason", "no gpu here")).out, "stuck cancelled\n");
    assert.match((await drover("task", "stuck")).out, /^task +stuck\nstate +cancelled\nerror +no gpu here\n/);
    assert.equal((await drover("cancel", "stuck", "nobody")).code, 4);
  });

  test("of one project are cancelled together", async () => {
    for (const id of ["w1", "w2", "w3"])
      await drover("submit", "x", "--project", "many", "--capability", "gpu", "--id", id);
    assert.equal(
      (await drover("cancel", "--where", "project=many", "--where", "state=queued")).out,
      "3 tasks cancelled\n",
    );
    assert.deepEqual(await json("cancel", "--where", "project=many"), { status: "cancelled", count: 0 });
  });

  test("wait for an instant, and why says when it comes", async () => {
    await drover("submit", "--command", "true", "--id", "later", "--not-before", "2h");
    assert.match((await drover("why", "later")).out, /\nEarliest start: \S+Z \((in 2h|in 1h 5\dm)\)\n$/);
  });
});

test("a caller with a scoped token is shown which agent and project to name", LIMIT, async () => {
  const directory = emptyDirectory();
  const token = "0123456789abcdef";
  const scoped = `{ token: ${token}, role: agent, agentId: bot, project: web }`;
  writeFileSync(join(directory, "drover.yml"), `server: { tokens: [${scoped}] }\n`);
  await using own = await served(["--no-worker"], { directory, env: { DROVER_TOKEN: token } });
  assert.equal((await own.drover(["submit", "x"])).code, 0, "it is that agent's");
  const refused = await own.drover(["submit", "x", "--agent", "ann"]);
  assert.equal(refused.code, 4);
  assert.equal(
    refused.err,
    "error: agentId is ann, and this token speaks for bot only\nhint:  add --agent bot, or set DROVER_AGENT to it\n",
  );
  const other = await own.drover(["submit", "x", "--agent", "bot", "--project", "shop"]);
  assert.match(other.err, /^hint: {2}add --project web, or leave --project out$/m);
  assert.equal((await own.drover(["submit", "x", "--agent", "bot"])).code, 0);
});

const TASKS_HINT = "hint:  npx drover tasks lists them; a task of a plan is named PLAN/TASK";

describe("the fleet", LIMIT, () => {
  test("a pause is seen by why, and taken back", async () => {
    assert.equal((await drover("pause", "--project", "listed")).out, "project listed is paused: what runs goes on\n");
    assert.match((await drover("why", "l1")).out, /✘ project-paused/);
    assert.equal((await drover("resume", "--project", "listed")).out, "project listed goes on\n");
    assert.deepEqual(await drover("pause", "--project", "nobody-knows"), {
      ...{ code: 4, out: "" },
      err:
        "error: no project is called nobody-knows; register it, or name it in the config\n" +
        "hint:  npx drover projects lists them; npx drover projects set nobody-knows --weight 1 registers it\n",
    });
  });

  for (const [call, ...said] of [
    ["task nosuch", "error: no task has the id nosuch", TASKS_HINT],
    ["cancel nosuch", "error: no task has the id nosuch", TASKS_HINT],
    ["workers drain nosuch", "error: no worker is called nosuch", "hint:  npx drover workers lists them"],
    ["schedules remove nosuch", "error: no schedule is called nosuch", "hint:  npx drover schedules lists them"],
  ] as const)
    test(`drover ${call}: nobody is called that, and where to look is said`, async () => {
      const { code, err } = await drover(...call.split(" "));
      assert.deepEqual([code, err], [4, `${said.join("\n")}\n`]);
    });

  for (const verb of ["drain", "remove"])
    test(`drover workers ${verb} of the worker that the server brings along: what it is, is said`, async () => {
      const { code, err } = await drover("workers", verb, "local");
      assert.deepEqual(
        [code, err],
        [4, "error: worker local is part of the server, and leaves with it: stop the server\n"],
      );
    });

  test("an address with a path that is not the server's is pointed at", async () => {
    const { code, err } = await drover("tasks", "--url", `${server.url}/foo`);
    assert.deepEqual(
      [code, err.split("\n")[0]],
      [4, "error: nothing is at /foo/tasks; /openapi.json describes what there is"],
    );
    assert.match(err, /\nhint: {2}the path is added to the address in --url or DROVER_URL: .*http:\/\/HOST:PORT/);
  });

  test("a project is set and listed", async () => {
    const { code, out } = await drover(
      "projects",
      "set",
      "paid",
      "--weight",
      "2.5",
      "--budget",
      "5000",
      "--window",
      "7d",
    );
    assert.equal(code, 0);
    assert.match(out, /\npaid +2\.5 .* 0 of 5 000 in 7d\n$/);
    const { projects } = await json("projects");
    assert.ok((projects as { id: string }[]).some(({ id }) => id === "paid"));
    const wrong = await drover("projects", "set", "paid", "--weight", "0");
    assert.equal(wrong.code, 2, wrong.err);
  });

  test("gates and workers are listed", async () => {
    assert.equal((await drover("gates")).code, 0);
    assert.match((await drover("workers")).out, /\nlocal +local +idle +0 of \d+\n/);
  });

  test("a schedule is set, listed and removed", async () => {
    const args = [
      "schedules",
      "set",
      "nightly",
      "--cron",
      "0 2 * * *",
      "--time-zone",
      "Europe/Berlin",
      "--command",
      "true",
    ];
    const set = await drover(...args);
    assert.equal(set.code, 0, set.err);
    assert.match(set.out, /\nnightly +0 2 \* \* \* +Europe\/Berlin +in \d/);
    const { schedules } = await json("schedules");
    assert.equal((schedules as unknown[]).length, 1);
    const wrong = await drover("schedules", "set", "bad", "x", "--cron", "often");
    assert.equal(wrong.code, 2, wrong.err);
    assert.equal((await drover("schedules", "remove", "nightly")).out, "nightly removed\n");
    assert.equal((await drover("schedules")).out, "Nothing is scheduled.\n");
  });
});

describe("the log", LIMIT, () => {
  test("is printed, as lines and as JSON, and followed until Ctrl-C", async () => {
    const { out } = await drover("events", "--limit", "2");
    assert.match(out, /^#1 +\S+ \S+ {2}engine-started .*\n#2 +\S+ \S+ {2}worker-joined .*\n$/);
    const all = (await drover("events", "--json")).out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).seq);
    assert.deepEqual(
      all,
      all.map((_, index) => index + 1),
    );
    const watching: TestTerminal = server.terminalFor();
    const following = server.drover(["events", "--follow", "--after", String(all.length)], { terminal: watching });
    await drover("submit", "--command", "true", "--id", "heard");
    await watching.saw("task-done");
    watching.signal("SIGINT");
    assert.equal((await following).code, 130);
  });

  test("is verified beside the running server, and against an anchor", async () => {
    const { code, out } = await drover("verify");
    assert.equal(code, 0);
    const [, seq = "", hash = ""] = /\n {2}head (\d+):([0-9a-f]{64})\n$/.exec(out) ?? [];
    assert.match(out, /^✔ the log in \S+\.drover is whole: [\d ]+ events, \d+ payloads, 0 snapshots, 2 files\n/);
    assert.match(out, /\n {2}(every event is signed|events \d+ to \d+ are not signed yet; the signed head covers all)/);
    const [, key = ""] = /\n {2}key ([0-9a-f]{64})\n/.exec(out) ?? [];
    assert.equal((await drover("verify", "--key", key)).code, 0);
    const foreign = await drover("verify", "--key", "0".repeat(64));
    assert.deepEqual([foreign.code, /checked with the key/.test(foreign.out)], [1, true]);
    assert.equal((await drover("verify", "--key", "short")).code, 2);
    assert.equal((await drover("verify", "--expect", `${seq}:${hash}`)).code, 0);
    const behind = Object.assign(server.terminalFor(), { now: () => Date.now() - 7_200_000 });
    const ahead = await server.drover(["verify"], { terminal: behind });
    assert.match(ahead.out, /\n {2}log time is (2h|1h 59m|1h 60m) ahead of this machine's clock\n {2}head /);
    assert.doesNotMatch(out, /log time/);
    const other = await drover("verify", "--expect", `1:${hash}`);
    assert.equal(other.code, 1);
    assert.match(other.out, /^✘ the log in \S+ is not what was written/);
    const missing = await drover("verify", "--data", "nowhere");
    assert.deepEqual([missing.code, existsSync(join(server.directory, "nowhere"))], [2, false]);
  });
});

type Working = AsyncDisposable & { readonly terminal: TestTerminal; readonly ended: Promise<number> };

/** A worker on a terminal of its own; one that a failed test leaves behind is stopped, for good. */
async function working(id: string, ...args: string[]): Promise<Working> {
  const terminal = server.terminalFor();
  const ended = runCommandLine(["worker", "--id", id, ...args], terminal, VERBS);
  await Promise.race([terminal.saw(`${id} has joined`), ended]);
  const stop = async (): Promise<void> => {
    for (let times = 0; times < 3; times++) terminal.signal("SIGTERM");
    await ended;
  };
  return { terminal, ended, [Symbol.asyncDispose]: stop };
}

describe("a worker", LIMIT, () => {
  test("joins, and the local one steps aside; drained, it leaves, and the local one is back", async () => {
    const script = join(server.directory, "work.sh");
    writeFileSync(script, `#!/bin/sh\ncat > input.json\necho '{"seen": true}'\n`, { mode: 0o755 });
    await using worker = await working("mac-1", "--exec", script, "--slots", "2", "--capability", "think,git");
    const { terminal, ended } = worker;
    assert.equal(terminal.shown(), `mac-1 has joined ${server.url}: 2 tasks at a time\n`);
    await server.terminal.saw("another worker has joined: the local one steps aside");
    const ran = await drover("submit", "think", "--capability", "think", "--payload", '{"deep": true}', "--wait");
    assert.deepEqual([ran.code, JSON.parse(ran.out)], [0, { seen: true }]);
    const input = JSON.parse(readFileSync(join(server.directory, "input.json"), "utf8"));
    assert.deepEqual([input.action, input.payload], ["think", { deep: true }]);
    assert.match((await drover("workers")).out, /\nmac-1 +\S+ +idle +0 of 2 +git, think\n/);
    terminal.signal("SIGTERM");
    assert.equal(await ended, 0);
    assert.match(
      terminal.complained(),
      /^start {5}\S+ {2}think\ndone {6}\S+ {2}\S+\nstopping: nothing more is taken\n/,
    );
    const done = await drover("submit", "--command", "true", "--wait");
    assert.equal(done.code, 0, done.err);
  });

  test("that takes no commands leaves the local one where it is", async () => {
    const client = createClient({ url: server.url });
    await client.joinWorker({ id: "only-shout", slots: 1, actions: ["shout"] });
    const done = await drover("submit", "--command", "true", "--wait");
    assert.equal(done.code, 0, done.err);
    await client.leaveWorker("only-shout");
  });

  test("a task that runs and waits for a permit says so", async () => {
    const client = createClient({ url: server.url });
    const { session } = await client.joinWorker({ id: "caller", slots: 1, actions: ["call"] });
    await drover("submit", "call", "--id", "calling");
    const { assignments } = await client.sync("caller", { session, n: 1, waitMs: 30_000 });
    const attempt = assignments[0]?.attempt ?? 0;
    await client.sync("caller", { session, n: 2, running: [{ taskId: "calling", attempt }] });
    const { permitId } = await client.askPermit({ gate: "narrow" });
    await client.settlePermit(permitId, { rateLimited: { retryAfterMs: 600_000 } });
    assert.doesNotMatch((await drover("task", "calling")).out, /^waits/m);
    await client.askPermit({ gate: "narrow", taskId: "calling", attempt });
    assert.match(
      (await drover("task", "calling")).out,
      /^state +running\nwaits +a call of it waits for a permit of gate narrow, .* until .*; it is next\n/m,
    );
    await client.leaveWorker("caller");
    await drover("cancel", "calling");
  });

  test("stops what runs at the second signal, and the task goes back to the queue", async () => {
    await using worker = await working("mac-2", "--exec", "sleep 600", "--capability", "slow", "--kill-grace", "2s");
    const { terminal, ended } = worker;
    await drover("submit", "x", "--capability", "slow", "--id", "slow");
    const watching = server.terminalFor();
    const watched = server.drover(["task", "slow", "--watch"], { terminal: watching });
    await watching.saw("slow running");
    terminal.signal("SIGINT");
    await terminal.saw("stopping: nothing more is taken, and 1 still running here may end (again: stop them)");
    terminal.signal("SIGINT");
    assert.equal(await ended, 130);
    await watching.saw("slow queued");
    await drover("cancel", "slow");
    assert.equal((await watched).code, 1);
  });

  test("a terminal that is closed stops what runs, and the task goes back to the queue", async () => {
    await using worker = await working("mac-3", "--exec", "sleep 600", "--capability", "far", "--kill-grace", "2s");
    await drover("submit", "x", "--capability", "far", "--id", "far");
    const watching = server.terminalFor();
    const watched = server.drover(["task", "far", "--watch"], { terminal: watching });
    await watching.saw("far running");
    worker.terminal.signal("SIGHUP");
    assert.equal(await worker.ended, 143);
    assert.doesNotMatch(worker.terminal.complained(), /stopping/);
    await watching.saw("far queued");
    await drover("cancel", "far");
    assert.equal((await watched).code, 1);
  });

  const wrong: [args: string[], error: string][] = [
    [[], "error: say what to run: --exec COMMAND or --preset AGENT, and not both"],
    [["--exec", "a", "--preset", "claude"], "error: say what to run: --exec COMMAND or --preset AGENT, and not both"],
    [["--exec", "a", "--base", "main"], "error: --base is for --worktree"],
    [["--exec", "a | b"], "error: the command holds |, which needs a shell; "],
    [["--exec", "a", "--env", "1x"], 'error: env: "1x" is neither NAME nor NAME=value'],
  ];
  for (const [args, error] of wrong)
    test(`worker ${args.join(" ")} is refused`, async () => {
      const ran = await drover("worker", ...args);
      assert.equal(ran.code, 2);
      assert.ok(ran.err.startsWith(error), ran.err);
    });
});
