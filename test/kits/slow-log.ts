/**
 * A log in memory that is slow once: the answer to the first batch with some kind of event, or a later one, waits until
 * it is let go, as it would for a disk. It may be opened again and again.
 */
import type { Event } from "../../src/core/model/events.ts";
import { decodeEvent } from "../../src/log/format/codec.ts";
import type { Log } from "../../src/log/log.ts";
import { createMemoryLog } from "../../src/log/memory/memory-log.ts";

export type SlowLog = {
  readonly log: Log;
  /** Such a batch is there, and nobody has been told so. */
  readonly isWaiting: Promise<void>;
  letGo(): void;
};

export function slowLog(kind: Event["kind"], nth = 1): SlowLog {
  const log = createMemoryLog();
  const reached = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  let count = 0;
  const append: Log["append"] = async (after, epoch, batch, batchId) => {
    const isMeant = batch.records.some(({ bytes }) => decodeEvent(bytes, 1 as never).event.kind === kind);
    const isSlow = isMeant && ++count === nth;
    const appended = await log.append(after, epoch, batch, batchId);
    if (isSlow) {
      reached.resolve();
      await gone.promise;
    }
    return appended;
  };
  return { log: { ...log, append, close: async () => {} }, isWaiting: reached.promise, letGo: gone.resolve };
}
