/**
 * What is known of a worktree: the note beside it, which says whose it is and what it began from, and what has become
 * of it since.
 *
 * There is work in it that is nowhere else if something is modified, added or untracked, if there are commits the base
 * does not have (on its branch or wherever its HEAD is now), or if a merge or rebase is under way. What it merged at
 * its beginning is work too once its task is done: no other branch has those commits. Such a tree is never removed.
 * Files that git ignores do not count: build results and copied settings are in every tree.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Owner, readOwner, writeJson } from "../process/runs.ts";
import { statusOf, tipOf } from "./commits.ts";
import { fromZeros, git } from "./git.ts";

export type TreeNote = {
  readonly name: string;
  readonly path: string;
  readonly branch: string;
  /** The commit it began from. */
  readonly base: string;
  /** Where works were merged into that, the commit they were merged onto. */
  readonly onto?: string;
  /** The git directory all worktrees of the repository share. */
  readonly gitDirectory: string;
  readonly taskId: string;
  /** What people call the task, if it is of a plan. */
  readonly plan?: string;
  readonly task?: string;
  readonly attempt: number;
  readonly runId: string;
  readonly owner: Owner;
  /**
   * No attempt has been in it yet; an attempt runs in it; its attempt is over and left work; or its task goes on in it.
   */
  readonly state: "making" | "in-use" | "kept" | "going-on";
};

const TEXTS = ["name", "path", "branch", "base", "gitDirectory", "taskId", "runId"] as const;

export const writeNote = (root: string, note: TreeNote): Promise<void> => writeJson(pathOf(root, note.name), note);
export const dropNote = (root: string, note: TreeNote): Promise<void> => rm(pathOf(root, note.name), { force: true });
export const notedAt = async (root: string, { name }: TreeNote): Promise<number> =>
  (await stat(pathOf(root, name)).catch(() => null))?.mtimeMs ?? 0;

export async function readNotes(root: string): Promise<TreeNote[]> {
  const names = (await readdir(root).catch(() => [])).filter((name) => name.endsWith(".json"));
  const notes = await Promise.all(names.map((name) => readNote(join(root, name))));
  return notes.filter((note) => note !== null);
}

/** Whether a worker has made the tree at this path, whichever one: its note lies beside it. */
export const isOwnTree = async (path: string): Promise<boolean> => (await readNote(`${path}.json`)) !== null;

const pathOf = (root: string, name: string): string => join(root, `${name}.json`);

async function readNote(path: string): Promise<TreeNote | null> {
  try {
    const value = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    const owner = readOwner(value.owner);
    const isWhole = TEXTS.every((key) => typeof value[key] === "string") && owner !== null;
    return isWhole && ["making", "in-use", "kept", "going-on"].includes(String(value.state))
      ? (value as TreeNote)
      : null;
  } catch {
    // Not a note of ours, or gone meanwhile.
    return null;
  }
}

/** What it left: the branch its work is on, which its child may have chosen itself, and the tip of that. */
export async function branchOfTree({ path, branch, base }: TreeNote): Promise<{ branch: string; commit: string }> {
  const [current, own, head] = await Promise.all([
    git(path, ["symbolic-ref", "--quiet", "HEAD"], { quietExit: 1 }),
    tipOf(path, branch),
    git(path, ["rev-parse", "--verify", "HEAD"]),
  ]);
  const other = current.trim().replace(/^refs\/heads\//, "");
  const isOther = other !== "" && other !== branch && (own === null || own === base);
  return isOther || own === null ? { branch: isOther ? other : branch, commit: head.trim() } : { branch, commit: own };
}

export type TreeState = {
  readonly isClean: boolean;
  readonly commits: number;
  /** Files that are modified, added or removed since the last commit. */
  readonly uncommitted: number;
  /** Changed against the base, committed or not; the first ones by name. */
  readonly changedFiles: readonly string[];
  readonly changedCount: number;
};

const CHANGED_LISTED_MAX = 500;
const UNDER_WAY = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];

/** The commit before its work. What it merged is no work until it is kept: another attempt merges it again. */
export const beforeWork = ({ base, onto = base, state }: TreeNote): string => (state === "kept" ? onto : base);

export async function stateOfTree(note: TreeNote): Promise<TreeState> {
  const { path, base } = note;
  const [status, tracked, commits, isBusy] = await Promise.all([
    statusOf(path),
    git(path, ["diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", base]).then(fromZeros),
    countCommits(note),
    isUnderWay(path),
  ]);
  const untracked = status.filter((line) => line.startsWith("?? ")).map((line) => line.slice(3));
  const changed = [...new Set([...tracked, ...untracked])].sort();
  return {
    isClean: status.length === 0 && commits === 0 && !isBusy,
    commits,
    uncommitted: status.length,
    changedFiles: changed.slice(0, CHANGED_LISTED_MAX),
    changedCount: changed.length,
  };
}

/** Whether a merge, a rebase or the like has not been ended. */
export async function isUnderWay(path: string): Promise<boolean> {
  const directory = (await git(path, ["rev-parse", "--absolute-git-dir"])).trimEnd();
  return UNDER_WAY.some((name) => existsSync(join(directory, name)));
}

/** Its merges and its own, wherever HEAD is now. The child may have deleted or renamed the branch. */
async function countCommits(note: TreeNote): Promise<number> {
  const { path, base, branch } = note;
  const ref = `refs/heads/${branch}`;
  const isThere = (await git(path, ["for-each-ref", "--format=%(refname)", ref])).trim() === ref;
  const count = async (words: readonly string[]): Promise<number> =>
    Number(await git(path, ["rev-list", "--count", ...words]));
  const own = await count(["HEAD", ...(isThere ? [ref] : []), `^${base}`]);
  return own + (await count(["--first-parent", base, `^${beforeWork(note)}`]));
}
