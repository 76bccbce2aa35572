import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createWorld, exists, type World, type WorldOptions } from "../../../test/kits/faults/exec-world.ts";
import { branches, COMMIT, createRepo, git, type Repo, trees } from "../../../test/kits/faults/repository.ts";
import type { ExecOutcome } from "../exec/contract.ts";
import { thisOwner } from "../process/runs.ts";
import { procTable } from "../process/table.ts";
import type { WorkspaceReport } from "./worktree.ts";

const table = procTable();

function stageIn(t: TestContext, { home, repo }: Repo, options: WorldOptions): World {
  return createWorld(t, { data: join(home, "data"), cwd: repo, isolation: "worktree", ...options });
}
const workspaceOf = ({ result }: ExecOutcome): WorkspaceReport => (result as { workspace: WorkspaceReport }).workspace;

test("a task runs on a branch of its own, and a tree without work in it goes, the branch with it", async (t) => {
  const repo = createRepo(t);
  const script = `printf '{"cwd":"%s","branch":"%s","base":"%s","a":"%s"}' "$PWD" "$(git branch --show-current)" \\
    "$DROVER_BASE" "$(cat a.txt)"; echo noise > x.log; mkdir build; echo x > build/y`;
  const outcome = await stageIn(t, repo, { script }).run();
  const path = join(repo.home, "data", "worktrees", "t1");
  const { workspace, ...result } = outcome.result as Record<string, unknown>;
  assert.deepEqual(result, { cwd: path, branch: "drover/t1", base: repo.base, a: "one" });
  const report = {
    isKept: false,
    path,
    branch: "drover/t1",
    base: repo.base,
    commit: repo.base,
    host: hostname(),
    commits: 0,
    uncommitted: 0,
    changedFiles: [],
    changedCount: 0,
  };
  assert.deepEqual(workspace, report);
  assert.deepEqual(
    [exists(path), exists(`${path}.json`), branches(repo.repo), trees(repo.repo).length],
    [false, false, ["main"], 1],
  );
});

const works: [string, string, { commits: number; changedFiles: string[] }][] = [
  ["a changed file", "echo two >> a.txt", { commits: 0, changedFiles: ["a.txt"] }],
  ["a new file", "mkdir n; echo x > 'n/ü x'", { commits: 0, changedFiles: ["n/ü x"] }],
  ["a staged file", "echo x > n; git add n", { commits: 0, changedFiles: ["n"] }],
  ["a deleted file", "rm a.txt", { commits: 0, changedFiles: ["a.txt"] }],
  ["a commit", `echo x > n; git add n; ${COMMIT} -m x`, { commits: 1, changedFiles: ["n"] }],
  ["a commit that changes nothing in the end", `${COMMIT} --allow-empty -m x`, { commits: 1, changedFiles: [] }],
  [
    "a commit without a branch",
    `git checkout --quiet --detach; ${COMMIT} --allow-empty -m x`,
    { commits: 1, changedFiles: [] },
  ],
  [
    "a commit on its branch, with another checked out",
    `${COMMIT} --allow-empty -m x; git checkout --quiet -b other main`,
    { commits: 1, changedFiles: [] },
  ],
];
for (const [index, [name, script, expected]] of works.entries())
  test(`a tree is never removed with work in it: ${name}`, async (t) => {
    const repo = createRepo(t);
    const [end, outcome] = index % 2 === 0 ? ["exit 0", "done"] : ["exit 3", "failed"];
    const result = await stageIn(t, repo, { script: `{ ${script}; } > /dev/null; ${end}` }).run();
    assert.equal(result.outcome, outcome, result.error);
    const { isKept, path, commits, changedFiles, branch } = workspaceOf(result);
    assert.deepEqual({ isKept, commits, changedFiles }, { isKept: true, ...expected });
    assert.ok(exists(path) && branches(repo.repo).includes(branch));
    const hint = `its work is kept in ${path} on branch ${branch}`;
    assert.equal(result.error?.endsWith(hint) ?? false, outcome === "failed");
  });

