/**
 * The note beside a worktree that says whose it is and what it began from.
 *
 * `making`: no attempt has been in it yet. `in-use`: an attempt runs in it. `kept`: its attempt is over and left work.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Owner, readOwner, writeJson } from "../process/runs.ts";

export type TreeNote = {
  readonly name: string;
  readonly path: string;
  readonly branch: string;
  /** The commit it began from. */
  readonly base: string;
  /** The git directory all worktrees of the repository share. */
  readonly gitDirectory: string;
  readonly taskId: string;
  readonly attempt: number;
  readonly runId: string;
  readonly owner: Owner;
  readonly state: "making" | "in-use" | "kept";
};

const TEXTS = ["name", "path", "branch", "base", "gitDirectory", "taskId", "runId"] as const;

export const writeNote = (root: string, note: TreeNote): Promise<void> => writeJson(pathOf(root, note.name), note);
export const dropNote = (root: string, note: TreeNote): Promise<void> => rm(pathOf(root, note.name), { force: true });

export async function readNotes(root: string): Promise<TreeNote[]> {
  const names = (await readdir(root).catch(() => [])).filter((name) => name.endsWith(".json"));
  const notes = await Promise.all(names.map((name) => readNote(join(root, name))));
  return notes.filter((note) => note !== null);
}

const pathOf = (root: string, name: string): string => join(root, `${name}.json`);

async function readNote(path: string): Promise<TreeNote | null> {
  try {
    const value = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    const owner = readOwner(value.owner);
    const isWhole = TEXTS.every((key) => typeof value[key] === "string") && owner !== null;
    return isWhole && ["making", "in-use", "kept"].includes(String(value.state)) ? (value as TreeNote) : null;
  } catch {
    // Not a note of ours, or gone meanwhile.
    return null;
  }
}
