/**
 * The directory that Drover keeps its data in, made so that it stays out of others' hands and out of repositories.
 *
 * What tasks hold is nobody else's business: prompts, results, the names of things. So only its owner may read it, and
 * git does not see it, since most of these directories lie in somebody's checkout. Both hold for what is made here;
 * what was there before belongs to whoever made it.
 */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** As far as a name says that all below it is Drover's. */
const OWN_NAME = ".drover";

export function makeOwnDirectory(directory: string): void {
  const path = resolve(directory);
  const missing = missingOf(path);
  for (const one of missing) makeOne(one);
  const [first] = missing;
  if (first === undefined) return makeOne(path);
  writeFileSync(join(ownRoot(path, first), ".gitignore"), "# Drover's data: prompts, results, logs, keys.\n*\n");
}

/** What is not there of a path, from above. */
function missingOf(path: string): string[] {
  const missing: string[] = [];
  for (let at = path; !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.unshift(at);
  return missing;
}

/** One by one: where a file system takes none, as /proc, Node's own recursion never ends. */
function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST" && statSync(path).isDirectory();
    if (!isThere) throw error;
  }
}

/** The highest new directory that is Drover's by its name, else the data directory itself. */
function ownRoot(directory: string, first: string): string {
  let root = directory;
  for (let at = directory; ; at = dirname(at)) {
    if (basename(at) === OWN_NAME) root = at;
    if (at === first || at === dirname(at)) return root;
  }
}
