/**
 * Work that flows through a plan: a task begins at the branch that another left, or where several are merged, and
 * reads the files that others wrote.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { type PlanDirectory, planDirectory } from "../../../test/kits/cli/plan-directory.ts";

/** In a repository with a commit. */
function repositoryOf(place: PlanDirectory): (...words: string[]) => string {
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      cwd: place.directory,
      encoding: "utf8",
    });
  git("init", "-q", "--initial-branch=main");
  place.write(".gitignore", ".drover\nran\n");
  place.write("text", "first\n");
  git("add", ".gitignore", "text");
  git("commit", "-q", "-m", "first");
  return git;
}

test("each task of a chain goes on from what the one before left, committed or not", { timeout: 60_000 }, async () => {
  using place = planDirectory(`name: release
defaults: { passEnv: OUT, worktree: true }
tasks:
  code: echo code >> text
  test: { run: "cat text > $OUT/tested; echo tested >> text", needs: code, worktree: { from: code } }
  docs: echo docs > docs
  whole: { run: "cat text docs > $OUT/whole", needs: [test, docs], worktree: { merge: [test, docs] } }
  say: { run: "echo \${{ needs.test.branch }} > $OUT/said", needs: test, worktree: false }`);
  const git = repositoryOf(place);
  const env = { PATH: process.env.PATH, OUT: place.directory };
  const { code, out } = await place.run([], { env });
  assert.equal(code, 0, out);
  assert.equal(place.read("tested"), "first\ncode\n");
  assert.equal(place.read("whole"), "first\ncode\ntested\ndocs\n");
  assert.equal(place.read("said"), "drover/release/test\n");
  const branches = git("branch", "--format=%(refname:short)").trim().split("\n");
  const left = ["code", "docs", "test", "whole"].map((task) => `drover/release/${task}`);
  assert.deepEqual(branches, [...left, "main"], "what was merged is kept too");
  assert.equal(place.read("text"), "first\n");
});

test("a second attempt has a branch with its number, and what needs it begins there", { timeout: 60_000 }, async () => {
  using place = planDirectory(`scheduler: { retry: { base: 1ms } }
tasks:
  code: { run: 'echo $DROVER_ATTEMPT > made; [ $DROVER_ATTEMPT = 2 ]', worktree: true, attempts: 2 }
  test: { run: 'cat made > $OUT/seen', passEnv: OUT, needs: code, worktree: { from: code } }`);
  const git = repositoryOf(place);
  const { code, out } = await place.run([], { env: { PATH: process.env.PATH, OUT: place.directory } });
  assert.equal(code, 0, out);
  assert.equal(place.read("seen"), "2\n");
  assert.match(git("branch", "--list", "drover/*"), /drover\/plan\/code\n.*drover\/plan\/code-2\n/);
});

test("a merge conflict fails the task at once and names the files; the next run goes on when it is mended", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`tasks:
  a: { run: echo a > text, worktree: true }
  b: { run: echo b > text, worktree: true }
  both: { run: cat text, needs: [a, b], worktree: { merge: [a, b] }, attempts: 3 }`);
  const git = repositoryOf(place);
  const { code, out } = await place.run();
  assert.equal(code, 1);
  const told = "b (drover/plan/b) cannot be merged into its base with a: conflict in text";
  assert.ok(out.includes(`both failed: ${told}`), out);
  assert.doesNotMatch(git("worktree", "list"), /plan\.both/);
  place.write(".drover/runs/plan/worktrees/plan.b/text", "first\n");
  place.write(".drover/runs/plan/worktrees/plan.b/other", "b\n");
  const again = await place.run();
  assert.equal(again.code, 0, again.out);
});

test("a plan's outputs are laid into the inputs of those that need them, and named by expressions", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`tasks:
  plan:
    run: mkdir -p out; echo plan > out/spec.md; echo more > out/more.md
    outputs: ["out/**"]
  code:
    run: 'cat $DROVER_INPUTS_DIR/plan/out/spec.md $DROVER_INPUTS_DIR/plan/\${{ needs.plan.files[0].path }} > seen'
    needs: plan
    outputs: [seen]
  never: { run: "echo x > ../never", needs: code, outputs: ["../never"] }`);
  const refused = await place.run();
  assert.equal(refused.code, 2);
  assert.match(refused.err, /plan\.yml:\d+.*outputs/s);
  place.write("plan.yml", place.read("plan.yml").replace(/ {2}never: .*/, ""));
  const { code, out } = await place.run();
  assert.equal(code, 0, out);
  assert.equal(place.read("seen"), "plan\nmore\n");
});

for (const [what, made] of [
  ["a symbolic link", "ln -s /etc/passwd out"],
  ["a link to a directory", "mkdir d && echo x > d/out && ln -s d l && ln -s l/out out"],
  ["a pipe", "mkfifo out"],
  ["a directory", "mkdir out"],
  ["too large", "truncate -s 65M out"],
] as const)
  test(`an output of a plan that is ${what} fails its task at once, by name`, { timeout: 60_000 }, async () => {
    using place = planDirectory(`tasks:
  bad: { run: '${made}', outputs: [out], attempts: 3 }`);
    const { code, out } = await place.run();
    assert.equal(code, 1, out);
    assert.match(out, /bad failed: .*\bout\b/);
    assert.doesNotMatch(out, /root:/);
  });
