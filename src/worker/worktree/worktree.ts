/**
 * A workspace of its own for each attempt: a git worktree on a branch of its own.
 *
 * What it begins from is a commit when the attempt begins (start.ts), so what "changed" means is fixed. Directory and
 * branch are named after the task, with the number of the attempt from the second on; if either exists, a higher number
 * is taken, and nothing that exists is ever taken over.
 * Beside each worktree lies a note that says whose it is; it is written first, so that what a killed worker leaves is
 * known to its successor.
 *
 * A tree with work in it is never removed, not after a failure, not at the next start: it is kept and named in the
 * result. That is why there is a limit on how many there may be, and a refusal that says so.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { join, relative } from "node:path";
import { fileNameOf } from "../output/safe-name.ts";
import { type Owner, stateOf } from "../process/runs.ts";
import type { ProcessTable } from "../process/table.ts";
import { tipOf } from "./commits.ts";
import { GitError, git } from "./git.ts";
import { copyIncluded, includedIn } from "./include.ts";
import { withRepositoryLock } from "./lock.ts";
import { refused, WorkspaceRefusal } from "./refusal.ts";
import { removeTree } from "./remove.ts";
import { type Begun, resolveBase, startingCommit, type TreeStart } from "./start.ts";
import { beforeWork, branchOfTree, readNotes, stateOfTree, type TreeNote, type TreeState, writeNote } from "./state.ts";

export type Workspace = {
  /** Where the child runs: the same place inside the worktree as `cwd` has inside the repository. */
  readonly cwd: string;
  readonly note: TreeNote;
  /** What was not copied into it, and why. */
  readonly leftOut: readonly string[];
};
export type WorkspaceReport = Omit<TreeState, "isClean"> & {
  readonly isKept: boolean;
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** The tip of the branch; absent where it could not be looked at. */
  readonly commit?: string;
  /** The machine it is on. */
  readonly host: string;
  /** Why it could not be looked at; then it is kept. */
  readonly problem?: string;
};
type TreeSweep = { readonly removed: string[]; readonly kept: string[]; readonly problems: string[] };
type TreeRun = Pick<TreeNote, "taskId" | "plan" | "task" | "attempt" | "runId">;
type Closing = { readonly isGoingOn?: boolean; readonly isDone?: boolean };
export type Worktrees = {
  /** A new one; or, for a task that goes on, the one it was in. */
  open(run: TreeRun, start?: TreeStart & { readonly goesOn?: boolean }): Promise<Workspace>;
  /** Removes it if there is no work in it, unless its task goes on. Merges alone are work of a task that is done. */
  close(workspace: Workspace, how?: Closing): Promise<WorkspaceReport>;
  /** The same for those whose worker is gone. */
  sweep(): Promise<TreeSweep>;
  /** The same for one that waits for its task to go on, which it does no more. */
  letGo(taskId: string): Promise<boolean>;
  /**
   * How many attempts may have a tree at the same time, and in words what keeps others from it. A task that goes on
   * needs no further tree; but where every task has one, it cannot be told from others, and needs room to be taken. So
   * there the trees of tasks that wait take none, up to as many again.
   */
  room(how?: { readonly isForAll: boolean }): Promise<TreeRoom>;
  /** So many trees there may be from now on; those that are there stay. */
  limit(count: number): void;
};
export type TreeRoom = { readonly count: number; readonly note: string };

type Repository = { readonly top: string; readonly gitDirectory: string; readonly inside: string };
type WorktreeOptions = {
  /** A directory inside the repository. */
  readonly cwd: string;
  /** A ref; its commit at the start of an attempt is what the attempt begins from. */
  readonly base: string;
  /** Where worktrees are put. */
  readonly root: string;
  readonly countMax: number;
  readonly owner: Owner;
  readonly table: ProcessTable;
};

export const BRANCH_PREFIX = "drover/";
const NAMES_MAX = 1000;
const PATHS_NAMED = 3;
const ROOM_ADVICE =
  "merge their work and remove them (drover worktrees merge, drover worktrees clean), " +
  "or raise workers.maxWorktrees or --max-worktrees";
