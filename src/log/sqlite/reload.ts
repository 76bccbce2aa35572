/**
 * A replica begins anew behind an event: what it had goes, and payloads that outlived the events before that are taken
 * from elsewhere. Each step is a transaction. The list of kept payloads gathers under the next number, as in pruning,
 * and is in force when it is whole and signed.
 */
import { seq } from "../../core/base/index.ts";
import type { PayloadBlock } from "../format/payload-blocks.ts";
import { createListHash, keptListSeal } from "../integrity/kept-list.ts";
import type { Signer } from "../integrity/signing-key.ts";
import type { Anchor, Head } from "../log.ts";
import type { Database } from "./database.ts";
import type { KeptEntry } from "./signed-tables.ts";
import { NO_LIMIT } from "./tables.ts";

/** Of the list that is in force meanwhile, which is empty, and of the one that gathers. */
const [NOTHING_KEPT, GATHERING] = [0, 1];

type Reload = {
  beginAnew(base: Anchor): null;
  addKept(kept: readonly KeptEntry[]): null;
  addBlock(block: PayloadBlock): null;
  /** Answers the number of the list. */
  endKept(): number;
};

export function createReload(database: Database, signer: Signer, sign: (head: Head) => void): Reload {
  return {
    beginAnew: ({ seq: at, hash }) =>
      database.write("begin anew", () => {
        database.dropAll();
        while (database.dropKeptBut(-1, NO_LIMIT) > 0);
        database.putBase({ seq: at, hash });
        const head = { seq: at, hash, epoch: 0, batchId: "" };
        database.putHead(head);
        const list = { run: NOTHING_KEPT, upTo: at, hash: createListHash().digest() };
        database.putKeptList(keptListSeal.sign(signer, list));
        sign(head);
        return null;
      }),
    addKept: (kept) =>
      database.write("take kept payloads", () => {
        for (const entry of kept) database.putKept(GATHERING, entry);
        return null;
      }),
    addBlock: (block) =>
      database.write("take kept payloads", () => {
        database.putBlock(block);
        return null;
      }),
    endKept: () =>
      database.write("sign the list of kept payloads", () => {
        const hash = createListHash();
        for (const entry of database.kept({ run: GATHERING, after: seq(0), limit: NO_LIMIT }))
          hash.add(entry.seq, entry.hash);
        const { base } = database.source();
        database.putKeptList(keptListSeal.sign(signer, { run: GATHERING, upTo: base.seq, hash: hash.digest() }));
        return GATHERING;
      }),
  };
}
