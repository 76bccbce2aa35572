/**
 * Records that are asked for one by one, and fetched from the thread together: what is asked for in one turn is one
 * question. A worker that gets a hundred tasks whose bodies are not at hand would else take a hundred.
 */
import type { Seq } from "../../core/base/index.ts";
import type { LogRecord } from "../log.ts";
import type { PackedRecords } from "./record-reader.ts";
import type { StoreThread } from "./thread-client.ts";

/** The records of one question, at most. */
const RECORDS_MAX = 256;

type Ask = PromiseWithResolvers<LogRecord | null> & { readonly wanted: Seq };

export function createRecordAsks(thread: Pick<StoreThread, "ask">): (wanted: Seq) => Promise<LogRecord | null> {
  let gathered: Ask[] = [];

  async function askFor(asks: readonly Ask[]): Promise<void> {
    try {
      const wanted = asks.map((ask) => ask.wanted);
      const records = unpackRecords(await thread.ask("records", wanted));
      for (const [index, ask] of asks.entries()) ask.resolve(records[index] ?? null);
    } catch (error) {
      // One that is damaged is no other's misfortune.
      if (asks.length > 1) for (const ask of asks) void askFor([ask]);
      else asks[0]?.reject(error);
    }
  }
  function send(): void {
    const asks = gathered;
    gathered = [];
    for (let at = 0; at < asks.length; at += RECORDS_MAX) void askFor(asks.slice(at, at + RECORDS_MAX));
  }
  return (wanted) => {
    if (gathered.length === 0) queueMicrotask(send);
    const ask: Ask = { wanted, ...Promise.withResolvers<LogRecord | null>() };
    gathered.push(ask);
    return ask.promise;
  };
}

/** They lie in the one block that they came in. */
function unpackRecords({ bytes, ends, payloadHashes }: PackedRecords): (LogRecord | null)[] {
  let at = 0;
  const cut = (end: number): Uint8Array => {
    const part = bytes.subarray(at, end);
    at = end;
    return part;
  };
  return payloadHashes.map((payloadHash, index) => {
    const [eventEnd, payloadEnd] = ends.subarray(index * 2, index * 2 + 2) as unknown as [number, number];
    if (eventEnd < 0) return null;
    const event = cut(eventEnd);
    if (payloadEnd < 0) return { bytes: event };
    return { bytes: event, payload: cut(payloadEnd), ...(payloadHash === null ? {} : { payloadHash }) };
  });
}
