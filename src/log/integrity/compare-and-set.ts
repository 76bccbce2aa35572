/**
 * Whether a batch may be appended: the one comparison that all safety rests on.
 *
 * It looks at the head record alone (the absence of a later key proves nothing once a log can
 * be pruned). A head that already carries this batch's id, ends where this batch would end and has the
 * hash this batch would have is a repeat of an append whose answer was lost: it is answered
 * `appended`, whoever leads by now, because it is true. Every driver runs this inside the transaction
 * that stores the outcome.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { type BatchRow, sealBatch } from "../format/batch-row.ts";
import { fromHex, toHex } from "../format/chain.ts";
import type { Appended, Conflict, Head } from "../log.ts";
import { linkBefore, type RowSource } from "./page.ts";

export type AppendAsk = {
  readonly after: Seq;
  readonly epoch: number;
  readonly batchId: string;
  readonly count: number;
  /** The packed records. */
  readonly bytes: Uint8Array;
};

type Store = { readonly type: "store"; readonly row: BatchRow; readonly head: Head };

export function planAppend(source: RowSource, ask: AppendAsk): Appended | Conflict | Store {
  const { head } = source;
  if (looksRepeated(head, ask)) {
    const row = seal(ask, linkBefore(source, seq(ask.after + 1)));
    return { type: toHex(row.postHash) === head.hash ? "appended" : "conflict", head };
  }
  if (head.seq !== ask.after || head.epoch > ask.epoch) return { type: "conflict", head };
  const row = seal(ask, fromHex(head.hash));
  const { epoch, batchId } = ask;
  return { type: "store", row, head: { seq: row.lastSeq, hash: toHex(row.postHash), epoch, batchId } };
}

const looksRepeated = (head: Head, { after, batchId, count }: AppendAsk): boolean =>
  head.batchId === batchId && head.seq === after + count;

const seal = ({ after, epoch, batchId, count, bytes }: AppendAsk, priorHash: Uint8Array): BatchRow =>
  sealBatch({ firstSeq: seq(after + 1), epoch, batchId, count, bytes, priorHash });
