/**
 * The worktrees that attempts have left on this machine, for the person who looks through them.
 *
 * They are known by the notes beside them, wherever the data directories are; no server is asked. A tree in which an
 * attempt runs is never touched, nor one of another machine. Work that is on a branch of the person's own, or of a
 * remote, is not lost with its tree; all other work goes only by force.
 */
import { existsSync } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isDirectory } from "../../std/index.ts";
import { stateOf } from "../process/runs.ts";
import { type ProcessTable, systemProcessTable } from "../process/table.ts";
import { checkoutOf, merge, statusOf, tipOf } from "./commits.ts";
import { fromZeros, git } from "./git.ts";
import { withRepositoryLock } from "./lock.ts";
import { refused } from "./refusal.ts";
import { removeTree } from "./remove.ts";
import { named, workIn } from "./start.ts";
import { isUnderWay, notedAt, readNotes, stateOfTree, type TreeNote, type TreeState, writeNote } from "./state.ts";
import { BRANCH_PREFIX } from "./worktree.ts";

/**
 * An attempt runs in it; it waits for its task to go on; it is of another machine; there is work in it; its work is on
 * another branch too; there is no work in it; its directory is gone.
 */
type Standing = "running" | "waiting" | "elsewhere" | "work" | "merged" | "empty" | "gone";
export type LeftTree = {
  readonly root: string;
  readonly note: TreeNote;
  /** When its note was last written: a run that follows another (--fresh) has the later ones. */
  readonly notedAt: number;
  readonly standing: Standing;
  /** Null where there is nothing to look at. */
  readonly state: TreeState | null;
  /** Why it could not be looked at, or not as a whole; then it counts as work. */
  readonly problem?: string;
};

/** Every tree whose note is in one of these directories, or beside a worktree of the repository around `cwd`. */
export async function findTrees(data: readonly string[], cwd: string | null): Promise<LeftTree[]> {
  const table = systemProcessTable();
  const found: LeftTree[] = [];
  for (const root of await rootsOf(data, cwd))
    for (const note of await readNotes(root)) found.push(await lookAt(root, note, table));
  return found.toSorted(({ note: one }, { note: other }) => (one.name < other.name ? -1 : 1));
}

/** A data directory, or one that holds those of runs and of a worker. */
async function rootsOf(data: readonly string[], cwd: string | null): Promise<string[]> {
  const inData = await Promise.all(
    data.map(async (directory) => {
      const runs = join(directory, "runs");
      const names = (await readdir(runs).catch(() => [])).toSorted();
      return [directory, join(directory, "worker"), ...names.map((name) => join(runs, name))];
    }),
  );
  const roots = [
    ...inData.flat().map((directory) => join(directory, "worktrees")),
    ...(cwd === null ? [] : await rootsAround(cwd)),
  ];
  const real = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
  return [...new Set(real.filter((root) => root !== null))];
}

async function rootsAround(cwd: string): Promise<string[]> {
  const listed = await git(cwd, ["worktree", "list", "--porcelain"]).catch(() => "");
  const paths = [...listed.matchAll(/^worktree (.*)$/gm)].map(([, path = ""]) => path);
  return paths.filter((path) => existsSync(`${path}.json`)).map((path) => dirname(path));
}

async function lookAt(root: string, note: TreeNote, table: ProcessTable): Promise<LeftTree> {
  const owner = stateOf(note.owner, table);
  const known = { root, note, notedAt: await notedAt(root, note) };
  const tree = { ...known, state: null };
  if (owner === "elsewhere") return { ...tree, standing: "elsewhere" };
  const used = note.state === "kept" || owner !== "alive" ? null : note.state === "going-on" ? "waiting" : "running";
  if (!existsSync(note.path)) return { ...tree, standing: used ?? "gone" };
  if (note.state === "making") return { ...tree, standing: used ?? "empty" };
  try {
    const state = await stateOfTree(note);
    if (used !== null) return { ...known, state, standing: used };
    if (state.isClean) return { ...known, state, standing: "empty" };
    return { ...known, state, standing: (await isMerged(note)) ? "merged" : "work" };
  } catch (error) {
    return { ...tree, standing: used ?? "work", problem: (error as Error).message };
  }
}

/** Whether all of it is on branches that stay: of its tree, and of its own branch. */
async function isMerged(note: TreeNote): Promise<boolean> {
  const { path, gitDirectory, branch, taskId } = note;
  if (await isUnderWay(path)) return false;
  const all = await workIn(path, taskId);
  await refuseInnerRepositories(path, all);
  await refuseMissing(path, all);
  const work = [all, await tipOf(gitDirectory, branch)];
  for (const commit of work) if (commit !== null && !(await isOnOtherBranch(gitDirectory, commit))) return false;
  return true;
}

/** A commit has of a repository inside the tree its place alone: the commits and files of that go with the tree. */
async function refuseInnerRepositories(path: string, commit: string): Promise<void> {
  const entries = fromZeros(await git(path, ["ls-tree", "-r", "-z", "--full-tree", commit]));
  const places = entries
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
  const inner = places.filter((place) => existsSync(join(path, place, ".git")));
  if (inner.length > 0)
    throw refused(`there are repositories of their own in it, which no branch has: ${named(inner)}`);
}

/** A second look at the files before they may go, such as one that is staged and was changed back. */
async function refuseMissing(path: string, commit: string): Promise<void> {
  const inCommit = new Set(fromZeros(await git(path, ["diff", "--name-only", "-z", "--no-renames", "HEAD", commit])));
  const missing = (await statusOf(path)).map((line) => line.slice(3)).filter((file) => !inCommit.has(file));
  if (missing.length > 0) throw refused(`there are changes in it that no commit has: ${named(missing)}`);
}

