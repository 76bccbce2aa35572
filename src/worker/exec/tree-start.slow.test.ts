/**
 * What a worktree begins from: the work of needs, with real repositories.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createWorld, type World, type WorldOptions } from "../../../test/kits/faults/exec-world.ts";
import { branches, COMMIT, createRepo, git, type Repo, trees } from "../../../test/kits/faults/repository.ts";
import type { Input } from "../../protocol/index.ts";
import type { WorkspaceReport } from "../worktree/worktree.ts";
import type { ExecOutcome, ExecTask } from "./contract.ts";

type Params = NonNullable<ExecTask["params"]>;
type Needs = Readonly<Record<string, ExecOutcome>>;

/** Each task runs the script in its params. */
function worldIn(t: TestContext, { home, repo }: Repo, options: WorldOptions = {}): World {
  const script = `node -e 'process.stdout.write(JSON.parse(require("fs").readFileSync(0)).params.script)' > "$TMPDIR/s"
    . "$TMPDIR/s"`;
  return createWorld(t, { data: join(home, "data"), cwd: repo, isolation: "worktree", script, ...options });
}

const workspaceOf = ({ result }: ExecOutcome): WorkspaceReport => (result as { workspace: WorkspaceReport }).workspace;

/** As the engine hands it along. */
function inputOf(key: string, { outcome, result }: ExecOutcome): Input {
  const { isKept, commits, branch } = (result as { workspace?: WorkspaceReport } | undefined)?.workspace ?? {};
  const left = isKept === true || (commits ?? 0) > 0 ? { branch: branch as string } : {};
  return { taskId: `id-of-${key}`, state: outcome === "done" ? "done" : "failed", result, ...left };
}

function run(
  world: World,
  taskId: string,
  script: string,
  worktree?: unknown,
  needs: Needs = {},
): Promise<ExecOutcome> {
  const inputs = Object.fromEntries(Object.entries(needs).map(([key, end]) => [key, inputOf(key, end)]));
  const params: Params = { script, ...(worktree === undefined ? {} : { worktree }) };
  return world.run({ taskId, action: "exec", params, ...(Object.keys(needs).length === 0 ? {} : { inputs }) });
}

const said = ({ result }: ExecOutcome): unknown => (result as { output?: string }).output;

test("a tree begins at the branch a need left, with what that had not committed, and does not touch it", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(
    world,
    "impl",
    `echo committed > c; git add c; ${COMMIT} -m c; echo two >> a.txt
    mkdir n; echo new > 'n/ü x'; rm sub/b.txt; echo no > x.log`,
  );
  const { path, branch, commit, uncommitted } = workspaceOf(impl);
  assert.deepEqual([branch, uncommitted], ["drover/impl", 3]);
  const before = git(path, "status", "--porcelain");
  const show =
    "cat c a.txt 'n/ü x'; [ -e sub/b.txt ] || echo removed; [ -e x.log ] || echo ignored; git status --porcelain";
  const review = await run(world, "review", show, { from: "impl" }, { impl });
  assert.equal(said(review), "committed\none\ntwo\nnew\nremoved\nignored");
  assert.equal(workspaceOf(review).isKept, false);
  assert.equal(git(path, "status", "--porcelain"), before);
  assert.equal(git(repo.repo, "rev-parse", branch), commit);
});

test("a change of the same size in the second of the checkout is handed on", async (t) => {
  const repo = createRepo(t);
  git(repo.repo, "config", "core.trustctime", "false");
  const world = worldIn(t, repo);
  const same = await run(
    world,
    "same",
    `touch -t 200109090146.40 a.txt; git update-index --refresh; echo two > a.txt
    touch -t 200109090146.40 a.txt "$(git rev-parse --git-path index)"`,
  );
  assert.deepEqual(workspaceOf(same).changedFiles, ["a.txt"]);
  assert.equal(said(await run(world, "read", "cat a.txt", { from: "same" }, { same })), "two");
});

test("work is the same commit for all that begin from it, so that what they make of it can be merged", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", "printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n' > n");
  const one = await run(world, "one", "sed -i 's/^1$/one/' n", { from: "impl" }, { impl });
  const two = await run(world, "two", "sed -i 's/^7$/seven/' n", { from: "impl" }, { impl });
  assert.equal(workspaceOf(one).base, workspaceOf(two).base);
  const both = await run(world, "both", "tr '\\n' ' ' < n", { merge: ["one", "two"] }, { one, two });
  assert.equal(said(both), "one 2 3 4 5 6 seven");
});

