/**
 * `drover worktrees` over real repositories: what is listed, what is merged, and what never goes.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { createWorld, type Running } from "../../../test/kits/faults/exec-world.ts";
import { branches, COMMIT, createRepo, git, type Repo, trees } from "../../../test/kits/faults/repository.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

type Ran = { readonly code: number; readonly out: string; readonly err: string };
type Place = Repo & {
  /** An attempt of a task, in a worktree. */
  run(taskId: string, script: string, names?: { plan: string; task: string }): Promise<string>;
  start(taskId: string, script: string): Running;
  drover(...args: string[]): Promise<Ran>;
  standings(): Promise<Record<string, string>>;
};

function placeOf(t: TestContext): Place {
  const repo = createRepo(t);
  const data = join(repo.repo, ".drover", "worker");
  writeFileSync(join(repo.repo, ".git", "info", "exclude"), ".drover\n");
  const start: Place["start"] = (taskId, script) =>
    createWorld(t, { data, cwd: repo.repo, isolation: "worktree", script }).start({ taskId });
  async function drover(...args: string[]): Promise<Ran> {
    const terminal = testTerminal({ cwd: repo.repo, env: { PATH: process.env.PATH, HOME: repo.home } });
    const code = await runCommandLine(["worktrees", ...args], terminal, VERBS);
    return { code, out: terminal.shown(), err: terminal.complained() };
  }
  return {
    ...repo,
    start,
    drover,
    async run(taskId, script, names) {
      const world = createWorld(t, { data, cwd: repo.repo, isolation: "worktree", script });
      const outcome = await world.run({ taskId, ...(names === undefined ? {} : { params: names }) });
      assert.equal(outcome.outcome, "done", outcome.error);
      return (outcome.result as { workspace: { path: string } }).workspace.path;
    },
    async standings() {
      const { worktrees } = JSON.parse((await drover("--json")).out) as {
        worktrees: { name: string; state: string }[];
      };
      return Object.fromEntries(worktrees.map(({ name, state }) => [name, state]));
    },
  };
}

test("trees are listed with what is in them, in whichever data directory they lie", async (t) => {
  const place = placeOf(t);
  assert.equal((await place.drover()).out, "No task has left a worktree here.\n");
  await place.run("loose", "echo x > n");
  await place.run("id-7", `echo x > n; git add n; ${COMMIT} -m x`, { plan: "release", task: "code" });
  const running = place.start("busy", "say ready; linger");
  await running.said("ready");
  const elsewhere = createWorld(t, {
    data: join(place.home, "far"),
    cwd: place.repo,
    isolation: "worktree",
    script: "echo y > m",
  });
  await elsewhere.run({ taskId: "far" });
  const all = { busy: "running", far: "work", loose: "work", "release.code": "work" };
  assert.deepEqual(await place.standings(), all);
  const { out } = await place.drover("list");
  assert.match(out, /^TREE +STATE +COMMITS +FILES +BRANCH +PATH\n/);
  assert.match(out, /\nrelease\.code +work +1 +1 +drover\/release\/code +\.drover\/worker\/worktrees\/release\.code\n/);
  const only = JSON.parse((await place.drover("list", "--data", join(place.home, "far"), "--json")).out);
  assert.deepEqual([only.count, only.worktrees[0].taskId, only.worktrees[0].changedFiles], [1, "far", ["m"]]);
  running.abort("enough");
  await running.outcome;
});

test("what a task did is shown as a patch, committed or not, and the patch can be applied", async (t) => {
  const place = placeOf(t);
  const path = await place.run(
    "impl",
    `echo two >> a.txt; git add a.txt; ${COMMIT} -m x; printf 'new\\tline\\n' > n; rm sub/b.txt`,
  );
  const before = git(path, "status", "--porcelain");
  const { code, out } = await place.drover("diff", "impl");
  assert.equal(code, 0);
  assert.equal(git(path, "status", "--porcelain"), before);
  writeFileSync(join(place.home, "patch"), out);
  git(place.repo, "apply", join(place.home, "patch"));
  assert.equal(readFileSync(join(place.repo, "a.txt"), "utf8"), "one\ntwo\n");
  assert.equal(readFileSync(join(place.repo, "n"), "utf8"), "new\tline\n");
  assert.equal(existsSync(join(place.repo, "sub", "b.txt")), false);
});

