/**
 * Files that git ignores and a workspace still needs, such as `.env`: those that `.worktreeinclude` names.
 *
 * The file stands at the top of the repository and is written like a `.gitignore`. Copied is what it matches *and* git
 * ignores: what git knows is in the worktree anyway, and what it does not know at all is somebody's unfinished work.
 */
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readlink, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fromZeros, git } from "./worktree-git.ts";

export const INCLUDE_FILE = ".worktreeinclude";
const FILES_MAX = 20_000;

/** Answers how many files it copied. */
export async function copyIncluded(top: string, worktree: string): Promise<number> {
  if ((await lstat(join(top, INCLUDE_FILE)).catch(() => null)) === null) return 0;
  const matches = await git(top, ["ls-files", "-z", "--others", "--ignored", `--exclude-from=${INCLUDE_FILE}`]);
  const names = fromZeros(matches).filter((name) => !name.endsWith("/"));
  if (names.length > FILES_MAX)
    throw new Error(`${INCLUDE_FILE} matches ${names.length} files; at most ${FILES_MAX} are copied into a worktree`);
  if (names.length === 0) return 0;
  const input = `${names.join("\0")}\0`;
  // Exit code 1 means that none of them is ignored.
  const ignored = fromZeros(await git(top, ["check-ignore", "-z", "--stdin"], { input, quietExit: 1 }));
  for (const name of ignored) await copyOne(join(top, name), join(worktree, name));
  return ignored.length;
}

async function copyOne(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const kind = await lstat(from);
  if (kind.isSymbolicLink()) await symlink(await readlink(from), to);
  else if (kind.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
}
