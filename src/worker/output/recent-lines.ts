/**
 * The latest lines, in memory, up to a size.
 *
 * For error messages, for a result of nothing but output, and for those who follow a running attempt, who must not
 * miss a line between what they read and what comes next.
 */

export type Ring = {
  push(line: string): void;
  /** The latest whole lines, each ended by a newline. */
  text(): string;
  readonly isCut: boolean;
};

export function createRing(charactersMax: number): Ring {
  const lines: string[] = [];
  let first = 0;
  let size = 0;
  let isCut = false;
  return {
    push(line) {
      lines.push(line);
      size += line.length + 1;
      while (size > charactersMax && first < lines.length - 1) {
        size -= (lines[first]?.length ?? 0) + 1;
        lines[first] = "";
        first += 1;
        isCut = true;
      }
      if (first > 1024 && first * 2 > lines.length) {
        lines.splice(0, first);
        first = 0;
      }
    },
    text: () =>
      lines
        .slice(first)
        .map((line) => `${line}\n`)
        .join(""),
    get isCut() {
      return isCut;
    },
  };
}
