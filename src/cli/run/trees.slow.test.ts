/**
 * A plan at its limit of worktrees ends, says what is in the way, and goes on when it runs again. Only tasks with a
 * worktree are held up.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { planDirectory } from "../../../test/kits/cli/plan-directory.ts";

type Place = ReturnType<typeof planDirectory>;

/** In a repository with a commit. */
function repositoryOf(place: Place): (...words: string[]) => string {
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      cwd: place.directory,
      encoding: "utf8",
    });
  git("init", "-q");
  place.write(".gitignore", ".drover\n");
  git("add", ".gitignore");
  git("commit", "-q", "-m", "first");
  return git;
}

test("at the limit of worktrees a run ends with what is in the way, and goes on once a tree is gone", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`workers: { slots: 2, maxWorktrees: 1 }
tasks:
  one: { run: echo new > one, worktree: true }
  two: { run: echo new > two, worktree: true, needs: one }
  three: { run: echo new > /dev/null, worktree: true, needs: two }`);
  const git = repositoryOf(place);
  const removeTree = (task: string): void => {
    const [path = ""] = git("worktree", "list", "--porcelain").match(new RegExp(`/\\S*/worktrees/plan.${task}`)) ?? [];
    git("worktree", "remove", "--force", path);
  };
  const ends = async (task: string): Promise<void> => {
    const { code, out } = await place.start().ended;
    assert.equal(code, 1, out);
    assert.match(out, /Nothing more can start by itself\. /);
    assert.ok(out.includes(` ${task}: 1 worktree exists, and at most 1 may: `), out);
    assert.doesNotMatch(out, new RegExp(`start +${task}|\\(attempt|again {2,}`));
  };
  await ends("two");
  // With the tree still there nothing is different.
  await ends("two");
  removeTree("one");
  await ends("three");
  removeTree("two");
  const { code, out } = await place.start().ended;
  assert.equal(code, 0, out);
});

test("the diff of a task that merges has what it merged, and that of one that goes on only its own", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`tasks:
  a: { run: echo of-a > a, worktree: true }
  b: { run: echo of-b > b, worktree: { from: a }, needs: a }
  both: { run: echo of-both > both, worktree: { merge: [a, b] }, needs: [a, b] }`);
  repositoryOf(place);
  assert.equal((await place.run()).code, 0);
  const linesOf = async (task: string): Promise<string[]> =>
    (await place.drover(["worktrees", "diff", `plan/${task}`])).out.match(/^\+of-\w+$/gm) ?? [];
  assert.deepEqual(await linesOf("b"), ["+of-b"]);
  assert.deepEqual(await linesOf("both"), ["+of-a", "+of-b", "+of-both"]);
});

test("at the limit of worktrees a task without one runs, and the run ends when no other wants one", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`workers: { slots: 2, maxWorktrees: 2 }
tasks:
  one: { run: echo new > one, worktree: true }
  two: { run: echo new > two, worktree: true }
  summary: { run: git worktree list, needs: [one, two] }`);
  repositoryOf(place);
  const { code, out } = await place.start().ended;
  assert.equal(code, 0, out);
  assert.doesNotMatch(out, /no task with a worktree/);
});

test("a task of the plan itself may remove the tree that is in the way of the next", { timeout: 60_000 }, async () => {
  using place = planDirectory(`workers: { slots: 1, maxWorktrees: 1 }
tasks:
  build: { run: echo new > one, worktree: true }
  tidy: { run: "git worktree remove --force .drover/runs/plan/worktrees/plan.build", needs: build }
  second: { run: echo new > two, worktree: true, needs: tidy }`);
  repositoryOf(place);
  const { code, out } = await place.start().ended;
  assert.equal(code, 0, out);
});

test("a preview warns of more tasks with a worktree than there may be trees, and counts those to run", async () => {
  using place = planDirectory(`workers: { slots: 1, maxWorktrees: 1 }
tasks:
  one: { run: "true", worktree: true }
  two: { run: "false", worktree: true, needs: one }
  plain: { run: "true" }`);
  repositoryOf(place);
  const warned =
    /\nnote: 2 tasks have a worktree, and at most 1 are kept \(workers\.maxWorktrees\): once so many have work/;
  assert.match((await place.run(["--dry-run"])).out, warned);
  assert.equal(JSON.parse((await place.run(["--dry-run", "--json"])).out).warnings.length, 1);
  await place.run();
  assert.doesNotMatch((await place.run(["--dry-run"])).out, /note:/);
});
