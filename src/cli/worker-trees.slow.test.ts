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
import { served } from "../../test/cli/served.ts";
import { testTerminal } from "../../test/cli/test-terminal.ts";
import { createClient } from "../client/index.ts";
import { runCommandLine } from "./command-line.ts";
import { VERBS } from "./verbs.ts";

const home = mkdtempSync(join(tmpdir(), "drover-worker-trees-"));
after(() => rmSync(home, { recursive: true }));

function git(...args: string[]): void {
  const who = ["-c", "user.email=a@example.org", "-c", "user.name=A"];
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  execFileSync("git", ["-C", home, ...who, ...args], { env, stdio: "ignore" });
}

test("at its limit of worktrees a worker leaves tasks in the queue, until a tree goes", {
  timeout: 90_000,
}, async () => {
  git("init", "--quiet", "--initial-branch=main");
  writeFileSync(join(home, "a"), "");
  git("add", "a");
  git("commit", "--quiet", "-m", "first");
  await using server = await served(["--log", "memory:", "--no-worker"]);
  const { env } = server.terminalFor();
  const terminal = testTerminal({ cwd: home, env: { ...env, PATH: process.env.PATH } });
  const flags = ["--worktree", "--max-worktrees", "1", "--data", join(home, "data")];
  const ended = runCommandLine(["worker", "--id", "w", "--shell", "--exec", "echo > made", ...flags], terminal, VERBS);
  await Promise.race([terminal.saw("w has joined"), ended]);
  try {
    assert.equal((await server.drover(["submit", "one", "--id", "one", "--wait"])).code, 0);
    await terminal.saw("no task is taken: 1 worktrees of 1 (maxWorktrees) are there: ");
    const tree = join(home, "data", "worktrees", "one-1");
    assert.ok(terminal.complained().includes(tree));
    await server.drover(["submit", "two", "--id", "two"]);
    const why = (await server.drover(["why", "two"])).out;
    assert.match(why, /worker w: 1 worktrees of 1/);
    assert.match((await server.drover(["task", "two"])).out, /queued/);
    assert.match((await server.drover(["workers"])).out, /\nw: 1 worktrees of 1 \(maxWorktrees\)/);
    git("worktree", "remove", "--force", tree);
    const { state } = await createClient({ url: server.url }).wait("two");
    assert.equal(state, "done");
  } finally {
    for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
    await ended;
  }
});
