/**
 * What waits to leave in a bulk, in the order in which it came, and how much of it one bulk may have.
 *
 * A bulk that was too large is put back: its calls go before all that came later, in bulks that are smaller.
 */
import { PassingMap } from "../core/collections/index.ts";
import type { ClientError } from "./client-error.ts";

/** More save nothing, and the server takes longer over them than the next should wait. */
const CALLS_MAX = 256;
/** Characters: the usual `server.bodyLimit` holds as many of any kind. Once a bulk was too large, bytes are counted. */
const TEXT_MAX = 256 * 1024;
/** What is around the calls. */
const FRAME_BYTES = '{"calls":[]}'.length;
/** Bulks are not made smaller than the least `server.bodyLimit`. */
const TEXT_MIN = 1024 - FRAME_BYTES;

export type InLine = {
  readonly text: string;
  /** From 1, in the order in which they came. */
  readonly number: number;
  readonly signal: AbortSignal | undefined;
  /** Whether no other may follow it in its bulk: what has left may wait for a bulk of its number. */
  isLast: boolean;
};
export type Line<Call> = {
  isEmpty(): boolean;
  add(call: Call): void;
  remove(call: Call): void;
  /** The calls of the next bulk. */
  take(): readonly Call[];
  /** Those of a bulk that was refused as too large. */
  putBack(calls: readonly Call[], refusal: Partial<ClientError>): void;
};

export function createLine<Call extends InLine>(): Line<Call> {
  /** Each may be given up, so it is taken out without a look at the others. */
  const waiting = new PassingMap<Call, Call>();
  let textMax = TEXT_MAX;
  /** With the comma behind it. */
  let sizeOf = ({ text }: Call): number => text.length + 1;
  return {
    isEmpty: () => waiting.size === 0,
    add: (call) => waiting.set(call, call),
    remove: (call) => void waiting.delete(call),
    take() {
      const taken: Call[] = [];
      let size = 0;
      for (const call of waiting.values()) {
        size += sizeOf(call);
        if (taken.length >= CALLS_MAX || (taken.length > 0 && size > textMax)) break;
        waiting.delete(call);
        taken.push(call);
        if (call.isLast) break;
      }
      return taken;
    },
    putBack(calls, refusal) {
      sizeOf = ({ text }) => Buffer.byteLength(text) + 1;
      const size = calls.reduce((sum, call) => sum + sizeOf(call), 0);
      textMax = Math.min(textMax, textMaxAfter(refusal, size));
      const wanted = calls.filter(({ signal }) => signal?.aborted !== true);
      const ends = [wanted.at(-1), size > textMax ? undefined : wanted[Math.ceil(wanted.length / 2) - 1]];
      for (const call of ends) if (call !== undefined) call.isLast = true;
      // What came later may be back already, if it was refused as well.
      const inOrder = [...wanted, ...waiting.values()].sort((left, right) => left.number - right.number);
      waiting.clear();
      for (const call of inOrder) waiting.set(call, call);
    },
  };
}

/** What the server says it takes; half of what was refused where that says nothing. */
function textMaxAfter({ details = {} }: Partial<ClientError>, size: number): number {
  const { bodyLimit } = details;
  const most = typeof bodyLimit === "number" ? bodyLimit - FRAME_BYTES : size;
  return Math.max(TEXT_MIN, most < size ? most : size / 2);
}