test("a name that is taken is not taken over, as a directory or as a branch", async (t) => {
  const repo = createRepo(t);
  git(repo.repo, "branch", "drover/t1");
  git(repo.repo, "branch", "drover/t1-4/below");
  mkdirSync(join(repo.home, "data", "worktrees", "t1-2"), { recursive: true });
  const world = stageIn(t, repo, { script: "echo x > n" });
  const branchOf = async (task: Parameters<World["run"]>[0]): Promise<string> =>
    workspaceOf(await world.run(task)).branch;
  assert.equal(await branchOf({}), "drover/t1-3");
  assert.equal(await branchOf({}), "drover/t1-5");
  assert.equal(await branchOf({ taskId: "t2" }), "drover/t2");
  assert.equal(await branchOf({ taskId: "t2", attempt: 2 }), "drover/t2-2");
  assert.match(await branchOf({ taskId: "../../x y" }), /^drover\/x-y\+[0-9a-f]{16}$/);
});

test("a task of a plan has a branch that says so, whatever the names are", async (t) => {
  const repo = createRepo(t);
  const world = stageIn(t, repo, { script: "echo x > n" });
  const branchOf = async (plan: string, task: string, attempt = 1): Promise<string> =>
    workspaceOf(await world.run({ taskId: `${plan} ${task}`, attempt, params: { plan, task } })).branch;
  assert.equal(await branchOf("release", "fix"), "drover/release/fix");
  assert.equal(await branchOf("release", "fix", 2), "drover/release/fix-2");
  assert.match(await branchOf("release", "test[24,linux]"), /^drover\/release\/test-24-linux\+[0-9a-f]{16}$/);
  for (const name of ["..", "a.lock", "-x", "a b", "x~1", "@{u}", "re\nlease", "refs/heads/main", "*"])
    assert.match(await branchOf(name, name), /^drover\/[\w-]*\+[0-9a-f]{16}\/[\w-]*\+[0-9a-f]{16}$/, name);
  // No branch can lie below another.
  assert.equal(workspaceOf(await world.run({ taskId: "solo" })).branch, "drover/solo");
  assert.equal(await branchOf("solo", "fix"), "drover/solo.fix");
  assert.equal(workspaceOf(await world.run({ taskId: "release" })).branch, "drover/release-2");
});

test("many at once get a tree each", async (t) => {
  const repo = createRepo(t);
  const world = stageIn(t, repo, { script: "git branch --show-current > n; git add n" });
  const outcomes = await Promise.all(Array.from({ length: 6 }, (_, index) => world.run({ taskId: `t${index}` })));
  assert.deepEqual(
    outcomes.map((outcome) => workspaceOf(outcome).branch).sort(),
    [0, 1, 2, 3, 4, 5].map((n) => `drover/t${n}`),
  );
  assert.equal(trees(repo.repo).length, 7);
});

test("a worktree begins from the base, at the same place in the tree as the working directory", async (t) => {
  const repo = createRepo(t);
  writeFileSync(join(repo.repo, "a.txt"), "changed, not committed\n");
  git(repo.repo, "commit", "--quiet", "-am", "second");
  const script = `printf '["%s","%s"]' "$(cat ../a.txt)" "$(basename $PWD)"`;
  const outcome = await stageIn(t, repo, { script, cwd: join(repo.repo, "sub"), base: "main~1" }).run();
  const { result, workspace } = outcome.result as { result: unknown; workspace: WorkspaceReport };
  assert.deepEqual([result, workspace.base], [["one", "sub"], repo.base]);
});

test("ignored files that are listed are copied, others are not", async (t) => {
  const repo = createRepo(t);
  writeFileSync(join(repo.repo, ".worktreeinclude"), "# settings\n.env\nbuild/*.cfg\nuntracked\na.txt\n");
  for (const name of [".env", "sub/.env", "x.log", "untracked"])
    writeFileSync(join(repo.repo, name), `this is ${name}`);
  mkdirSync(join(repo.repo, "build"));
  writeFileSync(join(repo.repo, "build", "my.cfg"), "cfg");
  writeFileSync(join(repo.repo, "build", "other"), "other");
  const script = `find . -type f ! -path './.git*' | sort | tr '\\n' ' '; echo; cat sub/.env`;
  const outcome = await stageIn(t, repo, { script }).run();
  const { output } = outcome.result as { output: string };
  assert.equal(output, "./.env ./a.txt ./build/my.cfg ./sub/.env ./sub/b.txt \nthis is sub/.env");
  assert.equal(workspaceOf(outcome).isKept, false);
});

