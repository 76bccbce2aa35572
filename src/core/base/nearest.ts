/**
 * What somebody probably meant: the known word nearest to the one they wrote.
 *
 * Distance is counted in letters added, dropped, changed or swapped with a neighbour, ignoring case and the marks
 * between words, since `max-in-flight` and `maxInflight` are the commonest slips. A word that is more than a
 * third wrong is a guess and not a slip: then nothing is suggested.
 */

const WORD_LENGTH_MAX = 200;
/** Pairs of letters that one search looks at: among very many words the first ones have to do. */
const PAIRS_MAX = 500_000;

export function nearest(written: string, known: readonly string[]): string | null {
  const plain = bare(written);
  if (plain.length > WORD_LENGTH_MAX) return null;
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  let pairs = 0;
  for (const word of known) {
    const other = bare(word);
    // So different in length is no slip, whatever its letters are.
    const longer = Math.max(plain.length, other.length);
    if (Math.abs(plain.length - other.length) > Math.max(1, longer / 3)) continue;
    pairs += plain.length * other.length;
    if (pairs > PAIRS_MAX) break;
    const distance = distanceOf(plain, other);
    if (distance < least) [best, least] = [word, distance];
  }
  return least <= Math.max(1, Math.floor(Math.max(plain.length, best?.length ?? 0) / 3)) ? best : null;
}

const bare = (word: string): string => word.replaceAll(/[-_\s]/g, "").toLowerCase();

/** Optimal string alignment: three rows of the usual table are all that is ever looked at. */
export function distanceOf(left: string, right: string): number {
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let row = 1; row <= left.length; row++) {
    const here = [row];
    for (let at = 1; at <= right.length; at++) {
      const isSame = left[row - 1] === right[at - 1];
      const isSwap = row > 1 && at > 1 && left[row - 1] === right[at - 2] && left[row - 2] === right[at - 1];
      here[at] = Math.min(
        (above[at] ?? 0) + 1,
        (here[at - 1] ?? 0) + 1,
        (above[at - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (before[at - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, here];
  }
  return above[right.length] ?? 0;
}
