/**
 * The output of one attempt: read in lines, given to its listener, kept in memory and on disk.
 *
 * Each kept line has its instant and its origin: `out` and `err` are the child's, `note` is the worker's own word (what
 * was started, which signal was sent, how it ended). Secrets are taken out before a line is kept; the listener, which
 * looks for events and results, gets the line as it was.
 */

import type { Clock } from "../../std/index.ts";
import { createCappedFile, readTail, type Tail, type TailSize, takeLines } from "./capped-file.ts";
import { createLineSplitter, type LineSplitter, shorten } from "./lines.ts";
import type { Redactor } from "./redact.ts";

type Origin = "out" | "err" | "note";
export type Following = Tail & {
  /** Every line from then on, with its newline, until the attempt ends or the signal fires. */
  readonly lines: AsyncIterable<string>;
};
export type OutputLog = {
  output(stream: "out" | "err", chunk: Buffer): void;
  note(text: string): void;
  /** A child has ended: what it had begun to write is a line. */
  endLines(): void;
  /** What the children wrote of late, without instants and origins. */
  recent(): string;
  /** The last line that says something, of stderr if there is one. */
  lastWords(): string;
  tail(size: TailSize): Promise<Tail>;
  /** What is there, and from then on every line. */
  follow(size: TailSize, signal?: AbortSignal): Following;
  close(): Promise<void>;
  readonly failure: Error | null;
};
type OutputLogPlan = {
  readonly path: string;
  readonly bytesMax: number;
  readonly clock: Pick<Clock, "now">;
  readonly redact: Redactor;
  /** Every line of the children, unchanged; over-long ones are cut, and told how much is lost. */
  onLine(stream: "out" | "err", text: string, lostBytes: number): void;
};

/** As long as a line may be to be looked at as a whole; enough for any result, and for what agents print around it. */
const LINE_BYTES_MAX = 1024 * 1024;
/** As much of it as is kept. */
const KEPT_LINE_MAX = 16 * 1024;
const RING_MAX = 256 * 1024;
const RECENT_MAX = 16 * 1024;
const QUEUE_MAX = 2000;
/** What is to be done about an error does not say what it was: the line before does. */
const HINT = /^\s*hint:/i;

export function createOutputLog({ path, bytesMax, clock, redact, onLine }: OutputLogPlan): OutputLog {
  const file = createCappedFile(path, bytesMax);
  const ring = createRing(RING_MAX);
  const recent = createRing(RECENT_MAX);
  const followers = createFollowers();
  const instant = { at: Number.NaN, text: "" };
  const lastWords = { out: "", err: "" };
  const splitters = { out: splitterFor("out"), err: splitterFor("err") };

  function splitterFor(stream: "out" | "err"): LineSplitter {
    return createLineSplitter(LINE_BYTES_MAX, (text, lostBytes) => {
      const kept = shorten(redact.line(text), KEPT_LINE_MAX, lostBytes);
      keep(stream, kept);
      recent.push(kept);
      if (kept.trim() !== "" && (lastWords[stream] === "" || !HINT.test(kept))) lastWords[stream] = kept.trim();
      onLine(stream, text, lostBytes);
    });
  }

  /** Many lines share an instant, and spelling it costs more than all the rest of a line. */
  function stamp(): string {
    const now = clock.now();
    if (now !== instant.at) Object.assign(instant, { at: now, text: new Date(now).toISOString() });
    return instant.text;
  }

  function keep(origin: Origin, text: string): void {
    const line = `${stamp()} ${origin.padEnd(4)} ${text}`;
    file.write(`${line}\n`);
    ring.push(line);
    followers.tell(line);
  }

  return {
    output: (stream, chunk) => splitters[stream].push(chunk),
    note(text) {
      for (const line of redact.line(text).split("\n")) keep("note", shorten(line, KEPT_LINE_MAX));
    },
    endLines() {
      splitters.out.end();
      splitters.err.end();
    },
    recent: () => recent.text().trimEnd(),
    lastWords: () => lastWords.err || lastWords.out,
    async tail(size) {
      // Only what will be in the file by then: a line that was shown is still there if this process is killed next.
      const remembered = ringTail(size);
      await file.flushed();
      // A disk that keeps nothing is no reason to show nothing.
      const tail = (file.failure === null ? await readTail(path, size) : null) ?? remembered;
      return { ...tail, text: `${tail.text}${begun("out")}${begun("err")}` };
    },
    follow: (size, signal) => followers.follow(ringTail(size), signal),
    async close() {
      followers.end();
      await file.close();
    },
    get failure() {
      return file.failure;
    },
  };

  function begun(stream: "out" | "err"): string {
    const text = splitters[stream].begun();
    return text === "" ? "" : `${stamp()} ${stream}  ${shorten(redact.line(text), KEPT_LINE_MAX)}\n`;
  }

  function ringTail({ bytes, lines }: TailSize): Tail {
    const text = ring.text();
    const shown = bytes === undefined || text.length <= bytes ? text : fromWholeLine(text.slice(-bytes));
    const isCut = ring.isCut || shown.length < text.length;
    return lines === undefined ? { text: shown, isCut } : takeLines(shown, lines, isCut);
  }
}

