/**
 * The directory that Drover keeps its data in, made so that it stays out of others' hands and out of repositories.
 *
 * What tasks hold is nobody else's business: prompts, results, the names of things. So only its owner may read it, and
 * git does not see it, since most of these directories lie in somebody's checkout. Both hold for what is made here;
 * what was there before belongs to whoever made it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** As far as a name says that all below it is Drover's. */
const OWN_NAME = ".drover";

export function makeOwnDirectory(directory: string): void {
  const first = mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  const ignored = join(ownRoot(resolve(directory), resolve(first)), ".gitignore");
  writeFileSync(ignored, "# Drover's data: prompts, results, keys.\n*\n");
}

/** The highest new directory that is Drover's by its name, else the data directory itself. */
function ownRoot(directory: string, first: string): string {
  let root = directory;
  for (let at = directory; ; at = dirname(at)) {
    if (basename(at) === OWN_NAME) root = at;
    if (at === first || at === dirname(at)) return root;
  }
}
