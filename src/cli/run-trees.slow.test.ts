/**
 * A plan at its limit of worktrees waits, says for what, and goes on when a tree goes.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { planPlace } from "../../test/cli/plan-place.ts";

test("at the limit of worktrees a task stays queued until a tree goes, and has one attempt", {
  timeout: 60_000,
}, async () => {
  using place = planPlace(`workers: { slots: 2, maxWorktrees: 1 }
tasks:
  one: { run: echo new > one, worktree: true }
  two: { run: echo new > two, worktree: true, needs: one }
  three: { run: echo new > /dev/null, worktree: true, needs: two }`);
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      cwd: place.directory,
      encoding: "utf8",
    });
  const removeTree = (task: string): void => {
    const [path = ""] = git("worktree", "list", "--porcelain").match(new RegExp(`/\\S*/worktrees/${task}\\S*`)) ?? [];
    git("worktree", "remove", "--force", path);
  };
  git("init", "-q");
  place.write(".gitignore", ".drover\n");
  git("add", ".gitignore");
  git("commit", "-q", "-m", "first");
  const { terminal, ended } = place.start();
  const seen = (text: string): Promise<unknown> => Promise.race([terminal.saw(text), ended]);
  await seen("no task is taken: 1 worktree exists, and at most 1 may: ");
  assert.doesNotMatch(terminal.shown(), /start +two/);
  removeTree("one");
  await seen("there is room for a worktree again");
  await seen("done      two");
  removeTree("two");
  const { code, out } = await ended;
  assert.equal(code, 0, out);
  assert.doesNotMatch(out, /attempt|again {2,}/);
});