test("work is merged into a branch that is checked out and clean, and its tree may go then", async (t) => {
  const place = placeOf(t);
  const path = await place.run("impl", `echo x > c; git add c; ${COMMIT} -m x; echo y > u`);
  writeFileSync(join(place.repo, "mine"), "untracked\n");
  assert.deepEqual(JSON.parse((await place.drover("clean", "--json")).out).removed, []);
  const { code, out, err } = await place.drover("merge", "impl", "--into", "main");
  assert.equal(code, 0, err);
  assert.match(out, /^drover\/impl is merged into main, which is checked out in /);
  assert.equal(readFileSync(join(place.repo, "u"), "utf8"), "y\n");
  assert.equal(git(place.repo, "status", "--porcelain"), "?? mine");
  assert.equal((await place.drover("merge", "impl", "--into", "main")).out, "main has all of drover/impl already\n");
  assert.deepEqual(await place.standings(), { impl: "merged" });
  assert.equal((await place.drover("clean")).out, "removed  impl\n");
  assert.deepEqual([existsSync(path), branches(place.repo), trees(place.repo).length], [false, ["main"], 1]);
});

/** In a script: a file changed to another text of its size, in the second in which git has last seen it. */
const AT_ONCE = `git config core.trustctime false; touch -t 200109090146.40 a.txt; git update-index --refresh
  echo two > a.txt; touch -t 200109090146.40 a.txt "$(git rev-parse --git-path index)"`;

test("a change of the same size in the second of the checkout is work as any other", async (t) => {
  const place = placeOf(t);
  const path = await place.run("impl", AT_ONCE);
  assert.equal(readFileSync(join(path, "a.txt"), "utf8"), "two\n");
  assert.deepEqual(await place.standings(), { impl: "work" });
  assert.match((await place.drover("clean")).out, /^kept +impl \(\S+\): there is work in it: 1 file changed\n$/);
  assert.match((await place.drover("diff", "impl")).out, /\n-one\n\+two\n/);
  assert.equal((await place.drover("merge", "impl", "--into", "main")).code, 0);
  assert.equal(git(place.repo, "show", "main:a.txt"), "two");
  assert.equal((await place.drover("clean")).out, "removed  impl\n");
});

test("a tree with changes that its merged work does not have is not merged", async (t) => {
  const place = placeOf(t);
  const path = await place.run("impl", "echo new > n; echo two > a.txt; git add a.txt; echo one > a.txt");
  assert.equal((await place.drover("merge", "impl", "--into", "main")).code, 0);
  assert.deepEqual(await place.standings(), { impl: "work" });
  assert.match(
    (await place.drover("clean")).out,
    /^kept +impl \(\S+\): there are changes in it that no commit has: a\.txt\n$/,
  );
  assert.equal(git(path, "show", ":a.txt"), "two");
  assert.equal((await place.drover("clean", "impl", "--force")).out, "removed  impl\n");
});

test("a branch that is not checked out moves too, by a merge commit of the person's own", async (t) => {
  const place = placeOf(t);
  git(place.repo, "checkout", "--quiet", "-b", "next");
  writeFileSync(join(place.repo, "other"), "o\n");
  git(place.repo, "add", "other");
  git(place.repo, "commit", "--quiet", "-m", "other");
  await place.run("impl", "echo x > n");
  git(place.repo, "checkout", "--quiet", "--detach");
  git(place.repo, "reset", "--quiet", "--hard", "main");
  writeFileSync(join(place.repo, "a.txt"), "being edited\n");
  git(place.repo, "branch", "stable", "main");
  git(place.repo, "branch", "-f", "stable", git(place.repo, "commit-tree", "main^{tree}", "-p", "main", "-m", "own"));
  assert.equal((await place.drover("merge", "impl", "--into", "stable")).code, 0);
  assert.equal(git(place.repo, "log", "-1", "--format=%an: %s", "stable"), "A: Merge the work of impl (drover/impl)");
  assert.equal(git(place.repo, "show", "stable:n"), "x");
  assert.equal(readFileSync(join(place.repo, "a.txt"), "utf8"), "being edited\n");
});

const refusals: [name: string, before: (place: Place) => void, args: string[], exit: number, says: RegExp][] = [
  [
    "changes in the checkout",
    ({ repo }) => writeFileSync(join(repo, "a.txt"), "mine\n"),
    ["--into", "main"],
    4,
    /^error: main is checked out in \S+ with changes that are not committed: a\.txt\n/,
  ],
  [
    "a file in the way",
    ({ repo }) => writeFileSync(join(repo, "n"), "mine\n"),
    ["--into", "main"],
    6,
    /git merge --quiet failed: /,
  ],
  [
    "a conflict",
    ({ repo }) => commitTo(repo, "n", "other\n"),
    ["--into", "main"],
    4,
    /^error: drover\/impl cannot be merged into main: conflict in n\n/,
  ],
  ["a branch that is not there", () => {}, ["--into", "mian"], 4, /^error: there is no branch mian/],
  ["a name that is an option", () => {}, ["--into", "--help"], 4, /^error: there is no branch --help/],
  ["a name that is no branch", () => {}, ["--into", "main~0"], 4, /^error: there is no branch main~0/],
  ["its own branch", () => {}, ["--into", "drover/impl"], 4, /^error: drover\/impl is the branch of its work itself/],
  ["no branch at all", () => {}, [], 2, /^error: --into is missing/],
];