test("no link that leads out of the tree is copied, and nothing is copied through one", async (t) => {
  const repo = createRepo(t);
  const outside = join(repo.home, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "key"), "secret");
  symlinkSync(outside, join(repo.repo, "build"));
  git(repo.repo, "add", "build");
  git(repo.repo, "commit", "--quiet", "-m", "a link");
  // Here it is a directory; in the commit, and so in the worktree, it is a link.
  rmSync(join(repo.repo, "build"));
  mkdirSync(join(repo.repo, "build"));
  writeFileSync(join(repo.repo, "build", "my.cfg"), "cfg");
  for (const [name, target] of [
    ["whole.log", join(outside, "key")],
    ["climbs.log", "../outside/key"],
    ["dangling.log", "../nowhere"],
    ["inside.log", "sub/b.txt"],
  ] as const)
    symlinkSync(target, join(repo.repo, name));
  writeFileSync(join(repo.repo, ".worktreeinclude"), "*.log\nbuild/\n");
  const world = stageIn(t, repo, { script: "ls *.log; cat inside.log" });
  const { output } = (await world.run()).result as { output: string };
  assert.equal(output, "inside.log\ntwo");
  assert.deepEqual(readdirSync(outside), ["key"]);
  const { text = "" } = (await world.handler.tail("t1", 1)) ?? {};
  assert.match(text, /note build\/my\.cfg is not copied: a directory of its path is a link in the commit\n/);
  for (const name of ["whole", "climbs", "dangling"])
    assert.match(text, new RegExp(`note ${name}\\.log is not copied: it is a link that leads out of the repository\n`));
});

test("setup runs first and cleanup last, in the workspace; a setup that fails is a failure", async (t) => {
  const repo = createRepo(t);
  const options = {
    setup: `echo '{"type":"result","result":"no"}'; echo ready > build.log`,
    script: `cat build.log; touch '${repo.home}/ran'`,
  };
  const world = stageIn(t, repo, {
    ...options,
    cleanup: `echo '{"type":"usage","inputTokens":1}'; pwd > '${repo.home}/cleaned'`,
  });
  const outcome = await world.run();
  assert.equal((outcome.result as { output: string }).output.split("\n")[1], "ready");
  assert.equal(outcome.usage, undefined);
  assert.match(readFileSync(join(repo.home, "cleaned"), "utf8"), /worktrees\/t1\n$/);
  assert.match(String((await world.handler.tail("t1", 1))?.text), /note setup: .*note command: .*note cleanup: /s);
  const failing = stageIn(t, repo, { script: `touch '${repo.home}/ran-too'`, setup: "echo no network >&2; exit 4" });
  const failed = await failing.run({ taskId: "t2" });
  assert.deepEqual(failed, { outcome: "failed", error: "the setup command failed (exit code 4): no network" });
  assert.deepEqual([exists(join(repo.home, "ran-too")), trees(repo.repo).length], [false, 1]);
});

