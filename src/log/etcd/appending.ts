/**
 * Appending: the head is compared and set in the transaction that stores the batch.
 *
 * What is compared is the whole head record, byte by byte, as this handle knows it; where etcd has another one, it is
 * judged anew by that. The only key whose absence counts is the head itself, before the first thing is written. When an
 * answer is lost nobody knows: that is `unknown`, and a repeat finds its own id in the head.
 */

import { toHex } from "../format/chain.ts";
import { packEntry } from "../journal/entry.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { headAfter, judged } from "../journal/judging.ts";
import { type AppendResult, type Head, LogFailure } from "../log.ts";
import type { KeyValue } from "./answers.ts";
import type { Compare, EtcdClient } from "./client.ts";
import { EtcdFault } from "./fault.ts";
import type { Forgetting } from "./forgetting.ts";
import { EMPTY, type Keys, readHead, splitBlock, writeHead } from "./records.ts";

/** The head and its bytes as they are stored; null bytes if nothing was ever written. */
export type StoredHead = { readonly head: Head; readonly value: Buffer | null };

/** Each turn finds a head that somebody else has written in between: two nodes do not do that for long. */
const TURNS_MAX = 16;

export const storedHead = (found: KeyValue | null | undefined): StoredHead =>
  found === null || found === undefined
    ? { head: EMPTY, value: null }
    : { head: readHead(found.value, found.key), value: found.value };

export const compareHead = ({ head }: Keys, { value }: StoredHead): Compare =>
  value === null ? { key: head, modRevision: 0 } : { key: head, value };

/** Whatever is written, the head is there first: keys without it are taken for somebody else's. */
export async function makeHead({ client, keys }: { readonly client: EtcdClient; readonly keys: Keys }): Promise<void> {
  const success = [{ put: keys.head, value: writeHead(EMPTY) }];
  await client.txn({ compare: [{ key: keys.head, modRevision: 0 }], success });
}

export type Appender = { append(entry: SealedBatch): Promise<AppendResult> };

export function createAppender(client: EtcdClient, keys: Keys, forgetting: Forgetting): Appender {
  /** What the head was when this handle last saw it. A transaction finds out if it is not so any more. */
  let known: StoredHead | null = null;

  async function append(entry: SealedBatch): Promise<AppendResult> {
    const [first, ...further] = splitBlock(await packEntry(entry), entry.postHash);
    const next = headAfter(entry);
    const value = writeHead(next);
    let stored = known ?? storedHead(await client.get(keys.head));
    let areFurtherStored = false;
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const answer = judged(stored.head, entry);
      if (answer !== null) {
        // What is known may be old: only what was just read decides.
        if (known !== stored) return answer;
        known = null;
        stored = storedHead(await client.get(keys.head));
        continue;
      }
      if (!areFurtherStored && further.length > 0) {
        if (stored.value === null) await makeHead({ client, keys });
        await putParts(entry, further);
      }
      areFurtherStored = true;
      known = null;
      const { succeeded, ranges, revision } = await client.txn({
        compare: [compareHead(keys, stored)],
        success: [
          { put: keys.head, value },
          { put: keys.batch(entry.firstSeq), value: first },
        ],
        failure: [{ range: { key: keys.head } }],
      });
      if (succeeded) {
        known = { head: next, value };
        forgetting.wrote(revision);
        return { type: "appended", head: next };
      }
      stored = storedHead(ranges[0]?.[0]);
    }
    throw new LogFailure("unreachable", `the head of the journal changed ${TURNS_MAX} times during one append`);
  }

  async function putParts({ firstSeq, postHash }: SealedBatch, parts: readonly Buffer[]): Promise<void> {
    for (const [index, part] of parts.entries())
      await client.put(keys.part(firstSeq, toHex(postHash), index + 1), part);
  }

  return {
    append: (entry) =>
      append(entry).catch((error: unknown): AppendResult => {
        if (error instanceof EtcdFault && error.type === "lost") return { type: "unknown", cause: error.message };
        throw error;
      }),
  };
}
