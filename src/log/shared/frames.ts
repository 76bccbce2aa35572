/**
 * What a node gives another of its replica, as one stream of frames:
 *
 *     1 byte    what it is
 *     4 bytes   the length of what follows, big endian
 *     …         facts and kept entries as JSON; a batch as a journal keeps it; a block of payloads behind its number;
 *               a part of the snapshot
 *
 * The last frame says that it is the end: a stream that was cut off is no answer.
 */
import { LogFailure } from "../log.ts";

export const KIND = { facts: 1, batch: 2, kept: 3, block: 4, snapshot: 5, end: 6 } as const;
type Kind = (typeof KIND)[keyof typeof KIND];
export type Frame = { readonly kind: number; readonly body: Buffer };

const HEAD_BYTES = 5;
/** More than the largest batch that there can be, packed. */
const FRAME_BYTES_MAX: number = 512 * 1024 * 1024;

export function frame(kind: Kind, body: Uint8Array = new Uint8Array(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(kind, 0);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
export const jsonFrame = (kind: Kind, value: unknown): Buffer =>
  frame(kind, Buffer.from(JSON.stringify(value), "utf8"));
export const jsonIn = ({ body }: Frame): unknown => JSON.parse(body.toString("utf8"));

/** The frames of a stream up to its end, which must be there. */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length < neededFor(parts)) continue;
    let rest = Buffer.concat(parts);
    for (let needed = neededFor([rest]); rest.length >= needed; needed = neededFor([rest])) {
      const kind = rest.readUInt8(0);
      if (kind === KIND.end) return;
      yield { kind, body: rest.subarray(HEAD_BYTES, needed) };
      rest = rest.subarray(needed);
    }
    parts = [rest];
    length = rest.length;
  }
  throw new LogFailure("unreachable", "what the other node sent was cut off");
}

/** How many bytes the first frame takes, as far as that can be seen. */
function neededFor([first = new Uint8Array(0), ...more]: readonly Uint8Array[]): number {
  const head = first.length >= HEAD_BYTES ? first : Buffer.concat([first, ...more]).subarray(0, HEAD_BYTES);
  if (head.length < HEAD_BYTES) return HEAD_BYTES;
  const length = Buffer.from(head.buffer, head.byteOffset, HEAD_BYTES).readUInt32BE(1);
  if (length <= FRAME_BYTES_MAX) return HEAD_BYTES + length;
  throw new LogFailure("refused", "what the other node sent is no part of a log");
}