test("more worktrees than allowed are refused for now, and the limit is named", async (t) => {
  const repo = createRepo(t);
  const world = stageIn(t, repo, { script: `[ "$DROVER_TASK_ID" = clean ] || echo x > n`, maxWorktrees: 2 });
  for (const taskId of ["clean", "a", "b"]) assert.equal((await world.run({ taskId })).outcome, "done");
  const { outcome, error, retryAfterMs } = await world.run({ taskId: "c" });
  assert.deepEqual([outcome, retryAfterMs], ["requeue", 10_000]);
  assert.match(
    error ?? "",
    /^2 worktrees exist, and at most 2 may: .*a, .*b; .*drover worktrees clean\), or raise workers\.maxWorktrees or/,
  );
  assert.deepEqual(await world.handler.room(), { count: 0, note: error });
  git(repo.repo, "worktree", "remove", "--force", join(repo.home, "data", "worktrees", "a"));
  assert.equal((await world.handler.room())?.count, 1);
  assert.equal((await world.run({ taskId: "c", attempt: 2 })).outcome, "done");
  world.handler.limitWorktrees(1);
  assert.match(String((await world.handler.room())?.note), /^2 worktrees exist, and at most 1 may: /);
  world.handler.limitWorktrees(3);
  assert.equal((await world.handler.room())?.count, 1);
  assert.equal((await world.run({ taskId: "d" })).outcome, "done");
});

test("a task that waits to go on takes no room from others, unless more wait than there may be trees", async (t) => {
  const repo = createRepo(t);
  const world = stageIn(t, repo, { script: "case $DROVER_TASK_ID in ask*) exit 76;; esac", maxWorktrees: 1 });
  assert.equal((await world.run({ taskId: "ask-1" })).outcome, "ask");
  assert.equal((await world.handler.room())?.count, 1);
  assert.equal((await world.run({ taskId: "other" })).outcome, "done");
  assert.equal((await world.run({ taskId: "ask-2" })).outcome, "ask");
  // One of them may go on at any time, so it is not shut; but there is no tree for another.
  assert.equal((await world.handler.room())?.count, 1);
  const refused = await world.run({ taskId: "other-2" });
  assert.equal(refused.outcome, "requeue");
  assert.match(refused.error ?? "", /1 worktree exists, and at most 1 may/);
});

test("no task is taken for one that waits to go on where kept trees leave no room for others", async (t) => {
  const repo = createRepo(t);
  const script = "case $DROVER_TASK_ID in ask) exit 76;; kept*) echo x > n;; esac";
  const world = stageIn(t, repo, { script, maxWorktrees: 2 });
  assert.equal((await world.run({ taskId: "ask" })).outcome, "ask");
  for (const taskId of ["kept-1", "kept-2"]) assert.equal((await world.run({ taskId })).outcome, "done");
  const { outcome, error } = await world.run({ taskId: "other" });
  assert.deepEqual([outcome, await world.handler.room()], ["requeue", { count: 0, note: error }]);
  git(repo.repo, "worktree", "remove", "--force", join(repo.home, "data", "worktrees", "kept-1"));
  assert.equal((await world.handler.room())?.count, 1);
  assert.equal((await world.run({ taskId: "other" })).outcome, "done");
});

test("a tree that an attempt works in leaves room for that attempt", async (t) => {
  const repo = createRepo(t);
  const world = stageIn(t, repo, { script: `say ready; while [ ! -e '${repo.home}/go' ]; do sleep 0.01; done` });
  const run = world.start();
  await run.said("ready");
  assert.equal((await world.handler.room())?.count, 50);
  writeFileSync(join(repo.home, "go"), "");
  await run.outcome;
  assert.equal(await createWorld(t, { script: "true" }).handler.room(), null);
});

const hopeless: [string, (repo: Repo) => WorldOptions, RegExp][] = [
  ["no repository", ({ home }) => ({ cwd: home }), /is not inside a git repository, so there can be no worktree/],
  ["no such base", () => ({ base: "nowhere" }), /the base nowhere names no commit/],
];
for (const [name, options, expected] of hopeless)
  test(`what can have no worktree fails for good: ${name}`, async (t) => {
    const repo = createRepo(t);
    const outcome = await stageIn(t, repo, { script: "true", ...options(repo) }).run();
    assert.deepEqual([outcome.outcome, outcome.permanent], ["failed", true]);
    assert.match(outcome.error ?? "", expected);
  });

