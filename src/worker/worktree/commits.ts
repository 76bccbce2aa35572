/**
 * Commits made without a checkout: what a tree holds as one commit, and two commits merged.
 *
 * Neither touches a tree, an index or a branch: nothing that somebody looks at changes under them, and where a merge is
 * in conflict there is nothing to clean up. Who made such a commit and when follows from its parents. So the same work
 * is the same commit however often it is asked for, and two tasks that begin from it have it in common.
 */
import { copyFile, mkdtemp, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromZeros, GitError, git } from "./git.ts";

/** Older than any file: git then compares the content of every file, whatever its size and time. */
const TRUSTS_NOTHING = new Date(1000);
const NAME = "Drover";
const ADDRESS = "drover@localhost";

/** Longer than any name git has for anything: one that a program made up. */
const NAME_MAX = 1024;
const isName = (text: string): boolean => text.length <= NAME_MAX && !text.includes("\0");

/** The commit that a name stands for; null if it is none here. */
export async function commitNamed(directory: string, name: string): Promise<string | null> {
  if (!isName(name)) return null;
  const words = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  const commit = (await git(directory, words).catch(unlessUnknown)).trim();
  // Of ^main git says what is not to be there.
  return /^[0-9a-f]+$/.test(commit) ? commit : null;
}

/** With --quiet an unknown name is exit code 1, and a malformed one 128. */
function unlessUnknown(error: unknown): string {
  if (error instanceof GitError && (error.exitCode === 1 || error.exitCode === 128)) return "";
  throw error;
}

/** The tip of the branch of exactly this name; null if there is none. */
export async function tipOf(directory: string, branch: string): Promise<string | null> {
  if (!isName(branch)) return null;
  const ref = `refs/heads/${branch}`;
  const listed = await git(directory, ["for-each-ref", "--format=%(objectname) %(refname)", ref]);
  const line = listed.split("\n").find((one) => one.slice(one.indexOf(" ") + 1) === ref);
  return line?.split(" ")[0] ?? null;
}

/** Where a branch is checked out; null if nowhere. */
export async function checkoutOf(directory: string, branch: string): Promise<string | null> {
  const listed = await git(directory, ["worktree", "list", "--porcelain"]);
  const found = listed.split("\n\n").find((entry) => entry.split("\n").includes(`branch refs/heads/${branch}`));
  return found?.split("\n")[0]?.replace(/^worktree /, "") ?? null;
}

/** What is not committed in a tree, a line for each file: two letters, a space and its path. */
export const statusOf = async (tree: string, untracked: "all" | "no" = "all"): Promise<string[]> =>
  fromZeros(await git(tree, ["status", "--porcelain=v1", "-z", `--untracked-files=${untracked}`, "--no-renames"]));

/** Files in which a merge or the like has left conflicts. */
export const unmergedIn = async (tree: string): Promise<string[]> =>
  fromZeros(await git(tree, ["diff", "--name-only", "-z", "--diff-filter=U"]));

/** All that is in a tree but what git ignores, as a commit behind its HEAD; HEAD itself if that is all. */
export async function commitOfTree(tree: string, message: string): Promise<string> {
  const head = (await git(tree, ["rev-parse", "--verify", "HEAD"])).trim();
  if ((await statusOf(tree)).length === 0) return head;
  const directory = await mkdtemp(join(tmpdir(), "drover-index-"));
  try {
    const index = join(directory, "index");
    const own = (await git(tree, ["rev-parse", "--path-format=absolute", "--git-path", "index"])).trimEnd();
    await copyFile(own, index);
    // A file changed within the second of its checkout shows only by an index that is not newer, and the copy is new.
    await utimes(index, TRUSTS_NOTHING, TRUSTS_NOTHING);
    const env = { GIT_INDEX_FILE: index };
    await git(tree, ["-c", "advice.addEmbeddedRepo=false", "add", "--all"], { env });
    const made = (await git(tree, ["write-tree"], { env })).trim();
    return await commitOf(tree, made, [head], message);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

type Merged =
  | { readonly kind: "merged"; readonly commit: string }
  | { readonly kind: "conflict"; readonly files: readonly string[] }
  | { readonly kind: "unrelated" };

/** One commit with another merged into it; as it is where it has the other already, or is behind it. */
export async function merge(
  directory: string,
  into: string,
  other: string,
  { message, isOwn = false }: { readonly message: string; readonly isOwn?: boolean },
): Promise<Merged> {
  const common = (await git(directory, ["merge-base", into, other], { quietExit: 1 })).trim();
  if (common === "") return { kind: "unrelated" };
  if (common === other) return { kind: "merged", commit: into };
  if (common === into) return { kind: "merged", commit: other };
  const [tree = "", ...files] = fromZeros(await mergedTree(directory, into, other));
  if (files.length > 0) return { kind: "conflict", files: [...new Set(files)] };
  return { kind: "merged", commit: await commitOf(directory, tree, [into, other], message, isOwn) };
}

/** Git says this way of merging is unknown to it. */
const USAGE_EXIT = 129;

/** The merged tree, and the files in conflict. */
async function mergedTree(directory: string, into: string, other: string): Promise<string> {
  const words = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", into, other];
  try {
    return await git(directory, words, { answerExit: 1 });
  } catch (error) {
    if (!(error instanceof GitError) || error.exitCode !== USAGE_EXIT) throw error;
    throw new Error("this git cannot merge without a checkout; version 2.38 or newer is needed");
  }
}

/** With `isOwn` it is the commit of the person whose settings git finds, made now. */
async function commitOf(
  directory: string,
  tree: string,
  parents: readonly string[],
  message: string,
  isOwn: boolean = false,
): Promise<string> {
  const words = ["commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]), "-m", message];
  const env = isOwn ? {} : await signedBy(directory, parents);
  return (await git(directory, words, { env })).trim();
}

async function signedBy(directory: string, parents: readonly string[]): Promise<Record<string, string>> {
  const dates = (await git(directory, ["show", "--no-patch", "--format=%ct", ...parents])).trim().split("\n");
  const date = `@${Math.max(...dates.map(Number))} +0000`;
  return {
    GIT_AUTHOR_NAME: NAME,
    GIT_AUTHOR_EMAIL: ADDRESS,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: NAME,
    GIT_COMMITTER_EMAIL: ADDRESS,
    GIT_COMMITTER_DATE: date,
  };
}
