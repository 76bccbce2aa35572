/**
 * The directory that Drover keeps its data in, made so that it stays out of others' hands and out of repositories.
 *
 * What tasks hold is its owner's business: prompts, results, the names of things. So only its owner may read it, and
 * git does not see it, since most of these directories lie in somebody's checkout. A directory that was there before
 * belongs to its maker, and stays as it is; the files in it are Drover's all the same, and for their owner only.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
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

/** The log, in a data directory. */
export const DATABASE_FILE = "drover.db";
/** What only its owner may read and write. */
export const OWN_FILE_MODE = 0o600;
/** The log and what SQLite puts beside it, snapshots, the lock. The public half of the key is for everybody. */
const OWN_FILES = /^(drover\.db|owner\.|snapshot-|attempt-key|signing-key\.pem)/;
const OTHERS = 0o077;

/** Takes from others what they may do with the files of a data directory. */
export function keepPrivate(directory: string): void {
  for (const name of readdirSync(directory).filter((one) => OWN_FILES.test(one))) {
    const path = join(directory, name);
    if ((statSync(path).mode & OTHERS) !== 0) chmodSync(path, OWN_FILE_MODE);
  }
}

/**
 * SQLite makes its files for everybody to read, and those beside one as that one is: so it finds it made. One that is
 * there is not opened: closing it would drop the locks that this process has on it.
 */
export function makeOwnFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", OWN_FILE_MODE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** What is read of a file; null if it is not there. */
export function ifThere<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() ?? false;

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