/** What becomes of an error of ours, or of git, while a tree is made. */
function inWords(error: unknown): never {
  if (error instanceof WorkspaceRefusal) throw error;
  throw new WorkspaceRefusal("failed", `its worktree could not be made: ${(error as Error).message}`);
}

const isSame = (left: Owner, right: Owner): boolean => left.pid === right.pid && left.startedAt === right.startedAt;
const UNKNOWN = { commits: 0, uncommitted: 0, changedFiles: [], changedCount: 0 };
const REMOVED: TreeState = { isClean: true, ...UNKNOWN };

/** A worktree that is to be made, and what is to run in it: a path from its directory. */
type Probe = Pick<WorktreeOptions, "cwd" | "base"> & { readonly program?: string | null };

export function createWorktrees({ cwd, base, root, owner, table, ...options }: WorktreeOptions): Worktrees {
  let { countMax } = options;

  async function open(
    run: TreeRun,
    { goesOn = false, ...start }: TreeStart & { goesOn?: boolean } = {},
  ): Promise<Workspace> {
    const repository = await findRepository(cwd);
    const former = goesOn ? await formerOf(run, repository) : undefined;
    if (former !== undefined) return await goOn({ ...former, ...run, owner, state: "in-use" }, repository);
    const begun = await startingCommit(repository.top, base, start).catch(inWords);
    await mkdir(root, { recursive: true, mode: 0o700 });
    const note = await withRepositoryLock(repository.gitDirectory, async () => {
      await refuseTooMany();
      return await claimName(repository, run, begun);
    });
    let leftOut: string[] = [];
    try {
      await withRepositoryLock(repository.gitDirectory, () => addTree(repository.top, note));
      leftOut = await copyIncluded(repository.top, note.path);
      if (!existsSync(join(note.path, repository.inside))) throw notCommitted(repository, nameOf(start, base));
    } catch (error) {
      await removeTree(root, note).catch(() => {});
      return inWords(error);
    }
    const ready: TreeNote = { ...note, state: "in-use" };
    await writeNote(root, ready);
    return { cwd: join(note.path, repository.inside), note: ready, leftOut };
  }

  /** The tree it was last in; after a worker was killed it is one that was kept. */
  async function formerOf({ taskId }: TreeRun, { gitDirectory }: Repository): Promise<TreeNote | undefined> {
    const mine = (await present()).filter((note) => note.taskId === taskId && note.gitDirectory === gitDirectory);
    const left = mine.filter(({ state }) => state === "going-on" || state === "kept");
    return left.toSorted((one, other) => other.attempt - one.attempt)[0];
  }

  async function goOn(note: TreeNote, { inside }: Repository): Promise<Workspace> {
    await writeNote(root, note);
    return { cwd: join(note.path, inside), note, leftOut: [] };
  }

  const present = async (): Promise<TreeNote[]> => (await readNotes(root)).filter(({ path }) => existsSync(path));

  const isWaiting = ({ state, owner: whose }: TreeNote): boolean => state === "going-on" && isSame(whose, owner);

  /** Those whose tasks wait to go on take no room, as long as they are no more than the others may be. */
  function withoutWaiting(trees: readonly TreeNote[]): readonly TreeNote[] {
    return [...trees.filter((note) => !isWaiting(note)), ...trees.filter(isWaiting).slice(countMax)];
  }

  async function refuseTooMany(): Promise<void> {
    const trees = withoutWaiting(await present());
    if (trees.length >= countMax) throw new WorkspaceRefusal("requeue", crowded(trees));
  }

  /** Trees that its own attempts work in go or stay when those end; all others are in the way. */
  async function room({ isForAll } = { isForAll: false }): Promise<TreeRoom> {
    const trees = await present();
    const inTheWay = (isForAll ? withoutWaiting(trees) : trees).filter(
      ({ state, owner: whose }) => state === "kept" || state === "going-on" || !isSame(whose, owner),
    );
    // Those that wait would shut out each other for good; what else is in the way has a person who can take it away.
    const least = isForAll && inTheWay.filter((note) => !isWaiting(note)).length < countMax ? 1 : 0;
    return { count: Math.max(least, countMax - inTheWay.length), note: crowded(inTheWay) };
  }

  function crowded(trees: readonly TreeNote[]): string {
    const paths = trees.slice(0, PATHS_NAMED).map(({ path }) => path);
    const more = trees.length > paths.length ? ` and ${trees.length - paths.length} more` : "";
    const count = trees.length === 1 ? "1 worktree exists" : `${trees.length} worktrees exist`;
    return `${count}, and at most ${countMax} may: ${paths.join(", ")}${more}; ${ROOM_ADVICE}`;
  }

  /** The first number that is free for the directory, the note and the branch. Made here, the directory is ours. */
  async function claimName({ top, gitDirectory }: Repository, run: TreeRun, begun: Begun): Promise<TreeNote> {
    const { name: first, branch: wanted } = namesOf(run, await branchesOf(top));
    const taken = new Set(await readdir(root));
    for (let number = run.attempt; number < run.attempt + NAMES_MAX; number++) {
      const suffix = number === 1 ? "" : `-${number}`;
      const [name, branch] = [`${first}${suffix}`, wanted(suffix)];
      const isFree = branch !== null && !taken.has(name) && !taken.has(`${name}.json`);
      if (!isFree || !(await makeDirectory(join(root, name)))) continue;
      const where = { path: join(root, name), branch, ...begun, gitDirectory };
      const note: TreeNote = { name, ...run, owner, state: "making", ...where };
      await writeNote(root, note);
      return note;
    }
    throw new WorkspaceRefusal("failed", `there are ${NAMES_MAX} worktrees or branches named ${first} already`);
  }

  async function close(workspace: Workspace, { isGoingOn = false, isDone = false }: Closing = {}) {
    const note: TreeNote = isDone ? { ...workspace.note, state: "kept" } : workspace.note;
    const { path, branch, base: begun } = note;
    const where = { path, branch, base: begun, host: hostname() };
    try {
      // The child may have removed it itself; what it committed is on the branch, which then stays.
      const { isClean, ...state } = existsSync(path)
        ? { ...(await branchOfTree(note)), ...(await stateOfTree(note)) }
        : { ...REMOVED, ...(await leftOnBranch(note)) };
      const staysOpen = isGoingOn && existsSync(path);
      if (isClean && !staysOpen) await removeTree(root, note);
      else await writeNote(root, { ...note, state: staysOpen ? "going-on" : "kept" });
      return { isKept: !isClean || staysOpen, ...where, ...state };
    } catch (error) {
      await writeNote(root, { ...note, state: "kept" }).catch(() => {}); // A full disk; then its owner's end will tell.
      return { isKept: true, ...where, ...UNKNOWN, problem: (error as Error).message };
    }
  }

  /** No attempt comes back to it: it stays if there is work in it. */
  async function settle(note: TreeNote): Promise<"removed" | "kept"> {
    const isClean = !existsSync(note.path) || note.state === "making" || (await stateOfTree(note)).isClean;
    if (isClean) await removeTree(root, note);
    else await writeNote(root, { ...note, state: "kept" });
    return isClean ? "removed" : "kept";
  }

  async function letGo(taskId: string): Promise<boolean> {
    const waiting = (await readNotes(root)).filter((note) => note.taskId === taskId && isWaiting(note));
    for (const note of waiting) await settle(note);
    return waiting.length > 0;
  }

  async function sweep(): Promise<TreeSweep> {
    const found: TreeSweep = { removed: [], kept: [], problems: [] };
    for (const note of await readNotes(root)) {
      if (note.state !== "kept" && stateOf(note.owner, table) !== "dead") continue;
      try {
        found[await settle(note)].push(note.path);
      } catch (error) {
        found.problems.push(`the worktree ${note.path} could not be looked at: ${(error as Error).message}`);
      }
    }
    return found;
  }

  const limit = (count: number): void => {
    countMax = count;
  };
  return { open, close, sweep, letGo, room, limit };
}

