/**
 * A task's id as part of a file name and of a branch name.
 *
 * An id may hold anything but blanks: slashes, dots, colons, other scripts. One that is plain stays as it is; any other
 * becomes something readable with a hash of the whole behind a plus sign, which no plain one holds. So two ids never
 * share a name, and no name climbs out of its directory or breaks git's rules for refs.
 */
import { hash } from "node:crypto";

const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const PLAIN_LENGTH_MAX = 100;
const READABLE_LENGTH_MAX = 60;
const HASH_LENGTH = 16;

export function fileNameOf(id: string): string {
  const isPlain = PLAIN.test(id) && id.length <= PLAIN_LENGTH_MAX && !/\.\.|\.$|\.lock$/i.test(id);
  if (isPlain) return id;
  const readable = id.replaceAll(/[^A-Za-z0-9_]+/g, "-").slice(0, READABLE_LENGTH_MAX);
  return `${readable.replaceAll(/^-+|-+$/g, "")}+${hash("sha256", id, "hex").slice(0, HASH_LENGTH)}`;
}
