/**
 * Programs of others that a test tries something on: there, or installed where that is possible, or a reason to skip.
 *
 * Root on Debian gets the package. Two test files may ask at the same time, so each waits for the other's lock. With
 * CI=true the run counts a skipped test as a failure, so nothing goes untried there.
 */
import { spawnSync } from "node:child_process";

const INSTALL_MS = 300_000;
const INSTALL = ["install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=280"];

/** False if the program can be run; else why not, as a test's `skip` takes it. */
export function isMissing(program: string, debianPackage: string, asksVersion = "--version"): string | false {
  const isThere = (): boolean => spawnSync(program, [asksVersion]).status === 0;
  if (isThere()) return false;
  if (process.getuid?.() === 0) install(debianPackage);
  if (isThere()) return false;
  return `${program} is missing: install the package ${debianPackage} (apt-get install ${debianPackage})`;
}

/** A machine that has never asked what packages there are finds none: then it is asked to, once. */
function install(debianPackage: string): void {
  const apt = (...args: readonly string[]): boolean => spawnSync("apt-get", args, { timeout: INSTALL_MS }).status === 0;
  if (!apt(...INSTALL, debianPackage) && apt("update")) apt(...INSTALL, debianPackage);
}
