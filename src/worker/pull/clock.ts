/**
 * The time by which a pull worker lives: it only goes forwards, and is the same in all threads of the process.
 *
 * A lease is a matter of spans, not of dates: the clock on the wall may be set back or ahead meanwhile.
 */

export type Clock = {
  /** Milliseconds from some beginning. */
  now(): number;
  /** Rings once, then or soon after; answers how to call it off. */
  setAlarm(at: number, ring: () => void): () => void;
  /** Runs later, soon, and after what has arrived meanwhile. */
  defer(turn: () => void): void;
};

const NANOSECONDS_PER_MS = 1e6;
/** A timer that is set for longer would ring at once. */
const TIMER_MS_MAX = 2_000_000_000;

export const realClock: Clock = {
  now: () => Number(process.hrtime.bigint()) / NANOSECONDS_PER_MS,
  setAlarm(at, ring) {
    const timer = setTimeout(ring, Math.min(TIMER_MS_MAX, Math.max(0, Math.ceil(at - realClock.now()))));
    return () => clearTimeout(timer);
  },
  defer: (turn) => void setImmediate(turn),
};

/**
 * Until when the lease holds, for all threads to read: the connection writes it, the handlers ask before they begin.
 */
export type LeaseCell = { readonly shared: SharedArrayBuffer; read(): number; write(leaseEnd: number): void };

export function createLeaseCell(shared: SharedArrayBuffer = new SharedArrayBuffer(8)): LeaseCell {
  const cell = new BigInt64Array(shared);
  return {
    shared,
    read: () => Number(Atomics.load(cell, 0)),
    write: (leaseEnd) => void Atomics.store(cell, 0, BigInt(Math.max(0, Math.floor(leaseEnd)))),
  };
}
