/**
 * What is new in a text of which only the end is ever seen.
 *
 * As a log grows, its end moves on: what is seen now begins somewhere inside what was seen before. The longest end of
 * the old that the new begins with is what they have in common, and everything behind it is new. If they have nothing
 * in common, more was written meanwhile than the end holds.
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
