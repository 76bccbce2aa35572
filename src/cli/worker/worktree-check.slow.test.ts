/**
 * Worktrees that cannot be: a worker does not join, and a plan does not begin.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type PlanDirectory, planDirectory } from "../../../test/kits/cli/plan-directory.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import { checkWorktree } from "./preflight.ts";

const home = mkdtempSync(join(tmpdir(), "drover-trees-"));
after(() => rmSync(home, { recursive: true }));

function git(directory: string, ...args: string[]): void {
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
  };
  const who = ["-c", "user.email=a@example.org", "-c", "user.name=A"];
  execFileSync("git", ["-C", directory, ...who, ...args], { env, stdio: "ignore" });
}

function makeRepo(directory: string): string {
  mkdirSync(join(directory, "kept"), { recursive: true });
  mkdirSync(join(directory, "new"), { recursive: true });
  writeFileSync(join(directory, "kept", "a"), "");
  git(directory, "init", "--quiet", "--initial-branch=main");
  git(directory, "add", "kept");
  git(directory, "commit", "--quiet", "-m", "first");
  return directory;
}
const repo = makeRepo(join(home, "repo"));
const plain = join(home, "plain");
mkdirSync(plain);

const refused: [claim: string, cwd: string, base: string[], said: RegExp][] = [
  ["outside a repository", plain, [], /^error: \S+plain is not inside a git repository, .*git init makes one/],
  ["from a base that is not there", repo, ["--base", "nosuchref"], /^error: the base nosuchref names no commit in /],
  [
    "in a directory that is not committed",
    join(repo, "new"),
    [],
    /^error: the directory new of \S+ is not in the commit/,
  ],
];
for (const [claim, cwd, base, said] of refused)
  test(`a worker with worktrees ${claim} is refused before it joins`, async () => {
    const env = { PATH: process.env.PATH, DROVER_URL: "http://127.0.0.1:9" };
    const terminal = testTerminal({ cwd, home, env });
    const code = await runCommandLine(["worker", "--exec", "true", "--worktree", ...base], terminal, VERBS);
    assert.equal(code, 2);
    assert.match(terminal.complained(), said);
  });

test("a worker whose script the worktree would not have is refused before it joins", async () => {
  const own = makeRepo(join(home, "scripts"));
  const tried = async (cwd: string, command: string): Promise<string> => {
    const tree = { command, isolation: "worktree" } as const;
    return checkWorktree(tree, cwd).then(
      () => "",
      (error: Error) => error.message,
    );
  };
  writeFileSync(join(own, "agent.sh"), "#!/bin/sh\n", { mode: 0o755 });
  const missing =
    /^the program \.\/agent\.sh is not in the commit of HEAD, so it would be missing in a worktree; commit it/;
  assert.match(await tried(own, "./agent.sh --fast"), missing);
  const env = { PATH: process.env.PATH, DROVER_URL: "http://127.0.0.1:9" };
  const terminal = testTerminal({ cwd: own, home, env });
  assert.equal(await runCommandLine(["worker", "--exec", "./agent.sh", "--worktree"], terminal, VERBS), 2);
  assert.match(terminal.complained(), /\nhint: {2}without --worktree tasks run in the directory itself\n/);
  git(own, "add", "agent.sh");
  assert.match(await tried(own, "./agent.sh"), missing, "staged is not committed");
  git(own, "commit", "--quiet", "-m", "script");
  assert.equal(await tried(own, "./agent.sh"), "");
  assert.equal(await tried(join(own, "kept"), "../agent.sh"), "");
  assert.match(await tried(join(own, "kept"), "./agent.sh"), /is not in the commit/);
  writeFileSync(join(own, "plain.sh"), "#!/bin/sh\n", { mode: 0o644 });
  git(own, "add", "plain.sh");
  git(own, "commit", "--quiet", "-m", "plain");
  assert.match(await tried(own, "./plain.sh"), /is not executable in the commit of HEAD, .*chmod=\+x plain\.sh/);
  assert.equal(await tried(own, join(own, "agent.sh")), "", "a whole path is the same everywhere");
});

test("one that can make them is not, nor one whose directory may be copied in", async () => {
  const tree = { command: "true", isolation: "worktree" } as const;
  await checkWorktree(tree, repo);
  await checkWorktree({ ...tree, base: "main" }, join(repo, "kept"));
  await checkWorktree({ command: "true" }, plain);
  const including = makeRepo(join(home, "including"));
  writeFileSync(join(including, ".worktreeinclude"), "new/\n");
  writeFileSync(join(including, "new", "agent.sh"), "", { mode: 0o755 });
  // It is named, but git does not ignore it: it would not be copied.
  await assert.rejects(checkWorktree(tree, join(including, "new")), /the directory new .* is not in the commit/);
  writeFileSync(join(including, ".gitignore"), "new/\n");
  await checkWorktree(tree, join(including, "new"));
  await checkWorktree({ ...tree, command: "new/agent.sh" }, including);
  await assert.rejects(checkWorktree({ ...tree, command: "./other.sh" }, including), /other\.sh is not in the commit/);
});

const PLAN = `tasks:
  a: echo a >> ran
  b: { run: "echo b >> ran", worktree: true }
`;
const place = (plan: string, hasRepo: boolean): PlanDirectory => {
  const made = planDirectory(plan);
  if (hasRepo) makeRepo(made.directory);
  return made;
};

test("a plan whose task cannot have its worktree fails before anything starts", async () => {
  for (const [plan, hasRepo, said] of [
    [PLAN, false, /^error: task b wants a worktree: .*is not inside a git repository/],
    [PLAN.replace("true", "{ base: gone }"), true, /task b wants a worktree: the base gone names no commit/],
    [PLAN.replace("worktree", "cwd: new, worktree"), true, /task b wants a worktree: the directory new of/],
    [
      PLAN.replace("worktree", "needs: a, worktree"),
      false,
      /task b wants a worktree: .*is not inside a git repository/,
    ],
  ] as const) {
    using at = place(plan, hasRepo);
    const { code, err } = await at.run();
    assert.equal(code, 2, err);
    assert.match(err, said);
    assert.deepEqual([at.has("ran"), at.has(".drover")], [false, false]);
  }
});

test("what an earlier task makes may be missing at the start, and what is done may be gone since", async () => {
  using at = place("tasks:\n  a: git branch later\n  b: { run: 'true', needs: a, worktree: { base: later } }", true);
  const first = await at.run();
  assert.equal(first.code, 0, first.err);
  using again = place("tasks:\n  b: { run: 'true', worktree: { base: later } }", true);
  git(again.directory, "branch", "later");
  assert.equal((await again.run()).code, 0);
  git(again.directory, "branch", "-D", "later");
  const second = await again.run();
  assert.equal(second.code, 0, second.err);
});
