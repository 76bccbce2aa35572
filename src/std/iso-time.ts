/**
 * An instant as people read it.
 */

const shownLast = { at: 0, text: "1970-01-01T00:00:00.000Z" };

/** RFC 3339. The last one is remembered: answers of one turn share their instant. */
export function isoTime(at: number): string {
  if (at !== shownLast.at) {
    shownLast.text = new Date(at).toISOString();
    shownLast.at = at;
  }
  return shownLast.text;
}
