/**
 * Paths that one machine may take from another: names that stay inside the directory they are laid into.
 *
 * Written with slashes on every system. Whatever could lead elsewhere is refused: an absolute path, a part that is
 * empty, `.` or `..`, a backslash, a drive, a control character.
 */

/** Of a path of a file, and of a pattern. */
export const PATH_LENGTH_MAX = 1024;
const PART_LENGTH_MAX = 255;

/** Whether a path is relative and stays where it begins. */
export function isSafePath(path: string): boolean {
  if (path.length === 0 || path.length > PATH_LENGTH_MAX || !path.isWellFormed()) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\\\u0000-\u001f\u007f]|^[A-Za-z]:/.test(path)) return false;
  return path.split("/").every((part) => !["", ".", ".."].includes(part) && Buffer.byteLength(part) <= PART_LENGTH_MAX);
}

/**
 * What a pattern matches: `*` and `?` inside one part of a path, `**` as a whole part any number of them. A name that
 * begins with a dot is matched by a pattern whose part does too, and by `**`.
 *
 * Patterns come with tasks, from anybody who may submit. So this is no regular expression, which can take for ever on
 * a few stars: it takes at most as many steps as the product of both lengths.
 */
export function patternTest(pattern: string): (path: string) => boolean {
  const parts: Part[] = pattern.split("/").map((part) => (part === "**" ? "many" : [...part]));
  // The last one is at least one.
  if (parts.at(-1) === "many") parts.push("any");
  return (path) => isMatch(parts, path.split("/"), isMany, isPartMatch);
}

/** Any number of parts, one part of any name, or a name by its characters. */
type Part = "many" | "any" | readonly string[];

const isMany = (part: Part): boolean => part === "many";
const isStar = (char: string): boolean => char === "*";
const isCharMatch = (char: string, other: string): boolean => char === "?" || char === other;

function isPartMatch(part: Part, name: string): boolean {
  if (typeof part === "string") return part === "any";
  if (name.startsWith(".") && /^[*?]/.test(part[0] ?? "")) return false;
  return isMatch(part, [...name], isStar, isCharMatch);
}

/** When what follows the last star does not fit, that star takes one more; the stars before it need never change. */
function isMatch<Sign, Item>(
  signs: readonly Sign[],
  items: readonly Item[],
  isMore: (sign: Sign) => boolean,
  isOne: (sign: Sign, item: Item) => boolean,
): boolean {
  let star = -1;
  let taken = 0;
  let sign = 0;
  for (let item = 0; item < items.length; ) {
    const next = signs[sign];
    if (next !== undefined && isMore(next)) {
      star = sign++;
      taken = item;
    } else if (next !== undefined && isOne(next, items[item] as Item)) {
      sign++;
      item++;
    } else if (star >= 0) {
      sign = star + 1;
      item = ++taken;
    } else return false;
  }
  return signs.slice(sign).every(isMore);
}