test("a worktree that git will not make is a failure, and leaves nothing behind", async (t) => {
  const repo = createRepo(t);
  git(repo.repo, "branch", "drover");
  const world = stageIn(t, repo, { script: "true" });
  const { outcome, error } = await world.run();
  assert.equal(outcome, "failed");
  assert.match(error ?? "", /its worktree could not be made: git worktree add failed: .*drover/);
  assert.deepEqual([trees(repo.repo).length, readdirSync(join(repo.home, "data", "worktrees"))], [1, []]);
  git(repo.repo, "branch", "-D", "drover");
  assert.equal((await world.run()).outcome, "done");
});

test("a child that removes its own tree keeps what it committed", async (t) => {
  const repo = createRepo(t);
  const script = `${COMMIT} --allow-empty -m x; here=$PWD; cd /; git -C '${repo.repo}' worktree remove "$here"`;
  assert.equal((await stageIn(t, repo, { script }).run()).outcome, "done");
  assert.deepEqual(branches(repo.repo), ["drover/t1", "main"]);
});

test("a task that is stopped keeps its work too", async (t) => {
  const repo = createRepo(t);
  const run = stageIn(t, repo, { script: "echo x > n; say ready; linger" }).start();
  await run.said("ready");
  run.abort("deadline exceeded");
  const outcome = await run.outcome;
  assert.equal(outcome.outcome, "cancelled");
  assert.match(outcome.error ?? "", /deadline exceeded; its work is kept in .*t1 on branch drover\/t1$/);
});

test("trees of a worker that is gone are removed unless there is work in them; others are not touched", async (t) => {
  const repo = createRepo(t);
  const root = join(repo.home, "data", "worktrees");
  const dead = { ...thisOwner(table), pid: 2 ** 22 + 7 };
  const put = (name: string, state: string, owner: object, change: string | null): void => {
    const [path, branch] = [join(root, name), `drover/${name}`];
    git(repo.repo, "worktree", "add", "--quiet", "-b", branch, path, "main");
    if (change !== null) writeFileSync(join(path, change), "changed\n");
    const rest = {
      base: repo.base,
      gitDirectory: join(repo.repo, ".git"),
      taskId: name,
      attempt: 1,
      runId: "r",
      owner,
    };
    writeFileSync(`${path}.json`, JSON.stringify({ name, path, branch, state, ...rest }));
  };
  put("clean", "in-use", dead, null);
  put("dirty", "in-use", dead, "a.txt");
  put("untracked", "in-use", dead, "new");
  put("half-made", "making", dead, "a.txt");
  put("alive", "in-use", thisOwner(table), null);
  put("kept-and-gone", "kept", dead, "a.txt");
  git(repo.repo, "worktree", "remove", "--force", join(root, "kept-and-gone"));
  writeFileSync(join(root, "not-a-note.json"), "{}");
  mkdirSync(join(root, "a-stranger"));
  const world = stageIn(t, repo, { script: "true" });
  const report = await world.handler.sweep();
  assert.deepEqual(
    report.worktreesRemoved.toSorted(),
    ["clean", "half-made", "kept-and-gone"].map((name) => join(root, name)),
  );
  assert.deepEqual(
    report.worktreesKept.toSorted(),
    ["dirty", "untracked"].map((name) => join(root, name)),
  );
  assert.deepEqual(report.problems, []);
  assert.deepEqual(branches(repo.repo), ["drover/alive", "drover/dirty", "drover/untracked", "main"]);
  assert.deepEqual(
    ["alive", "a-stranger", "dirty"].map((name) => exists(join(root, name))),
    [true, true, true],
  );
  const again = await world.handler.sweep();
  assert.deepEqual([again.worktreesRemoved, again.worktreesKept.length], [[], 2]);
});

test("a directory that is not in the commit is refused in words, and nothing is left behind", async (t) => {
  const repo = createRepo(t);
  const cwd = join(repo.repo, "new");
  mkdirSync(cwd);
  const { outcome, error, permanent } = await stageIn(t, repo, { script: "true", cwd }).run();
  assert.deepEqual([outcome, permanent], ["failed", true]);
  assert.match(error ?? "", /^the directory new of \S+ is not in the commit of HEAD, .*; commit it, or name a base/);
  assert.deepEqual([trees(repo.repo).length, branches(repo.repo)], [1, ["main"]]);
});
