/**
 * Where a worktree begins: at a base, at the work that a need has left, or at a base with several such works merged.
 *
 * The work of a task is its branch, and with it what its tree holds uncommitted: agents edit more than they commit. All
 * that is known of it came with a result, so it may be of another machine, or made up. Only a branch that this
 * repository has counts, and only if the commit the result names is here too: names are used again, and a branch of the
 * same name may be of an earlier run. Work that is not committed counts only in a tree that a worker made: a person's
 * own checkout is nobody's to begin from. What cannot be found is refused for good, with the machine it is on; nothing
 * begins from anything else instead.
 */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { shorten } from "../output/lines.ts";
import { checkoutOf, commitNamed, commitOfTree, merge, tipOf, unmergedIn } from "./commits.ts";
import { fromZeros, git } from "./git.ts";
import { refused, type WorkspaceRefusal } from "./refusal.ts";
import { isOwnTree, type TreeNote } from "./state.ts";

/** What a need has left, as its result says. */
export type LeftWork = {
  /** What the task calls this need. */
  readonly key: string;
  readonly taskId: string;
  readonly state: string;
  /** Null if there was nothing to keep. */
  readonly branch: string | null;
  /** What it began from. */
  readonly base: string | null;
  /** The tip of its branch at its end. */
  readonly commit: string | null;
  readonly host: string | null;
  /** Whether its tree held more than its branch then. */
  readonly isUncommitted: boolean;
  /** What it had changed then, or the first of it. */
  readonly changedFiles: readonly string[];
};
export type TreeStart = {
  /** Instead of the base of the worker. */
  readonly base?: string;
  readonly from?: LeftWork;
  readonly merge?: readonly LeftWork[];
};

export type Begun = Pick<TreeNote, "base" | "onto">;

const FILES_NAMED = 10;
const NAME_MAX = 200;

/** The commit that a tree begins from; and, where works are merged into it, the one they are merged onto. */
export async function startingCommit(top: string, base: string, start: TreeStart): Promise<Begun> {
  if (start.from !== undefined) return { base: await commitLeft(top, start.from) };
  const onto = await resolveBase(top, start.base ?? base);
  let commit = onto;
  const before: string[] = [];
  for (const work of start.merge ?? []) {
    const other = await commitLeft(top, work);
    const merged = await merge(top, commit, other, { message: `Merge the work of ${work.key}` });
    if (merged.kind !== "merged") throw unmergeable(work, merged.kind === "conflict" ? merged.files : [], before);
    commit = merged.commit;
    before.push(work.key);
  }
  return { base: commit, ...(commit === onto ? {} : { onto }) };
}

export async function resolveBase(top: string, base: string): Promise<string> {
  const commit = await commitNamed(top, base);
  if (commit !== null) return commit;
  throw refused(`the base ${shown(base)} names no commit in ${top}; name one that is there, or make a first commit`);
}

async function commitLeft(top: string, work: LeftWork): Promise<string> {
  const { key, taskId, state, branch, base, commit, host, isUncommitted } = work;
  if (branch === null) {
    if (base === null) throw refused(`${key} (${taskId}) ended as ${state} and left no branch to begin from`);
    const same = await commitNamed(top, base);
    if (same !== null) return same;
    throw refused(`${key} (${taskId}) began at ${base}, which is not in ${top}${elsewhere(host)}`);
  }
  const tip = await tipOf(top, branch);
  const isHere = commit === null || (await commitNamed(top, commit)) !== null;
  if (tip === null) {
    const merged = isUncommitted ? await mergedWork(top, work) : isHere ? commit : null;
    if (merged !== null && (await isOnBranch(top, merged))) return merged;
    throw refused(
      `the branch ${shown(branch)} that ${key} (${taskId}) left is not in ${top}${elsewhere(host)}${remedy(work)}`,
    );
  }
  if (!isHere)
    throw refused(
      `the branch ${branch} of ${top} is not the one that ${key} (${taskId}) left: ` +
        `commit ${commit} is not here${elsewhere(host)}`,
    );
  return isUncommitted ? await withUncommitted(top, work, branch) : await asCheckedOut(top, work, branch, tip);
}