/** Whether a worktree could be made here now; throws the refusal an attempt would meet. */
export async function probeWorktree({ cwd, base, program = null }: Probe): Promise<void> {
  const repository = await findRepository(cwd);
  const { top, inside } = repository;
  const commit = await resolveBase(top, base);
  // What the commit does not have may still be copied in.
  const included = await includedIn(top);
  const kind = await git(top, ["cat-file", "-t", `${commit}:${inside}`], { quietExit: 128 });
  const isCopied = included.some((name) => name.startsWith(`${inside}/`));
  if (inside !== "" && kind.trim() !== "tree" && !isCopied) throw notCommitted(repository, base);
  if (program !== null && !included.includes(join(inside, program)))
    await probeProgram(repository, commit, base, program);
}

/** Whether the commit has the program, which is named by a path from the directory, and lets it be executed. */
async function probeProgram({ top, inside }: Repository, commit: string, base: string, program: string): Promise<void> {
  const path = join(inside, program);
  // What lies outside is not of the worktree.
  if (path.startsWith("..")) return;
  const [mode = ""] = (await git(top, ["ls-tree", commit, "--", `:(top,literal)${path}`])).split(" ");
  const refuse = (why: string, instead: string): WorkspaceRefusal =>
    refused(`the program ${program} is not ${why} in a worktree; ${instead}`);
  if (mode === "")
    throw refuse(`in the commit of ${base}, so it would be missing`, "commit it, or name a base that has it");
  if (mode === PLAIN_FILE)
    throw refuse(
      `executable in the commit of ${base}, so it could not be run`,
      `git update-index --chmod=+x ${path}, and commit`,
    );
}

