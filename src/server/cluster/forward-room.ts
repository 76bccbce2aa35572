/**
 * How many calls a node has at other nodes at once, and how large their bodies may be together.
 *
 * As with calls that wait, the last tenth of both is kept for callers that have few, and a worker's sync may have the
 * last (http/shared-slots.ts).
 */
import { createSharedSlots, type Holder } from "../../http/index.ts";

export type ForwardLimits = {
  /** Calls under way at once, those that are held included. */
  readonly forwardsMax: number;
  /** Of the bodies they have. */
  readonly forwardBytesMax: number;
};
export type Forwarded = {
  readonly holder: Holder;
  /** Of its body. */
  readonly size?: number;
  /** Whether it may have the last. */
  readonly isNeeded?: boolean;
};
export type ForwardRoom = {
  /** Answers how to give the room back; null if there is none for this caller. */
  take(call: Forwarded): (() => void) | null;
  /** Calls under way. */
  count(): number;
};

export function createForwardRoom({ forwardsMax, forwardBytesMax }: ForwardLimits): ForwardRoom {
  const [calls, bytes] = [createSharedSlots(forwardsMax), createSharedSlots(forwardBytesMax)];
  return {
    take({ holder, size = 0, isNeeded = false }) {
      const leave = calls.take(holder, { isNeeded });
      if (leave === null || size === 0) return leave;
      const giveBack = bytes.take(holder, { isNeeded, slots: size });
      if (giveBack === null) {
        leave();
        return null;
      }
      return () => {
        leave();
        giveBack();
      };
    },
    count: calls.count,
  };
}
