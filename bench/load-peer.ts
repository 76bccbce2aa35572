/**
 * Loads a library we measure ourselves against.
 *
 * Peers live in bench/node_modules, which only benchmarks need, so it is installed on
 * first need. They are loaded by a name the compiler cannot see: otherwise the type check of the
 * whole repository would need them installed. The caller states the part of the library it uses.
 */

import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { progress } from "./report.ts";

const HERE = import.meta.dirname;

export async function loadPeer<Surface>(name: string): Promise<Surface> {
  installPeers();
  return (await import(name)) as Surface;
}

export function peerVersion(name: string): string {
  installPeers();
  const manifest: unknown = JSON.parse(readFileSync(join(HERE, "node_modules", name, "package.json"), "utf8"));
  return String((manifest as { version?: unknown }).version);
}

/** `npm ci` in bench/, unless what is there is at least as new as the lock file. */
export function installPeers(): void {
  const installedAt = statSync(join(HERE, "node_modules/.package-lock.json"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (installedAt >= statSync(join(HERE, "package-lock.json")).mtimeMs) return;
  progress("installing the libraries to measure against: npm ci in bench/");
  const done = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: HERE, stdio: ["ignore", 2, 2] });
  if (done.status !== 0)
    throw new Error(`npm ci in bench/ failed: ${done.error?.message ?? `exit code ${done.status}`}`);
}