async function isOnOtherBranch(gitDirectory: string, commit: string): Promise<boolean> {
  const words = ["for-each-ref", "--format=%(refname)", `--contains=${commit}`, "refs/heads", "refs/remotes"];
  const refs = (await git(gitDirectory, words)).split("\n").filter((ref) => ref !== "");
  return refs.some((ref) => !ref.startsWith(`refs/heads/${BRANCH_PREFIX}`));
}

/** Removes a tree, with work in it only by force; `onlyLooks` leaves it there. Null, or why it stays. */
export async function cleanTree(
  tree: LeftTree,
  { force, onlyLooks = false }: { readonly force: boolean; readonly onlyLooks?: boolean },
): Promise<string | null> {
  const { root, note } = tree;
  // Between the look and now an attempt may have begun in it.
  const now = (await readNotes(root)).find(({ name }) => name === note.name);
  const { standing, state, problem } = now === undefined ? tree : await lookAt(root, now, systemProcessTable());
  if (now === undefined) return null;
  if (standing === "running") return "an attempt runs in it";
  if (standing === "waiting") return "its task goes on in it";
  if (standing === "elsewhere") return `it is of the machine ${now.owner.host}`;
  if (standing === "work" && !force) return problem ?? workInWords(state);
  if (onlyLooks) return null;
  try {
    const isKept = standing === "empty" || standing === "gone";
    await removeTree(root, now, { force: !isKept, dropsBranch: !isKept });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function workInWords(state: TreeState | null): string {
  const { commits = 0, changedCount = 0 } = state ?? {};
  const files = `${changedCount} file${changedCount === 1 ? "" : "s"} changed`;
  return `there is work in it: ${commits === 0 ? "" : `${commits} commit${commits === 1 ? "" : "s"}, `}${files}`;
}

/** The commit with all that a tree holds, or that is left of it. */
async function workOf({ path, taskId, gitDirectory, branch }: TreeNote): Promise<string> {
  if (existsSync(path)) return await workIn(path, taskId);
  const tip = await tipOf(gitDirectory, branch);
  if (tip === null) throw refused(`${path} and its branch ${branch} are gone`);
  return tip;
}

/** What a task has changed since it began, committed or not, and what it has merged, as a patch. */
export async function patchOf(note: TreeNote): Promise<string> {
  const { base, onto = base } = note;
  const words = ["diff", "--no-color", "--no-ext-diff", "--binary", onto, await workOf(note)];
  return await git(note.gitDirectory, words);
}

/** Merges the work of a tree into a branch. Answers the commit the branch is at now, and whether that is new. */
export async function mergeInto(
  { note, standing }: LeftTree,
  branch: string,
): Promise<{ readonly commit: string; readonly isNew: boolean; readonly path: string | null }> {
  const { gitDirectory, taskId } = note;
  if (standing === "running") throw refused(`an attempt of ${taskId} runs in ${note.path}; wait for its end`);
  if (standing === "waiting") throw refused(`${taskId} goes on in ${note.path}; wait for its end`);
  if (standing === "elsewhere") throw refused(`${note.path} is of the machine ${note.owner.host}`);
  if (branch === note.branch) throw refused(`${branch} is the branch of its work itself`);
  return await withRepositoryLock(gitDirectory, async () => {
    const target = await tipOf(gitDirectory, branch);
    if (target === null) throw refused(`there is no branch ${branch} in the repository of ${note.path}`);
    const checkout = await checkoutOf(gitDirectory, branch);
    const path = checkout !== null && (await isDirectory(checkout)) ? checkout : null;
    if (path !== null) await refuseChanges(path, branch);
    const message = `Merge the work of ${note.task ?? taskId} (${note.branch})`;
    const merged = await merge(gitDirectory, target, await workOf(note), { message, isOwn: true });
    if (merged.kind === "unrelated") throw refused(`${note.branch} and ${branch} have no commit in common`);
    if (merged.kind === "conflict")
      throw refused(`${note.branch} cannot be merged into ${branch}: conflict in ${named(merged.files)}`);
    const { commit } = merged;
    if (commit === target) return { commit, isNew: false, path };
    // Git itself sees to it that no file in the checkout is overwritten.
    if (path !== null) await git(path, ["merge", "--quiet", "--ff-only", "--no-verify", commit]);
    else await git(gitDirectory, ["update-ref", "-m", message, `refs/heads/${branch}`, commit, target]);
    return { commit, isNew: true, path };
  });
}

/** A checkout with changes in it is not merged into: they could not be told from the merge. */
async function refuseChanges(path: string, branch: string): Promise<void> {
  const files = (await statusOf(path, "no")).map((line) => line.slice(3));
  if (files.length > 0)
    throw refused(`${branch} is checked out in ${path} with changes that are not committed: ${named(files)}`);
  if (await isUnderWay(path)) throw refused(`${branch} is checked out in ${path}, and a merge or rebase is under way`);
}

/** The notes of trees whose data directory was renamed, and git itself, are told where they are now. */
export async function relocateTrees(root: string): Promise<void> {
  for (const note of await readNotes(root)) {
    const path = join(root, note.name);
    if (path === note.path || !(await isDirectory(path))) continue;
    await withRepositoryLock(note.gitDirectory, () => git(note.gitDirectory, ["worktree", "repair", path]));
    await writeNote(root, { ...note, path });
  }
}
