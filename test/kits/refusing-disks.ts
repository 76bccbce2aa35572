/**
 * Disks that refuse: read-only ones, and small ones that fill up, for tests of what is said then.
 *
 * Root writes where it likes, so for root a disk is mounted; for anybody else a mode or a limit of the process will do.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const isRoot: boolean = process.getuid?.() === 0;

/** Why nothing can be mounted here, if so. */
export function cannotMount(): string | false {
  if (!isRoot) return "only root may mount";
  const probe = mkdtempSync(join(tmpdir(), "drover-probe-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "tmpfs", probe]);
  if (status === 0) spawnSync("umount", [probe]);
  rmSync(probe, { recursive: true });
  return status === 0 ? false : "root needs the right to mount";
}

/** Why a directory cannot be made read-only here, if so. */
export const cannotMakeReadOnly = (): string | false => (isRoot ? cannotMount() : false);

/** Makes a directory and its files read-only for this process, whoever it runs as; answers how to undo it. */
export function makeReadOnly(directory: string): () => void {
  if (!isRoot) {
    const files = readdirSync(directory).map((name) => join(directory, name));
    for (const file of files) chmodSync(file, 0o444);
    chmodSync(directory, 0o555);
    return () => {
      chmodSync(directory, 0o755);
      for (const file of files) chmodSync(file, 0o644);
    };
  }
  execFileSync("mount", ["--bind", directory, directory]);
  execFileSync("mount", ["-o", "remount,ro,bind", directory]);
  return () => void spawnSync("umount", [directory]);
}

export type SmallDisk = {
  /** Makes room for so many KiB more. */
  readonly grow: (kib: number) => void;
  readonly remove: () => void;
};

/** A disk of so many KiB at an empty directory. */
export function mountSmallDisk(directory: string, kib: number): SmallDisk {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kib}k`, "tmpfs", directory]);
  return {
    grow: (more) => void execFileSync("mount", ["-o", `remount,size=${kib + more}k`, directory]),
    remove: () => void spawnSync("umount", [directory]),
  };
}
