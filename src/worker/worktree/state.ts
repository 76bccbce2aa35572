/**
 * What has become of a worktree: which files changed, and whether there is work in it that is nowhere else.
 *
 * There is, if something is modified, added or untracked, if there are commits the base does not have (on its branch or
 * wherever its HEAD is now), or if a merge or rebase is under way. Such a tree is never removed. Files that git
 * ignores do not count: build results and copied settings are in every tree.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fromZeros, git } from "./git.ts";
import type { TreeNote } from "./note.ts";

export type TreeState = {
  readonly isClean: boolean;
  readonly commits: number;
  /** Changed against the base, committed or not; the first ones by name. */
  readonly changedFiles: readonly string[];
  readonly changedCount: number;
};

const CHANGED_LISTED_MAX = 500;
const UNDER_WAY = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];

export async function stateOfTree({ path, base, branch }: TreeNote): Promise<TreeState> {
  const [status, tracked, commits, directory] = await Promise.all([
    git(path, ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]).then(fromZeros),
    git(path, ["diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", base]).then(fromZeros),
    countCommits(path, base, branch),
    git(path, ["rev-parse", "--absolute-git-dir"]),
  ]);
  const untracked = status.filter((line) => line.startsWith("?? ")).map((line) => line.slice(3));
  const changed = [...new Set([...tracked, ...untracked])].sort();
  const isUnderWay = UNDER_WAY.some((name) => existsSync(join(directory.trimEnd(), name)));
  return {
    isClean: status.length === 0 && commits === 0 && !isUnderWay,
    commits,
    changedFiles: changed.slice(0, CHANGED_LISTED_MAX),
    changedCount: changed.length,
  };
}

/** Those that the base does not have, wherever HEAD is now. The child may have deleted or renamed the branch. */
async function countCommits(path: string, base: string, branch: string): Promise<number> {
  const ref = `refs/heads/${branch}`;
  const isThere = (await git(path, ["for-each-ref", "--format=%(refname)", ref])).trim() === ref;
  return Number(await git(path, ["rev-list", "--count", "HEAD", ...(isThere ? [ref] : []), `^${base}`]));
}
