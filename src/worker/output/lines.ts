/**
 * Bytes become lines, whatever the bytes are.
 *
 * A line is decoded when it is whole, so a character that arrives in two pieces is not broken; bytes that are not
 * UTF-8 become the replacement character. A line longer than the limit keeps its beginning; the rest is counted and
 * thrown away as it arrives, so a child that never ends its line costs no more memory than one that does.
 */

export type LineSplitter = {
  push(chunk: Buffer): void;
  /** What has come of a line that has no end yet: a prompt, perhaps, that is never answered. */
  begun(): string;
  /** What has no newline yet is a line too, now. */
  end(): void;
};

const NEWLINE = 10;
const RETURN = 13;

export function createLineSplitter(bytesMax: number, onLine: (text: string, lostBytes: number) => void): LineSplitter {
  let parts: Buffer[] = [];
  let size = 0;
  let lost = 0;

  function keep(part: Buffer): void {
    const room = Math.max(0, bytesMax - size);
    const kept = part.length > room ? part.subarray(0, room) : part;
    if (kept.length > 0) parts.push(kept);
    size += kept.length;
    lost += part.length - kept.length;
  }
  function emit(): void {
    const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size);
    const end = lost === 0 && bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
    const lostBytes = lost;
    parts = [];
    size = 0;
    lost = 0;
    onLine(bytes.toString("utf8", 0, end), lostBytes);
  }
  return {
    push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
        keep(chunk.subarray(from, at));
        emit();
        from = at + 1;
      }
      // A copy: the chunk is part of a larger buffer, which a short rest would keep alive.
      if (from < chunk.length) keep(Buffer.from(chunk.subarray(from)));
    },
    begun: () => Buffer.concat(parts, size).toString("utf8"),
    end() {
      if (size + lost > 0) emit();
    },
  };
}

/** The first characters of a line, and how much there was beyond them. Never half of a pair. */
export function shorten(text: string, charactersMax: number, lostBytes: number = 0): string {
  if (text.length <= charactersMax && lostBytes === 0) return text;
  const kept = text.slice(0, charactersMax).toWellFormed();
  return `${kept}… [${text.length - Math.min(text.length, charactersMax) + lostBytes} more]`;
}
