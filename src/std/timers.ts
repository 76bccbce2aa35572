/**
 * Time as the server uses it for its connections: once after a while, and again and again. A test turns it by hand.
 *
 * None of these keeps the process alive: what does is the port it listens on.
 */
export type Timers = {
  /** Since some instant, and never set back: a shutdown whose grace hung on the wall clock might never end. */
  now(): number;
  /** Rings once; answers how to call it off. */
  after(ms: number, ring: () => void): () => void;
  every(ms: number, ring: () => void): () => void;
};

export const realTimers: Timers = {
  now: () => performance.now(),
  after(ms, ring) {
    const timer = setTimeout(ring, ms).unref();
    return () => clearTimeout(timer);
  },
  every(ms, ring) {
    const timer = setInterval(ring, ms).unref();
    return () => clearInterval(timer);
  },
};

/** Everybody else has a turn of the event loop first. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
