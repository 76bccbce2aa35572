/**
 * A log on which things go wrong, when a run says so.
 *
 * Each append may meet one fault. A crash ends the engine's life just before or just after the batch reached the
 * store: either way the answer never comes. An `unknown` answer is a lost one, and the batch did or did not land. A
 * slow append answers later, and lands at its beginning or at its end. Everything else passes through. An engine
 * whose life is over gets no more answers from its log, and cannot write to it.
 */
import type { Log } from "../log/index.ts";
import type { Life } from "./sim-clock.ts";

type CrashOrLoss = "crash-before" | "crash-after" | "unknown-lost" | "unknown-landed";
export type AppendFault = CrashOrLoss | "slow-landed" | "slow-landing";

const SLOW_MS = 700;
const never = <Value>(): Promise<Value> => new Promise(() => {});

export function createFaultyLog(options: {
  readonly inner: Log;
  readonly life: Life;
  /** The fault the next append meets, if any. */
  readonly nextFault: () => AppendFault | null;
  readonly onCrash: () => void;
}): Log {
  const { inner, life, nextFault, onCrash } = options;
  const whileAlive = <Value>(work: () => Promise<Value>): Promise<Value> => (life.isAlive() ? work() : never());
  const rest = (): Promise<void> => new Promise((resolve) => life.after(SLOW_MS, resolve));

  async function append(...call: Parameters<Log["append"]>): ReturnType<Log["append"]> {
    const fault = nextFault();
    switch (fault) {
      case "crash-before":
        onCrash();
        return never();
      case "crash-after":
        await inner.append(...call);
        onCrash();
        return never();
      case "unknown-lost":
        return { type: "unknown", cause: "the request was lost" };
      case "unknown-landed":
        await inner.append(...call);
        return { type: "unknown", cause: "the answer was lost" };
      case "slow-landed": {
        const answer = await inner.append(...call);
        await rest();
        return answer;
      }
      case "slow-landing":
        await rest();
        return inner.append(...call);
      case null:
        return inner.append(...call);
    }
  }

  return {
    ...inner,
    append: (...call) => whileAlive(() => append(...call)),
    readRecord: (seq) => whileAlive(() => inner.readRecord(seq)),
    head: () => whileAlive(() => inner.head()),
    saveSnapshot: (snapshot) => whileAlive(() => inner.saveSnapshot(snapshot)),
    loadSnapshot: (before) => whileAlive(() => inner.loadSnapshot(before)),
    checkpoints: () => whileAlive(() => inner.checkpoints()),
    acquireLead: (node, ttl) => whileAlive(() => inner.acquireLead(node, ttl)),
    prune: (before, keep) => whileAlive(() => inner.prune(before, keep)),
    verify: (how) => whileAlive(() => inner.verify(how)),
    close: () => whileAlive(() => inner.close()),
    [Symbol.asyncDispose]: () => whileAlive(() => inner.close()),
  };
}
