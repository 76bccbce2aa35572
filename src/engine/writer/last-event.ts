/**
 * When a log ends, by its own time: for a command that looks at it from outside, and asks whether that is in the
 * future.
 */
import { decodeEvent } from "../../log/format/index.ts";
import type { Log } from "../../log/index.ts";
/** The time of the last event; null if there is none to read. */
export async function lastEventAt(log: Log): Promise<number | null> {
  const { seq } = await log.head();
  const record = seq === 0 ? null : await log.readRecord(seq);
  return record === null ? null : decodeEvent(record.bytes, seq).event.at;
}