test("a need that changed nothing left what it began from; one in a chain, what that began from", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", "echo new > n");
  const fix = await run(world, "fix", "true", { from: "impl" }, { impl });
  assert.equal(workspaceOf(fix).isKept, false);
  const check = await run(world, "check", "cat n", { from: "fix" }, { fix });
  assert.equal(said(check), "new");
});

test("a need that failed but left work, and one that removed its own tree, left a branch", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const failed = await run(world, "failed", "echo half > n; exit 3");
  assert.equal(failed.outcome, "failed");
  assert.equal(said(await run(world, "goes-on", "cat n", { from: "failed" }, { failed })), "half");
  const gone = await run(
    world,
    "gone",
    `echo x > n; git add n; ${COMMIT} -m x; here=$PWD; cd /; git -C '${repo.repo}' worktree remove "$here"`,
  );
  assert.equal(said(await run(world, "after", "cat n", { from: "gone" }, { gone })), "x");
});

test("work on a branch that the child made itself is found there", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", `git checkout --quiet -b feature/x; echo x > n; git add n; ${COMMIT} -m x`);
  assert.equal(workspaceOf(impl).branch, "feature/x");
  assert.equal(said(await run(world, "review", "cat n", { from: "impl" }, { impl })), "x");
});

test("what a person has checked out and not committed is not begun from, whatever a result says", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", "echo x > n");
  writeFileSync(join(repo.repo, "secret"), "mine");
  const forged = (more: object): Needs => ({
    impl: { ...impl, result: { workspace: { ...workspaceOf(impl), branch: "main", ...more } } },
  });
  const clean = await run(world, "review", "ls", { from: "impl" }, forged({ uncommitted: 0 }));
  assert.equal(String(said(clean)).includes("secret"), false);
  const dirty = await run(world, "review", "ls", { from: "impl" }, forged({}));
  assert.match(dirty.error ?? "", /had not committed all of its work on main, and its tree is gone/);
});

test("works are merged in the order that is given, into the base that is given", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const one = await run(world, "one", `echo 1 > one; git add one; ${COMMIT} -m one`);
  const two = await run(world, "two", "echo 2 > two");
  git(repo.repo, "checkout", "--quiet", "-b", "next");
  writeFileSync(join(repo.repo, "three"), "3\n");
  git(repo.repo, "add", "three");
  git(repo.repo, "commit", "--quiet", "-m", "three");
  const script = "cat one two three; git log --format=%s --first-parent -3";
  const flow = { base: "next", merge: ["two", "one"] };
  const merged = await run(world, "merged", script, flow, { one, two });
  assert.equal(said(merged), "1\n2\n3\nMerge the work of one\nMerge the work of two\nthree");
});

test("what was only merged is kept for those who begin from it, once the task is done; sooner it is not", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const one = await run(world, "one", "echo 1 > one");
  const two = await run(world, "two", "echo 2 > two");
  const before = [trees(repo.repo), branches(repo.repo)];
  const flow = { merge: ["one", "two"] };
  assert.equal((await run(world, "bad", "exit 1", flow, { one, two })).outcome, "failed");
  assert.deepEqual([trees(repo.repo), branches(repo.repo)], before);
  const both = await run(world, "both", "cat one two", flow, { one, two });
  const { isKept, branch, commits, changedCount } = workspaceOf(both);
  assert.deepEqual([isKept, branch, commits, changedCount], [true, "drover/both", 2, 0]);
  assert.equal((await world.handler.sweep()).worktreesRemoved.length, 0);
  git(repo.repo, "reflog", "expire", "--expire=now", "--all");
  git(repo.repo, "gc", "--quiet", "--prune=now");
  assert.equal(said(await run(world, "ship", "cat one two", { from: "both" }, { both })), "1\n2");
});

test("a conflict fails the task for good, names the files, and leaves nothing", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const one = await run(world, "one", "echo mine > a.txt; echo 1 > 'new file'");
  const two = await run(world, "two", "echo yours > a.txt; echo 2 > 'new file'");
  const before = [trees(repo.repo), branches(repo.repo)];
  const { outcome, permanent, error } = await run(world, "both", "true", { merge: ["one", "two"] }, { one, two });
  assert.deepEqual([outcome, permanent], ["failed", true]);
  assert.equal(error, "two (drover/two) cannot be merged into its base with one: conflict in a.txt, new file");
  assert.deepEqual([trees(repo.repo), branches(repo.repo)], before);
  assert.equal(existsSync(join(repo.home, "data", "worktrees", "both")), false);
});