/** A person may have gone on in the tree. */
async function asCheckedOut(top: string, { taskId }: LeftWork, branch: string, tip: string): Promise<string> {
  const tree = await treeOf(top, branch);
  return tree === null ? tip : await workIn(tree, taskId);
}

/** A result may name any branch: what a person has checked out and not committed is nobody's to begin from. */
async function treeOf(top: string, branch: string): Promise<string | null> {
  const tree = await checkoutOf(top, branch);
  return tree !== null && existsSync(tree) && (await isOwnTree(tree)) ? tree : null;
}

async function withUncommitted(top: string, work: LeftWork, branch: string): Promise<string> {
  const { key, taskId, host } = work;
  const tree = await treeOf(top, branch);
  if (tree !== null && (host === null || host === hostname())) return await workIn(tree, taskId);
  const merged = await mergedWork(top, work);
  if (merged !== null) return merged;
  const where = host === null || host === hostname() ? "its tree is gone" : `its tree is on ${host}`;
  throw refused(`${key} (${taskId}) had not committed all of its work on ${branch}, and ${where}${remedy(work)}`);
}

const messageOf = (taskId: string): string => `Work of ${taskId} that it had not committed`;

/**
 * What a task had not committed, as the commit in which a merge brought it onto a branch. Null unless there is exactly
 * one, behind the last commit of the task and with all the files it had changed: another run may have had the same id.
 */
async function mergedWork(top: string, { taskId, base, commit, changedFiles }: LeftWork): Promise<string | null> {
  const [begun, end] = await Promise.all([base, commit].map((name) => (name === null ? null : commitNamed(top, name))));
  if (!begun || !end) return null;
  const words = ["--fixed-strings", `--grep=${messageOf(taskId)}`, "--branches", "--remotes", `^${end}`];
  const found = (await git(top, ["rev-list", ...words])).split("\n").filter((line) => line !== "");
  const parents = await Promise.all(found.map((one) => commitNamed(top, `${one}^`)));
  const [work, ...others] = found.filter((_, index) => parents[index] === end);
  if (work === undefined || others.length > 0) return null;
  const changed = new Set(fromZeros(await git(top, ["diff", "--name-only", "-z", "--no-renames", begun, work])));
  return changedFiles.every((file) => changed.has(file)) ? work : null;
}

/** What a tree holds, committed or not, as one commit. */
export async function workIn(tree: string, taskId: string): Promise<string> {
  const unmerged = await unmergedIn(tree);
  if (unmerged.length > 0) throw refused(`in ${tree} there are conflicts to be resolved: ${named(unmerged)}`);
  return await commitOfTree(tree, messageOf(taskId));
}

/** Whether a branch has it, of here or of a remote. */
async function isOnBranch(top: string, commit: string): Promise<boolean> {
  return (await git(top, ["for-each-ref", "--count=1", `--contains=${commit}`, "refs/heads", "refs/remotes"])) !== "";
}

function unmergeable({ key, branch }: LeftWork, files: readonly string[], before: readonly string[]): WorkspaceRefusal {
  const what = `${key}${branch === null ? "" : ` (${branch})`}`;
  const against = before.length === 0 ? "its base" : `its base with ${before.join(", ")}`;
  if (files.length === 0) return refused(`${what} has no commit in common with ${against}, so it cannot be merged`);
  return refused(`${what} cannot be merged into ${against}: conflict in ${named(files)}`);
}

/** The first of many, in a sentence. */
export function named(files: readonly string[]): string {
  const first = files.slice(0, FILES_NAMED).map(shown);
  return first.join(", ") + (files.length > first.length ? ` and ${files.length - first.length} more` : "");
}

/** A name from elsewhere on one line. */
const shown = (name: string): string =>
  shorten(/^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(name) ? name : JSON.stringify(name), NAME_MAX);

const elsewhere = (host: string | null): string =>
  host === null || host === hostname() ? "; it was removed, or is in another clone" : `; it is on ${host}`;
/** What a person can do where it is not on another machine. */
const remedy = ({ key, host }: LeftWork): string =>
  host === null || host === hostname()
    ? `; let it begin at a branch that has that work (worktree: { base: BRANCH }), or run ${key} again`
    : "";
