/**
 * From a child's pipe to the reader of its output, without holding up other work.
 *
 * A child that prints as fast as it can fills a pipe with thirty thousand lines, and what is done for each line keeps
 * the event loop busy: eight such children and a server beside them answers nobody for half a second. So a chunk is
 * handed on in slices of some lines, and all pumps of a process take turns, a slice in each turn of the event loop.
 * Meanwhile the pipe is not read, so a child that prints more than is taken waits, as it would for a slow terminal. A
 * chunk of few lines is handed on at once.
 */
import type { Readable } from "node:stream";

const SLICE_LINES = 256;
const NEWLINE = 10;

type Pump = {
  /** Resolves when everything that came has been handed on; asked for when nothing more comes. */
  drained(): Promise<void>;
  /** Hands on what is left, at once, and reads no more. */
  end(): void;
};

export function createPump(stream: Readable, take: (piece: Buffer) => void): Pump {
  const chunks: Buffer[] = [];
  let idle = Promise.withResolvers<void>();
  idle.resolve();

  /** Hands on one slice; answers whether anything is left. */
  function step(): boolean {
    const chunk = chunks[0];
    if (chunk === undefined) return false;
    const end = endOfSlice(chunk);
    if (end < chunk.length) chunks[0] = chunk.subarray(end);
    else chunks.shift();
    take(chunk.subarray(0, end));
    return chunks.length > 0;
  }

  function goOn(): void {
    if (step()) return nextTurn(goOn);
    idle.resolve();
    stream.resume();
  }

  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    // A child that has ended is read to its end whether the pipe was paused or not: then there is more than one.
    if (chunks.length > 1 || !step()) return;
    idle = Promise.withResolvers();
    stream.pause();
    nextTurn(goOn);
  });
  return {
    drained: () => idle.promise,
    end() {
      while (step());
      idle.resolve();
    },
  };
}

function endOfSlice(chunk: Buffer): number {
  let end = 0;
  for (let lines = 0; lines < SLICE_LINES; lines++) {
    const at = chunk.indexOf(NEWLINE, end);
    if (at < 0) return chunk.length;
    end = at + 1;
  }
  return end;
}

/** At most one for each pipe. */
const waiting: (() => void)[] = [];

/** One in each turn of the event loop, whichever pump it is of. */
function nextTurn(work: () => void): void {
  waiting.push(work);
  if (waiting.length === 1) setImmediate(serve);
}

function serve(): void {
  const work = waiting.shift();
  if (waiting.length > 0) setImmediate(serve);
  work?.();
}