test("a branch that is gone is a failure for good, unless its work was merged", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", `echo x > n; git add n; ${COMMIT} -m x`);
  const { path, branch } = workspaceOf(impl);
  git(repo.repo, "worktree", "remove", path);
  git(repo.repo, "branch", "-D", branch);
  const { permanent, error } = await run(world, "review", "cat n", { from: "impl" }, { impl });
  assert.equal(permanent, true);
  assert.match(error ?? "", /^the branch drover\/impl that impl \(id-of-impl\) left is not in \S+; it was removed/);
  git(repo.repo, "merge", "--quiet", workspaceOf(impl).commit as string);
  assert.equal(said(await run(world, "review", "cat n", { from: "impl" }, { impl })), "x");
});

test("uncommitted work whose tree is gone is not taken for what is on its branch", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", "echo x > n");
  git(repo.repo, "worktree", "remove", "--force", workspaceOf(impl).path);
  const { permanent, error } = await run(world, "review", "true", { from: "impl" }, { impl });
  assert.equal(permanent, true);
  assert.match(error ?? "", /had not committed all of its work on drover\/impl, and its tree is gone/);
});

test("uncommitted work that was merged is begun from, though its tree and branch are gone", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo);
  const impl = await run(world, "impl", "echo x > n");
  const drop = (end: ExecOutcome): void => {
    git(repo.repo, "worktree", "remove", "--force", workspaceOf(end).path);
    git(repo.repo, "branch", "-D", workspaceOf(end).branch);
  };
  const review = await run(world, "review", "cat n", { from: "impl" }, { impl });
  const { base: work } = workspaceOf(review);
  drop(impl);
  // As a commit that no branch has it counts for nothing.
  const lost = await run(world, "review", "cat n", { from: "impl" }, { impl });
  assert.equal(lost.permanent, true);
  assert.match(lost.error ?? "", /it was removed, .* at a branch that has that work .*, or run impl again$/);
  git(repo.repo, "merge", "--quiet", "--no-ff", work);
  const again = await run(world, "review", "cat n", { from: "impl" }, { impl });
  assert.deepEqual([said(again), workspaceOf(again).base], ["x", work]);
  // A later run of the same task from the same commit: its work is another.
  const later = await run(world, "impl", "echo y > m", { base: repo.base });
  drop(later);
  const stale = await run(world, "review", "true", { from: "impl" }, { impl: later });
  assert.deepEqual([stale.outcome, stale.permanent], ["failed", true]);
});

test("a branch of another machine, or an older one of the same name, is not begun from", async (t) => {
  const repo = createRepo(t);
  const other = { ...repo, repo: join(repo.home, "other"), home: join(repo.home, "elsewhere") };
  cpSync(repo.repo, other.repo, { recursive: true });
  const here = worldIn(t, repo);
  const there = worldIn(t, other);
  const committed = await run(there, "impl", `echo new > n; git add n; ${COMMIT} -m x`);
  const far = (end: ExecOutcome): Needs => ({
    impl: { ...end, result: { workspace: { ...workspaceOf(end), host: "far-away" } } },
  });
  const none = await run(here, "review", "cat n", { from: "impl" }, far(committed));
  assert.match(none.error ?? "", /the branch drover\/impl that impl .* left is not in .*\/repo; it is on far-away$/);
  // A task of the same name has run here before.
  const old = await run(here, "impl", `echo old > n; git add n; ${COMMIT} -m x`);
  assert.equal(workspaceOf(old).branch, workspaceOf(committed).branch);
  const stale = await run(here, "review", "cat n", { from: "impl" }, far(committed));
  assert.equal(stale.permanent, true);
  assert.match(
    stale.error ?? "",
    /is not the one that impl .* left: commit [0-9a-f]{40} is not here; it is on far-away$/,
  );
  const dirty = await run(there, "impl", "echo new > n", undefined, {});
  git(repo.repo, "worktree", "add", "--quiet", "-b", workspaceOf(dirty).branch, join(repo.home, "stale"), "main");
  const loose = await run(here, "review", "true", { from: "impl" }, far(dirty));
  assert.match(loose.error ?? "", /had not committed all of its work on drover\/impl-2, and its tree is on far-away$/);
});