function commitTo(repo: string, file: string, text: string): void {
  writeFileSync(join(repo, file), text);
  git(repo, "add", file);
  git(repo, "commit", "--quiet", "-m", "mine");
}

for (const [name, before, args, exit, says] of refusals)
  test(`a merge that cannot be made changes nothing: ${name}`, async (t) => {
    const place = placeOf(t);
    await place.run("impl", "echo x > n");
    before(place);
    const state = (): string[] => [git(place.repo, "rev-parse", "main"), git(place.repo, "status", "--porcelain")];
    const was = state();
    const { code, err } = await place.drover("merge", "impl", ...args);
    assert.match(err, says);
    assert.equal(code, exit);
    assert.deepEqual(state(), was);
    assert.deepEqual(await place.standings(), { impl: "work" });
  });

test("a tree whose task is parked is waiting, and stays", async (t) => {
  const place = placeOf(t);
  assert.equal((await place.start("asks", "exit 76").outcome).outcome, "ask");
  assert.deepEqual(await place.standings(), { asks: "waiting" });
  assert.match((await place.drover("clean", "--force")).out, /kept +asks \(\S+\): its task goes on in it\n/);
  assert.match((await place.drover("merge", "asks", "--into", "main")).err, /asks goes on in \S+; wait for its end/);
  assert.deepEqual(await place.standings(), { asks: "waiting" });
});

test("nothing with work in it goes without --force, nor what runs with it", async (t) => {
  const place = placeOf(t);
  const paths = [
    await place.run("loose", "echo x > n"),
    await place.run("committed", `echo x > n; git add n; ${COMMIT} -m x`),
    await place.run("detached", `git checkout --quiet --detach; ${COMMIT} --allow-empty -m x`),
    await place.run("chained", "echo x > n"),
  ];
  // Another branch of ours is no place of its own: it goes the same way.
  git(place.repo, "branch", "drover/copy", "drover/committed");
  const running = place.start("busy", "say ready; linger");
  await running.said("ready");
  const { code, out } = await place.drover("clean");
  assert.equal(code, 0);
  assert.match(out, /kept +loose \(\S+\): there is work in it: 1 file changed\n/);
  assert.match(out, /kept +committed \(\S+\): there is work in it: 1 commit, 1 file changed\n/);
  assert.match(out, /kept +busy \(\S+\): an attempt runs in it\n/);
  assert.ok(paths.every(existsSync));
  const dry = await place.drover("clean", "--force", "--dry-run");
  assert.match(dry.out, /would go {4}loose\n/);
  assert.match(dry.out, /would stay {2}busy \(\S+\): an attempt runs in it\n/);
  assert.ok(paths.every(existsSync), "nothing went");
  assert.equal((await place.drover("clean", "loose", "--force")).out, "removed  loose\n");
  const { removed, kept } = JSON.parse((await place.drover("clean", "--force", "--json")).out);
  assert.deepEqual([removed.sort(), kept.length, kept[0].name], [["chained", "committed", "detached"], 1, "busy"]);
  assert.ok(!paths.some(existsSync));
  assert.deepEqual(branches(place.repo), ["drover/busy", "drover/copy", "main"]);
  running.abort("enough");
  await running.outcome;
});

test("a repository that a task made in its tree does not go with it, though its place is merged", async (t) => {
  const place = placeOf(t);
  const inner = `git init --quiet inner; cd inner; echo x > n; git add n; ${COMMIT} -m x`;
  const path = await place.run("made", `{ ${inner}; } > /dev/null`);
  const merged = await place.drover("merge", "made", "--into", "main");
  assert.equal(merged.code, 0, merged.err);
  assert.deepEqual(await place.standings(), { made: "work" });
  assert.match(
    (await place.drover("clean")).out,
    /^kept +made .*: there are repositories of their own in it.*: inner\n$/,
  );
  assert.ok(existsSync(join(path, "inner", "n")));
  assert.equal((await place.drover("clean", "made", "--force")).out, "removed  made\n");
});

