/**
 * A log in memory whose appends a test can hold back, lose, refuse or break.
 *
 * It stands between the engine and a real log and notes every append, so that a test can say what was on its way to
 * the disk, in which batches, and what the engine said meanwhile. Two appends at once are a fault of the engine, and so
 * is one whose bytes change while it is held.
 */
import assert from "node:assert/strict";
import type { AppendResult, Log, LogFailure } from "../../src/log/log.ts";
import { createMemoryLog, createMemoryStore, type MemoryStore } from "../../src/log/memory/memory-log.ts";

export type Append = { readonly batchId: string; readonly firstSeq: number; readonly events: number };
type Fate =
  | { readonly type: "fail"; readonly error: LogFailure | Error }
  /** The answer is lost, whether the batch landed or not. */
  | { readonly type: "lose"; readonly landed: boolean };

export type LogInHand = {
  readonly log: Log;
  readonly store: MemoryStore;
  readonly appends: Append[];
  /** Appends wait from now on. */
  hold(): void;
  /** The one that waits goes on, and none waits any more. */
  release(): void;
  /** What becomes of the next appends, in order. */
  next(...fates: Fate[]): void;
};

export function createLogInHand(store: MemoryStore = createMemoryStore()): LogInHand {
  const inner = createMemoryLog({ store });
  const appends: Append[] = [];
  const fates: Fate[] = [];
  let inFlight = 0;
  let held: PromiseWithResolvers<void> | null = null;

  async function append(...call: Parameters<Log["append"]>): Promise<AppendResult> {
    const [, , batch, batchId] = call;
    assert.equal(inFlight, 0, "one append is in flight at a time");
    inFlight++;
    try {
      appends.push({ batchId, firstSeq: batch.firstSeq, events: batch.records.length });
      const given = Buffer.from(batch.unhashed?.bytes ?? []);
      await held?.promise;
      assert.ok(given.equals(batch.unhashed?.bytes ?? given), "bytes on their way to the disk are left alone");
      const fate = fates.shift();
      if (fate?.type === "fail") throw fate.error;
      if (fate?.type !== "lose") return await inner.append(...call);
      if (fate.landed) await inner.append(...call);
      return { type: "unknown", cause: "the answer was lost" };
    } finally {
      inFlight--;
    }
  }

  return {
    log: { ...inner, append },
    store,
    appends,
    hold: () => {
      held ??= Promise.withResolvers();
    },
    release: () => {
      held?.resolve();
      held = null;
    },
    next: (...more) => void fates.push(...more),
  };
}