/** The mode of a file that may not be executed. */
const PLAIN_FILE = "100644";

const notCommitted = ({ inside, top }: Repository, base: string): WorkspaceRefusal =>
  refused(
    `the directory ${inside} of ${top} is not in the commit of ${base}, so it would be missing in a worktree; ` +
      "commit it, or name a base that has it",
  );

/** In a sentence: what a tree begins from. */
const nameOf = ({ from, base: own }: TreeStart, base: string): string => from?.branch ?? from?.base ?? own ?? base;

/** Of a tree that its child has removed. */
async function leftOnBranch(note: TreeNote): Promise<{ commits: number; commit?: string }> {
  const { gitDirectory, branch } = note;
  const commit = await tipOf(gitDirectory, branch);
  if (commit === null) return { commits: 0 };
  return { commits: Number(await git(gitDirectory, ["rev-list", "--count", commit, `^${beforeWork(note)}`])), commit };
}

/** False if it is there already. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function addTree(top: string, { branch, path, base }: TreeNote): Promise<void> {
  await git(top, ["worktree", "add", "--quiet", "--no-track", "-b", branch, path, base]);
}

export async function findRepository(cwd: string): Promise<Repository> {
  try {
    const found = await git(cwd, ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"]);
    const [top = "", gitDirectory = ""] = found.split("\n");
    return { top, gitDirectory, inside: relative(top, await realpath(cwd)) };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    if (error.exitCode === null) throw refused(error.message);
    throw refused(
      `${cwd} is not inside a git repository, so there can be no worktree (git init makes one): ${error.message}`,
    );
  }
}

/** The branches of ours that are there. */
async function branchesOf(top: string): Promise<ReadonlySet<string>> {
  const refs = await git(top, ["for-each-ref", "--format=%(refname)", `refs/heads/${BRANCH_PREFIX}`]);
  return new Set(refs.split("\n").map((ref) => ref.slice("refs/heads/".length)));
}

/** What a tree is called, and its branch with a suffix; null where git has no room for such a branch. */
function namesOf(
  { taskId, plan, task }: TreeRun,
  branches: ReadonlySet<string>,
): { readonly name: string; readonly branch: (suffix: string) => string | null } {
  const isTaken = (branch: string): boolean =>
    branches.has(branch) || [...branches].some((other) => other.startsWith(`${branch}/`));
  const named = (path: string) => (suffix: string) => {
    const branch = `${BRANCH_PREFIX}${path}${suffix}`;
    return isTaken(branch) ? null : branch;
  };
  if (plan === undefined || task === undefined) return { name: fileNameOf(taskId), branch: named(fileNameOf(taskId)) };
  const [folder, name] = [fileNameOf(plan), fileNameOf(task)];
  // A branch cannot lie below another branch.
  const separator = branches.has(`${BRANCH_PREFIX}${folder}`) ? "." : "/";
  return { name: `${folder}.${name}`, branch: named(`${folder}${separator}${name}`) };
}