test("a tree that is gone, or whose repository is, is cleaned up after", async (t) => {
  const place = placeOf(t);
  const path = await place.run("gone", "echo x > n");
  git(place.repo, "worktree", "remove", "--force", path);
  assert.deepEqual(await place.standings(), { gone: "gone" });
  assert.equal((await place.drover("clean")).out, "removed  gone\n");
  assert.deepEqual(branches(place.repo), ["main"]);
  const lost = await place.run("lost", "echo x > n");
  rmSync(join(place.repo, ".git"), { recursive: true });
  assert.match((await place.drover("clean")).out, /^kept +lost \(\S+\): git /);
  assert.equal(existsSync(lost), true);
  assert.equal((await place.drover("clean", "--force")).out, "removed  lost\n");
  assert.equal(existsSync(lost), false);
});

test("a task is named as people know it, and a name of several is refused", async (t) => {
  const place = placeOf(t);
  await place.run("id-1", "echo first > n", { plan: "one", task: "code" });
  await place.run("id-2", "echo second > n", { plan: "two", task: "code" });
  for (const name of ["id-2", "two/code", "two.code", "drover/two/code"])
    assert.match((await place.drover("diff", name)).out, /\+second\n/, name);
  const { code, err } = await place.drover("diff", "code");
  assert.equal(code, 2);
  assert.match(err, /^error: code is several tasks\nhint: +name a tree: one\.code, two\.code\n/);
  const unknown = await place.drover("diff", "id-3");
  assert.deepEqual([unknown.code, unknown.err.split("\n")[0]], [4, "error: no worktree of id-3 is here"]);
});

test("a plan goes on after its work was merged and its trees are cleaned", async (t) => {
  const place = placeOf(t);
  writeFileSync(
    join(place.repo, "p.yml"),
    `defaults: { worktree: true }
tasks:
  code: { run: echo new > n }
  docs: { run: echo text > d }
  check: { run: grep new n, needs: code, worktree: { from: code } }
  both: { run: cat n d, needs: [code, docs], worktree: { merge: [code, docs] } }\n`,
  );
  const run = async (...args: string[]): Promise<[code: number, out: string]> => {
    const terminal = testTerminal({ cwd: place.repo, env: { PATH: process.env.PATH, HOME: place.home } });
    return [await runCommandLine(["run", "p.yml", ...args], terminal, VERBS), terminal.shown()];
  };
  assert.equal((await run("--only", "code,docs"))[0], 0);
  for (const task of ["code", "docs"])
    assert.equal((await place.drover("merge", task, "--into", "main")).code, 0, task);
  assert.match((await place.drover("clean")).out, /removed +p\.code\nremoved +p\.docs\n/);
  assert.deepEqual(branches(place.repo), ["main"]);
  const [code, out] = await run();
  assert.equal(code, 0, out);
});

test("a plan that runs anew takes the trees of the old log along, and a task is that of the new", async (t) => {
  const place = placeOf(t);
  mkdirSync(join(place.repo, "plans"));
  writeFileSync(
    join(place.repo, "plans", "p.yml"),
    "tasks: { code: { run: git rev-parse HEAD > n, worktree: true } }\n",
  );
  const run = async (...args: string[]): Promise<number> => {
    const terminal = testTerminal({
      cwd: join(place.repo, "plans"),
      env: { PATH: process.env.PATH, HOME: place.home },
    });
    return await runCommandLine(["run", "p.yml", ...args], terminal, VERBS);
  };
  git(place.repo, "add", "plans");
  git(place.repo, "commit", "--quiet", "-m", "plan");
  const first = git(place.repo, "rev-parse", "HEAD");
  assert.equal(await run(), 0);
  commitTo(place.repo, "later", "x\n");
  assert.equal(await run("--fresh"), 0);
  assert.deepEqual(await place.standings(), { "p.code": "work", "p.code-2": "work" });
  const { worktrees } = JSON.parse((await place.drover("--json", "--data", "plans/.drover")).out);
  const old = worktrees.find(({ branch }: { branch: string }) => branch === "drover/p/code");
  assert.match(old.path, /\/runs\/p\.\d{8}T\d{6}Z\/worktrees\/p\.code$/);
  assert.equal(old.state, "work");
  // The task has the same id in both; its name is that of the newest run.
  const shown = JSON.parse((await place.drover("diff", "code", "--json")).out);
  assert.deepEqual([shown.branch, shown.taskId], ["drover/p/code-2", old.taskId]);
  assert.equal((await place.drover("merge", "drover/p/code", "--into", "main")).code, 0);
  assert.equal(git(place.repo, "show", "main:plans/n"), first);
});