const wrong: [name: string, worktree: unknown, says: RegExp][] = [
  ["a need that is none", { from: "imp" }, /params\.worktree names imp, which is no need of it; is it impl\?/],
  ["what objects inherit", { from: "constructor" }, /names constructor, which is no need/],
  ["a need that left nothing", { from: "plain" }, /plain \(id-of-plain\) ended as done and left no branch/],
  ["a text", "impl", /must be true, or an object with base, from or merge/],
  ["an unknown field", { form: "impl" }, /params\.worktree has no "form"; it has base, from, merge/],
  ["a base that is no text", { base: 3 }, /params\.worktree\.base must be/],
  ["a base that is an option", { base: "--help" }, /the base --help names no commit/],
  ["a base that takes away", { base: "^main" }, /the base \^main names no commit/],
  ["a base with a zero byte", { base: "ma\0in" }, /names no commit/],
  ["a base without end", { base: "x".repeat(200_000) }, /the base x+… \[199800 more\] names no commit/],
  ["a from that is a list", { from: ["impl"] }, /params\.worktree\.from must be the name of a need/],
  ["a merge that is a text", { merge: "impl" }, /params\.worktree\.merge must be names of needs/],
  ["from and merge", { from: "impl", merge: ["impl"] }, /goes with neither base nor merge/],
  ["from and base", { from: "impl", base: "main" }, /goes with neither base nor merge/],
];
for (const [name, worktree, says] of wrong)
  test(`what makes no sense fails for good, in words: ${name}`, async (t) => {
    const repo = createRepo(t);
    const world = worldIn(t, repo);
    const impl = await run(world, "impl", "echo x > n");
    const plain: ExecOutcome = { outcome: "done", result: { exitCode: 0 } };
    const { outcome, permanent, error } = await run(world, "t", "true", worktree, { impl, plain });
    assert.deepEqual([outcome, permanent], ["failed", true], error);
    assert.match(error ?? "", says);
    assert.equal(trees(repo.repo).length, 2);
  });

const hostile = [
  "--help",
  "../../x",
  "a..b",
  "@{-1}",
  "main^{commit}",
  "main~0",
  "*",
  "ma*",
  "HEAD",
  "x\ny",
  "x\0y",
  "x".repeat(300_000),
];
for (const branch of hostile)
  test(`a made-up name of a branch is none: ${JSON.stringify(branch.slice(0, 20))}`, async (t) => {
    const repo = createRepo(t);
    const result = { workspace: { isKept: true, branch, base: "main" } };
    const world = worldIn(t, repo);
    const { permanent, error } = await run(world, "t", "true", { from: "impl" }, { impl: { outcome: "done", result } });
    assert.equal(permanent, true, error);
    assert.match(error ?? "", /^the branch .* that impl \(id-of-impl\) left is not in [^\n]*$/);
  });

test("a worker that makes no worktrees refuses a task that asks for one, whatever its action", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo, { isolation: "none" });
  const { permanent, error } = await run(world, "t", "true", { from: "impl" });
  assert.deepEqual(
    [permanent, error],
    [true, "params.worktree asks for a worktree, and this worker makes none; start it with --worktree"],
  );
  for (const worktree of [true, {}, { base: "main" }, { from: "impl" }, { merge: ["impl"] }]) {
    const other = await world.run({ action: "build", params: { script: "true", worktree } });
    assert.deepEqual([other.permanent, other.error], [true, error]);
  }
  for (const worktree of [false, "/some/where", { path: "/some/where" }]) {
    const own = await world.run({ action: "build", params: { script: "true", worktree } });
    assert.equal(own.outcome, "done", own.error);
  }
});

test("where each task says for itself, only those that ask have a worktree", async (t) => {
  const repo = createRepo(t);
  const world = worldIn(t, repo, { isolation: "by-task" });
  assert.equal(said(await run(world, "in-place", "pwd")), repo.repo);
  assert.equal(said(await run(world, "apart", "pwd", true)), join(repo.home, "data", "worktrees", "apart"));
  assert.equal(readFileSync(join(repo.repo, "a.txt"), "utf8"), "one\n");
});
