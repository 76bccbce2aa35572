/**
 * The log of an attempt as text: what is new in it, and what the command itself wrote.
 */

/** `2026-01-31T12:00:00.000Z out  text`: what the command wrote, without the instant and the origin; none of a note. */
export function spokenBy(line: string): string[] {
  const [, origin, text = ""] = /^\S+ (out|err|note) {1,2}(.*)$/s.exec(line) ?? [];
  return origin === "out" || origin === "err" ? [text] : [];
}

/**
 * What is new in a log of which only the end is seen. Its end moves on as it grows: what is seen now begins somewhere
 * inside what was seen before. The longest end of the old that the new begins with is what they have in common.
 */
export function newPart(before: string, now: string): string {
  return now.startsWith(before) ? now.slice(before.length) : now.slice(overlap(before, now));
}

/** The length of the longest end of `before` that `now` begins with: the table of Knuth, Morris and Pratt. */
function overlap(before: string, now: string): number {
  const fallback = new Uint32Array(now.length + 1);
  for (let at = 1, matched = 0; at < now.length; at++) {
    while (matched > 0 && now[at] !== now[matched]) matched = fallback[matched] ?? 0;
    if (now[at] === now[matched]) matched += 1;
    fallback[at + 1] = matched;
  }
  let matched = 0;
  for (const char of before.slice(-now.length).split("")) {
    while (matched > 0 && char !== now[matched]) matched = fallback[matched] ?? 0;
    if (char === now[matched]) matched += 1;
  }
  return matched;
}
