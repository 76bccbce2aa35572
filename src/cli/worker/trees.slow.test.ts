/**
 * A worker that may make no more worktrees takes no task: they stay queued, `why` says what is in the way, and when a
 * tree goes the work goes on.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { emptyDirectory, served } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
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
