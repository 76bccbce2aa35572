/**
 * The journal on etcd keeps the promises of a journal, on one member and on three.
 */
import { after, test } from "node:test";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { realClock, restFor } from "../../std/index.ts";
import { journalContract } from "../contract/journal-contract.ts";
import type { Journal } from "../journal/journal.ts";
import { openEtcdJournal } from "./journal.ts";

if (etcdMissing !== false) test("the journal on etcd keeps the promises of a journal", { skip: etcdMissing });
else for (const members of [1, 3]) contractOn(members);

function contractOn(members: number): void {
  let starting: Promise<EtcdCluster> | null = null;
  let opened = 0;
  journalContract(`the journal on etcd with ${members} member(s)`, async () => {
    starting ??= startEtcd({ members });
    const url = (await starting).url(`story-${opened++}`);
    const handles: Journal[] = [];
    return {
      handle: async () => {
        const journal = await openEtcdJournal({ url });
        handles.push(journal);
        return journal;
      },
      pass: (ms) => restFor(realClock, ms),
      dispose: async () => void (await Promise.all(handles.map((journal) => journal.close()))),
    };
  });
  after(async () => (await starting)?.[Symbol.asyncDispose]());
}
