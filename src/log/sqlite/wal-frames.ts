/**
 * What SQLite would leave out of its write-ahead file without a word.
 *
 * After a crash SQLite reads that file up to the first frame whose checksum does not hold and takes the rest for the
 * torn end of a transaction that was never answered. Mostly it is. But one flipped bit in the middle looks the same to
 * it, and then everything behind is dropped, acknowledged or not. So the file is read here before SQLite opens it.
 *
 * A checksum goes on from the one before, so behind a damaged frame none holds from the beginning. It still holds as a
 * step: from the checksum *stored* in the frame before to the one stored in the frame itself. A frame for which that is
 * so was written there, by this generation of the file (its salts say so; frames of earlier generations have others).
 *
 * A transaction is fsynced before the next begins. So if a frame was written behind a commit that is itself not before
 * the damaged frame, that commit had been answered, and the file is damaged. In the last transaction a power cut may
 * have left any part out, which is legal. There, only a frame that is a single bit away from being right is damage, and
 * only if all that follows it is there, up to the commit.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { ifThere } from "../../std/index.ts";

export const HEADER_BYTES = 32;
const HEADER_SUMMED_BYTES = 24;
export const FRAME_HEADER_BYTES = 24;
/** Of a frame's header, its page number and the size of the database are summed; the page follows. */
const FRAME_SUMMED_BYTES = 8;
const SALT_AT = 8;
const SUM_AT = 16;
const HEADER_SALT_AT = 16;
const COMMIT_AT = 4;
const COMMIT_WORD = COMMIT_AT / 4;
const MAGIC = 0x377f0682;
const BIG_ENDIAN_BIT = 1;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Frames are counted from 1; 0 is the header of the file. */
export type WalBreak = {
  /** The last frame that SQLite would read, the end of a transaction. */
  readonly recovered: number;
  readonly damaged: number;
  /** The last frame that was written all the same. */
  readonly found: number;
};

/** A checksum, or a salt: two words of 32 bits. */
type Pair = readonly [number, number];
type Frame = { readonly number: number; readonly view: DataView; readonly salt: Pair; readonly sum: Pair };

/** Where the file breaks off before its end, or null if all that was committed will be read. */
export function findWalBreak(path: string, pageBytes: number): WalBreak | null {
  const file = ifThere(() => openSync(path, "r"));
  if (file === null) return null;
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    if (readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return null;
    const read = readHeader(viewOf(header));
    const orders = read.isSound ? [read.bigEndian] : [false, true];
    for (const bigEndian of orders) {
      const found = judge({ ...read, bigEndian }, framesOf(file, pageBytes));
      if (found !== null) return found;
    }
    return null;
  } finally {
    closeSync(file);
  }
}

type Header = {
  readonly isSound: boolean;
  readonly bigEndian: boolean;
  readonly salt: Pair;
  readonly sum: Pair;
  readonly stored: Pair;
};

function readHeader(view: DataView): Header {
  const magic = view.getUint32(0);
  const isMagic = (magic & ~BIG_ENDIAN_BIT) >>> 0 === MAGIC;
  const bigEndian = isMagic && (magic & BIG_ENDIAN_BIT) === 1;
  const sum = summed(view, { from: 0, to: HEADER_SUMMED_BYTES, start: [0, 0], bigEndian });
  const stored = pairAt(view, HEADER_SUMMED_BYTES);
  return { isSound: isMagic && isSame(sum, stored), bigEndian, salt: pairAt(view, HEADER_SALT_AT), sum, stored };
}

function judge(header: Header, frames: Iterable<Frame>): WalBreak | null {
  const step = (start: Pair, frame: Frame): Pair => frameSum(start, frame, header.bigEndian);
  const state = { recovered: 0, link: header.sum, damage: header.isSound ? null : damagedHeader(header) };
  let before: Frame | null = null;
  for (const frame of frames) {
    const { damage } = state;
    if (damage !== null) hear(damage, frame, before, step);
    else {
      const sum = step(state.link, frame);
      if (isSame(sum, frame.sum) && isSame(frame.salt, header.salt)) {
        state.link = sum;
        if (isCommit(frame)) state.recovered = frame.number;
      } else state.damage = damagedFrame(frame, sum, header);
    }
    before = frame;
  }
  const { recovered, damage } = state;
  if (damage === null || damage.found === 0) return null;
  return damage.isAnswered || (damage.isFlip && damage.commit > 0 && !damage.isTorn)
    ? { recovered, damaged: damage.number, found: damage.found }
    : null;
}

/** What is known of the first frame that does not hold, and of those behind it. */
type Damage = {
  readonly number: number;
  /** What the checksum of the next may go on from: whichever of its own is the right one. */
  readonly sums: readonly Pair[];
  /** The salts of this generation; of a file whose header is damaged, those of its first frame. */
  salt: Pair | null;
  /** Whether one flipped bit explains it. */
  readonly isFlip: boolean;
  /** The last commit from there on, and the last frame that was written; 0 if there is none. */
  commit: number;
  found: number;
  /** Whether that transaction had been answered: another was begun behind it. */
  isAnswered: boolean;
  /** Whether more of its transaction is not as it was written. */
  isTorn: boolean;
};

const damageOf = (known: Omit<Damage, "isAnswered" | "isTorn">): Damage => ({
  ...known,
  isAnswered: false,
  isTorn: false,
});

const damagedHeader = ({ sum, stored }: Header): Damage =>
  damageOf({ number: 0, sums: [sum, stored], salt: null, isFlip: true, commit: 0, found: 0 });

