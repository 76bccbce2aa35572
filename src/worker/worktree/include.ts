/**
 * Files that git ignores and a workspace still needs, such as `.env`: those that `.worktreeinclude` names.
 *
 * The file stands at the top of the repository and is written like a `.gitignore`. Copied is what it matches *and* git
 * ignores: what git knows is in the worktree anyway, and what it does not know at all is somebody's unfinished work.
 *
 * No link leads out of the tree. One that points elsewhere is left out, or an agent could write through it to where it
 * has no business; and nothing is copied through a link that the commit has in the place of a directory.
 */
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, realpath, symlink } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { fromZeros, git } from "./git.ts";

const INCLUDE_FILE = ".worktreeinclude";
const FILES_MAX = 20_000;

/** The files that would be copied into a worktree, from the top of the repository. */
export async function includedIn(top: string): Promise<string[]> {
  if ((await lstat(join(top, INCLUDE_FILE)).catch(() => null)) === null) return [];
  const matches = await git(top, ["ls-files", "-z", "--others", "--ignored", `--exclude-from=${INCLUDE_FILE}`]);
  const names = fromZeros(matches).filter((name) => !name.endsWith("/"));
  if (names.length > FILES_MAX)
    throw new Error(`${INCLUDE_FILE} matches ${names.length} files; at most ${FILES_MAX} are copied into a worktree`);
  if (names.length === 0) return [];
  const input = `${names.join("\0")}\0`;
  // Exit code 1 means that none of them is ignored.
  return fromZeros(await git(top, ["check-ignore", "-z", "--stdin"], { input, quietExit: 1 }));
}

/** Answers which of them it left out, and why. */
export async function copyIncluded(top: string, worktree: string): Promise<string[]> {
  const leftOut: string[] = [];
  for (const name of await includedIn(top)) {
    const why = await copyOne(top, worktree, name);
    if (why !== null) leftOut.push(`${name} is not copied: ${why}`);
  }
  return leftOut;
}

/** Null if it was copied, or was there already. */
async function copyOne(top: string, worktree: string, name: string): Promise<string | null> {
  const [from, to] = [join(top, name), join(worktree, name)];
  if (!(await isPlainWay(worktree, dirname(name)))) return "a directory of its path is a link in the commit";
  const kind = await lstat(from);
  if (kind.isSymbolicLink() && !(await staysInside(top, from))) return "it is a link that leads out of the repository";
  await mkdir(dirname(to), { recursive: true });
  try {
    if (kind.isSymbolicLink()) await symlink(await readlink(from), to);
    else if (kind.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  } catch (error) {
    // The commit has one of its own, which stays.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return null;
}

/** Whether all that is there of a path under the worktree is directories. */
async function isPlainWay(worktree: string, path: string): Promise<boolean> {
  let at = worktree;
  for (const part of path.split(sep)) {
    at = join(at, part);
    const found = await lstat(at).catch(() => null);
    if (found === null) return true;
    if (!found.isDirectory()) return false;
  }
  return true;
}

/** A link by a whole path leads to the repository itself, which is not the worktree. */
async function staysInside(top: string, link: string): Promise<boolean> {
  const target = await readlink(link);
  if (isAbsolute(target)) return false;
  const way = relative(await realpath(top), await realpath(link).catch(() => join(dirname(link), target)));
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
