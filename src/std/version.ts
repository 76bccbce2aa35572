/**
 * The version of this Drover, from its package.json; the same two directories up in the sources and when compiled.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function versionText(): string {
  const text = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
