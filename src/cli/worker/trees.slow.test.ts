/**
 * A worker that may make no more worktrees takes no task: they stay queued, `why` says what is in the way, and when a
 * tree goes the work goes on.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { emptyDirectory, served } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { until } from "../../../test/kits/waits.ts";
import { createClient } from "../../client/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const home = mkdtempSync(join(tmpdir(), "drover-worker-trees-"));
after(() => rmSync(home, { recursive: true }));

function git(...args: string[]): void {
  const who = ["-c", "user.email=a@example.org", "-c", "user.name=A"];
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  execFileSync("git", ["-C", home, ...who, ...args], { env, stdio: "ignore" });
}

git("init", "--quiet", "--initial-branch=main");
writeFileSync(join(home, "a"), "");
git("add", "a");
git("commit", "--quiet", "-m", "first");

test("at its limit of worktrees a worker leaves tasks in the queue, until a tree goes", {
  timeout: 90_000,
}, async () => {
  await using server = await served(["--log", "memory:", "--no-worker"]);
  const { env } = server.terminalFor();
  const terminal = testTerminal({ cwd: home, env: { ...env, PATH: process.env.PATH } });
  const flags = ["--worktree", "--max-worktrees", "1", "--data", join(home, "data")];
  const ended = runCommandLine(["worker", "--id", "w", "--shell", "--exec", "echo > made", ...flags], terminal, VERBS);
  await Promise.race([terminal.saw("w has joined"), ended]);
  try {
    assert.equal((await server.drover(["submit", "one", "--id", "one", "--wait"])).code, 0);
    await terminal.saw("no task with a worktree is taken: 1 worktree exists, and at most 1 may: ");
    const tree = join(home, "data", "worktrees", "one");
    assert.ok(terminal.complained().includes(tree));
    await server.drover(["submit", "two", "--id", "two"]);
    const why = (await server.drover(["why", "two"])).out;
    assert.match(why, /worker w: 1 worktree exists/);
    assert.match((await server.drover(["task", "two"])).out, /queued/);
    assert.match((await server.drover(["workers"])).out, /\nw: 1 worktree exists/);
    git("worktree", "remove", "--force", tree);
    const { state } = await createClient({ url: server.url }).wait("two");
    assert.equal(state, "done");
  } finally {
    for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
    await ended;
  }
});

test("a task of a server goes on from what another left, and the view and the inputs name its branch", {
  timeout: 90_000,
}, async () => {
  await using server = await served(["--log", "memory:", "--no-worker"]);
  const { env } = server.terminalFor();
  const terminal = testTerminal({ cwd: home, env: { ...env, PATH: process.env.PATH } });
  const line = 'sed "s/^/: /" "$DROVER_INPUTS_FILE" made 2> /dev/null; echo $DROVER_TASK_ID >> made';
  const flags = ["--worktree", "--quiet", "--data", join(home, "data-3"), "--slots", "2"];
  const ended = runCommandLine(["worker", "--id", "u", "--shell", "--exec", line, ...flags], terminal, VERBS);
  await Promise.race([terminal.saw("u has joined"), ended]);
  const client = createClient({ url: server.url });
  const submit = (id: string, worktree: unknown, needs?: Record<string, string>): Promise<unknown> =>
    client.submit({
      id,
      agentId: "ann",
      action: "write",
      params: { worktree },
      ...(needs === undefined ? {} : { needs }),
    });
  try {
    await submit("a/impl", true);
    const { branch } = await client.wait("a/impl");
    assert.match(branch ?? "", /^drover\/a-impl\+[0-9a-f]{16}$/);
    await submit("review", { from: "code" }, { code: "a/impl" });
    const review = await client.wait("review");
    assert.equal(review.branch, "drover/review");
    const { output } = review.result as { output: string };
    assert.ok(output.includes(`"branch":"${branch}"`) && output.endsWith("\n: a/impl"), output);
    await submit("both", { merge: ["one", "two"] }, { one: "a/impl", two: "review" });
    assert.ok(((await client.wait("both")).result as { output: string }).output.endsWith("\n: a/impl\n: review"));
    await submit("lost", { from: "cod" }, { code: "a/impl" });
    const { state, error, attempt } = await client.wait("lost");
    assert.deepEqual(
      [state, attempt, error],
      ["failed", 1, "params.worktree names cod, which is no need of it; is it code?"],
    );
  } finally {
    for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
    await ended;
  }
});

test("a limit that is raised while the worker is there binds without a restart", { timeout: 90_000 }, async () => {
  const directory = emptyDirectory();
  const config = join(directory, "drover.yml");
  writeFileSync(config, "workers: { maxWorktrees: 1 }\n");
  await using server = await served(["--log", "memory:", "--no-worker"], { directory });
  const { env } = server.terminalFor();
  const terminal = testTerminal({ cwd: home, env: { ...env, PATH: process.env.PATH } });
  const flags = ["--worktree", "--data", join(home, "data-2")];
  const ended = runCommandLine(["worker", "--id", "v", "--shell", "--exec", "echo > made", ...flags], terminal, VERBS);
  await Promise.race([terminal.saw("v has joined"), ended]);
  try {
    assert.equal((await server.drover(["submit", "one", "--id", "one", "--wait"])).code, 0);
    await terminal.saw("no task with a worktree is taken: 1 worktree exists, and at most 1 may: ");
    await server.drover(["submit", "two", "--id", "two"]);
    writeFileSync(config, "workers: { maxWorktrees: 2 }\n");
    const { state } = await createClient({ url: server.url }).wait("two");
    assert.equal(state, "done");
  } finally {
    for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
    await ended;
  }
});

for (const kind of ["worker", "serve"])
  test(`a task that asked is cancelled while it is parked: its clean tree goes at once, by drover ${kind}`, {
    timeout: 90_000,
  }, async () => {
    const data = join(home, `data-of-${kind}`);
    const [directory, args] =
      kind === "serve" ? [home, ["--data", data]] : [undefined, ["--log", "memory:", "--no-worker"]];
    await using server = await served(args, directory === undefined ? {} : { directory });
    const { env } = server.terminalFor();
    const terminal = testTerminal({ cwd: home, env: { ...env, PATH: process.env.PATH } });
    const flags = ["--id", "v", "--worktree", "--shell", "--exec", "exit 76", "--data", join(data, "worker")];
    const ended = kind === "serve" ? null : runCommandLine(["worker", ...flags], terminal, VERBS);
    if (ended !== null) await Promise.race([terminal.saw("v has joined"), ended]);
    const client = createClient({ url: server.url });
    const tree = join(data, "worker", "worktrees", "asks");
    try {
      const params = kind === "serve" ? { command: "exit 76", worktree: true } : {};
      await client.submit({ id: "asks", agentId: "ann", action: "exec", params });
      await until("it is parked", async () => (await client.task("asks")).state === "parked");
      assert.ok(existsSync(tree), "it waits for the answer");
      await client.cancel("asks");
      await until("its tree is gone", () => !existsSync(tree));
    } finally {
      if (ended !== null) for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
      await ended;
    }
  });