const fromWholeLine = (text: string): string => text.slice(text.indexOf("\n") + 1);

type Follower = { readonly queue: string[]; lost: number; isOver: boolean; wake: () => void };

/**
 * Those who watch an attempt while it runs. Each has a short queue of its own. One that reads slowly loses the oldest
 * lines of its queue, and is told so; it never slows the attempt, nor the others.
 */
function createFollowers() {
  const all = new Set<Follower>();
  let isOver = false;

  function stop(follower: Follower): void {
    follower.isOver = true;
    all.delete(follower);
    follower.wake();
  }

  return {
    tell(line: string): void {
      for (const follower of all) {
        if (follower.queue.length >= QUEUE_MAX) {
          follower.queue.shift();
          follower.lost += 1;
        }
        follower.queue.push(`${line}\n`);
        follower.wake();
      }
    },
    follow(tail: Tail, signal?: AbortSignal): Following {
      const follower: Follower = { queue: [], lost: 0, isOver: isOver || signal?.aborted === true, wake: () => {} };
      if (!follower.isOver) all.add(follower);
      const onAbort = (): void => stop(follower);
      signal?.addEventListener("abort", onAbort, { once: true });
      const onEnd = (): void => {
        signal?.removeEventListener("abort", onAbort);
        all.delete(follower);
      };
      return { ...tail, lines: linesOf(follower, onEnd) };
    },
    end(): void {
      isOver = true;
      for (const follower of [...all]) stop(follower);
    },
  };
}

async function* linesOf(follower: Follower, onEnd: () => void): AsyncGenerator<string> {
  try {
    for (;;) {
      if (follower.lost > 0) {
        const lost = follower.lost;
        follower.lost = 0;
        yield `[… ${lost} lines are left out here …]\n`;
      }
      const batch = follower.queue.splice(0);
      if (batch.length > 0) yield batch.join("");
      else if (follower.isOver) return;
      else await new Promise<void>((resolve) => (follower.wake = resolve));
    }
  } finally {
    onEnd();
  }
}

/**
 * The latest lines, in memory, up to a size: for error messages, for a result of nothing but output, and for those who
 * follow a running attempt, who must not miss a line between what they read and what comes next.
 */
export function createRing(charactersMax: number) {
  const lines: string[] = [];
  let first = 0;
  let size = 0;
  let isCut = false;
  return {
    push(line: string): void {
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
    /** The latest whole lines, each ended by a newline. */
    text: (): string =>
      lines
        .slice(first)
        .map((line) => `${line}\n`)
        .join(""),
    get isCut(): boolean {
      return isCut;
    },
  };
}
