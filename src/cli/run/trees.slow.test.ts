/**
 * A plan at its limit of worktrees waits, says for what, and goes on when a tree goes. Only tasks with one wait.
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

test("at the limit of worktrees a task stays queued until a tree goes, and has one attempt", {
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
  const { terminal, ended } = place.start();
  const seen = (text: string): Promise<unknown> => Promise.race([terminal.saw(text), ended]);
  await seen("no task with a worktree is taken: 1 worktree exists, and at most 1 may: ");
  assert.doesNotMatch(terminal.shown(), /start +two/);
  removeTree("one");
  await seen("there is room for a worktree again");
  await seen("done      two");
  removeTree("two");
  const { code, out } = await ended;
  assert.equal(code, 0, out);
  assert.doesNotMatch(out, /attempt|again {2,}/);
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