function damagedFrame(frame: Frame, sum: Pair, header: Header): Damage {
  const { number, salt } = frame;
  const isOwn = isSame(salt, header.salt);
  const word = isOwn ? flippedWord(frame, sum, header.bigEndian) : null;
  const isFlip = isOwn
    ? word !== null || bitsApart(sum, frame.sum) === 1
    : bitsApart(salt, header.salt) === 1 && isSame(sum, frame.sum);
  const commit = isCommit(frame) || word === COMMIT_WORD ? number : 0;
  const sums = [sum, frame.sum];
  return damageOf({ number, sums, salt: header.salt, isFlip, commit, found: isFlip ? number : 0 });
}

/** Takes note of a frame behind the damaged one. */
function hear(damage: Damage, frame: Frame, before: Frame | null, step: (start: Pair, frame: Frame) => Pair): void {
  damage.salt ??= frame.salt;
  const starts = before === null || before.number === damage.number ? damage.sums : [before.sum];
  const isWritten = isSame(frame.salt, damage.salt) && starts.some((start) => isSame(step(start, frame), frame.sum));
  if (!isWritten) {
    damage.isTorn ||= damage.commit === 0;
    return;
  }
  damage.found = frame.number;
  if (damage.commit > 0 && damage.commit === before?.number) damage.isAnswered = true;
  if (isCommit(frame)) damage.commit = frame.number;
}

/** Whole frames in their order. What one holds is good until the next is asked for, but for its numbers. */
function* framesOf(file: number, pageBytes: number): Generator<Frame> {
  const size = FRAME_HEADER_BYTES + pageBytes;
  const chunk = Buffer.alloc(Math.max(1, Math.floor(CHUNK_BYTES / size)) * size);
  for (let number = 1, at = HEADER_BYTES; ; at += chunk.length) {
    const read = readFully(file, chunk, at);
    for (let start = 0; start + size <= read; start += size, number++) {
      const view = new DataView(chunk.buffer, chunk.byteOffset + start, size);
      yield { number, view, salt: pairAt(view, SALT_AT), sum: pairAt(view, SUM_AT) };
    }
    if (read < chunk.length) return;
  }
}

function readFully(file: number, target: Buffer, position: number): number {
  let read = 0;
  while (read < target.length) {
    const more = readSync(file, target, read, target.length - read, position + read);
    if (more === 0) break;
    read += more;
  }
  return read;
}

type Sum = { readonly from: number; readonly to: number; readonly start: Pair; readonly bigEndian: boolean };

/** SQLite's checksum over words of 32 bits, going on from another. */
function summed(view: DataView, { from, to, start, bigEndian }: Sum): Pair {
  let [first, second] = start;
  for (let at = from; at < to; at += 8) {
    first = (first + view.getUint32(at, !bigEndian) + second) | 0;
    second = (second + view.getUint32(at + 4, !bigEndian) + first) | 0;
  }
  return [first, second];
}

function frameSum(start: Pair, { view }: Frame, bigEndian: boolean): Pair {
  const head = summed(view, { from: 0, to: FRAME_SUMMED_BYTES, start, bigEndian });
  return summed(view, { from: FRAME_HEADER_BYTES, to: view.byteLength, start: head, bigEndian });
}

/**
 * The word of a frame in which one flipped bit explains its checksum. What one word adds to a checksum is that word
 * times a number that depends on its place only; those numbers are computed from the end.
 */
function flippedWord({ view, sum: stored }: Frame, sum: Pair, bigEndian: boolean): number | null {
  const missing: Pair = [(stored[0] - sum[0]) | 0, (stored[1] - sum[1]) | 0];
  const words = (FRAME_SUMMED_BYTES + view.byteLength - FRAME_HEADER_BYTES) / 4;
  let even: Pair = [1, 1];
  let odd: Pair = [0, 1];
  for (let word = words - 1; word > 0; word -= 2) {
    if (isFlippedBy(wordAt(view, word, bigEndian), odd, missing)) return word;
    if (isFlippedBy(wordAt(view, word - 1, bigEndian), even, missing)) return word - 1;
    even = oneFurther(even);
    odd = oneFurther(odd);
  }
  return null;
}

const oneFurther = ([first, second]: Pair): Pair => [(first + second) | 0, (first + 2 * second) | 0];

function isFlippedBy(word: number, [first, second]: Pair, missing: Pair): boolean {
  for (let bit = 0; bit < 32; bit++) {
    const change = ((word >>> bit) & 1) === 0 ? 1 << bit : -(1 << bit);
    if (Math.imul(first, change) === missing[0] && Math.imul(second, change) === missing[1]) return true;
  }
  return false;
}

const wordAt = (view: DataView, word: number, bigEndian: boolean): number =>
  view.getUint32(
    word * 4 < FRAME_SUMMED_BYTES ? word * 4 : word * 4 + FRAME_HEADER_BYTES - FRAME_SUMMED_BYTES,
    !bigEndian,
  );

const isCommit = ({ view }: Frame): boolean => view.getUint32(COMMIT_AT) !== 0;
const pairAt = (view: DataView, at: number): Pair => [view.getInt32(at), view.getInt32(at + 4)];
const isSame = (left: Pair, right: Pair): boolean => left[0] === right[0] && left[1] === right[1];
const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function bitsApart(left: Pair, right: Pair): number {
  let count = 0;
  for (const index of [0, 1] as const) {
    for (let rest = left[index] ^ right[index]; rest !== 0; rest &= rest - 1) count++;
  }
  return count;
}
