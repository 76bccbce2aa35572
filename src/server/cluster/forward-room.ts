/**
 * How many calls a node has at other nodes at once, and how large their bodies may be together.
 */
export type ForwardLimits = {
  /** Calls under way at once, those that are held included. */
  readonly forwardsMax: number;
  /** Of the bodies they have. */
  readonly forwardBytesMax: number;
};
export type ForwardRoom = {
  /** Answers how to give the room back; null if there is none. */
  take(size: number): (() => void) | null;
  /** Calls under way. */
  count(): number;
};

export function createForwardRoom({ forwardsMax, forwardBytesMax }: ForwardLimits): ForwardRoom {
  let [underWay, bytes] = [0, 0];
  return {
    take(size) {
      if (underWay >= forwardsMax || bytes + size > forwardBytesMax) return null;
      underWay++;
      bytes += size;
      return () => {
        underWay--;
        bytes -= size;
      };
    },
    count: () => underWay,
  };
}
