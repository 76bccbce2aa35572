/**
 * How a worktree goes: its directory, its branch, then the note that says whose it was.
 */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tipOf } from "./commits.ts";
import { git } from "./git.ts";
import { withRepositoryLock } from "./lock.ts";
import { beforeWork, dropNote, type TreeNote } from "./state.ts";

/** What a person has decided; nothing else takes work away. */
type Removal = {
  /** Also with changes that are not committed. */
  readonly force?: boolean;
  /** Also if its branch has commits of its own. */
  readonly dropsBranch?: boolean;
};

export async function removeTree(
  root: string,
  note: TreeNote,
  { force = false, dropsBranch = false }: Removal = {},
): Promise<void> {
  const { gitDirectory, path, branch, state } = note;
  // With its repository nothing is left of it but files.
  if (force && !existsSync(gitDirectory)) await rm(path, { recursive: true, force: true });
  else
    await withRepositoryLock(gitDirectory, async () => {
      // No attempt has worked in it yet, and git may not know it.
      if (state === "making") await rm(path, { recursive: true, force: true });
      // Without force git itself refuses a tree that is not clean: a second opinion that costs nothing.
      if (existsSync(path)) await git(gitDirectory, ["worktree", "remove", ...(force ? ["--force"] : []), path]);
      else await git(gitDirectory, ["worktree", "prune"]);
      await dropBranch(gitDirectory, branch, dropsBranch ? null : beforeWork(note));
    });
  await dropNote(root, note);
}

/** With a base, only if it holds nothing that the base does not: it is compared and deleted in one step. */
async function dropBranch(gitDirectory: string, branch: string, base: string | null): Promise<void> {
  const tip = await tipOf(gitDirectory, branch);
  if (tip === null) return;
  const extra = base === null ? 0 : Number(await git(gitDirectory, ["rev-list", "--count", tip, `^${base}`]));
  if (extra === 0) await git(gitDirectory, ["update-ref", "-d", `refs/heads/${branch}`, tip]);
}
