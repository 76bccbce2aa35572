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
 */
export function patternTest(pattern: string): (path: string) => boolean {
  const source = pattern
    .split("/")
    .map((part, index, parts) => {
      const isLast = index === parts.length - 1;
      if (part === "**") return isLast ? ".+" : "(?:[^/]+/)*";
      const text = part
        .replaceAll(/[.+^${}()|[\]]/g, "\\$&")
        .replaceAll("*", "[^/]*")
        .replaceAll("?", "[^/]");
      const hidden = /^[*?]/.test(part) ? "(?!\\.)" : "";
      return `${hidden}${text}${isLast ? "" : "/"}`;
    })
    .join("");
  const form = new RegExp(`^${source}$`, "s");
  return (path) => form.test(path);
}
