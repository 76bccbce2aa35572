/**
 * A cluster in one process: nodes over one journal in memory, each with a replica of its own, on one clock that is
 * turned by hand. A node that is cut off hears nothing of the journal; one that is killed is cut off for good.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import type { TestContext } from "node:test";
import { type Config, readConfig } from "../../src/core/config/index.ts";
import { snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { type FileMedium, memoryMedium } from "../../src/engine/files/medium.ts";
import { type DroverNode, openNode } from "../../src/engine/node/node.ts";
import type { MemoryJournal, MemoryJournalStore } from "../../src/log/journal/memory-journal.ts";
import { createMemoryJournal, createMemoryJournalStore } from "../../src/log/journal/memory-journal.ts";
import { type MemorySharedLog, openMemorySharedLog } from "../../src/log/journal/memory-shared-log.ts";
import { createMemoryStore, type MemoryStore } from "../../src/log/memory/memory-log.ts";
import { createHandClock, type HandClock } from "../../src/std/hand-clock.ts";
import { fewTurns } from "./waits.ts";

export const LEASE_MS = 3000;

export type TestNode = DroverNode & {
  readonly journal: MemoryJournal;
  readonly replica: MemoryStore;
  readonly warnings: string[];
  readonly key: TestKey;
};
/** The public half as a fact of the log has it, and what signs. */
type TestKey = { readonly publicKey: string; readonly signer: { sign(text: string): string } };
export type TestCluster = {
  readonly clock: HandClock;
  readonly store: MemoryJournalStore;
  readonly nodes: TestNode[];
  /** Where each node is reached, once that is known. */
  readonly urls: Map<string, string>;
  /** By how much the date of a node is ahead of the others'. */
  readonly aheadMs: Map<string, number>;
  /** A node over its log, or what the test makes of that. */
  open(id: string, replica?: MemoryStore, seenAs?: (log: MemorySharedLog) => MemorySharedLog): Promise<TestNode>;
  /** The one node that leads. */
  leader(): TestNode;
  followers(): TestNode[];
  /** All that can happen at this instant has happened. */
  settle(): Promise<void>;
  /** The lines of the state of each node. */
  states(): string[];
};

export async function createCluster(
  context: TestContext,
  ids: readonly string[],
  config: object = {},
  fileMedium: (id: string) => FileMedium = memoryMedium,
): Promise<TestCluster> {
  const clock = createHandClock({ at: 1_767_225_600_000 });
  const store = createMemoryJournalStore(clock);
  const nodes: TestNode[] = [];
  const urls = new Map<string, string>();
  const aheadMs = new Map<string, number>();
  let names = 0;

  async function open(
    id: string,
    replica: MemoryStore = createMemoryStore(),
    seenAs = (log: MemorySharedLog): MemorySharedLog => log,
  ): Promise<TestNode> {
    const journal = createMemoryJournal({ store });
    const warnings: string[] = [];
    const key = newKey();
    const log = seenAs(await openMemorySharedLog({ journal, store: replica }));
    const node = await openNode({
      id,
      log,
      clock: { ...clock, now: () => clock.now() + (aheadMs.get(id) ?? 0) },
      config: () => readOwn(config),
      leaseMs: LEASE_MS,
      attemptSecret: "of all nodes",
      advertise: () => urls.get(id) ?? `http://${id}.test`,
      ...key,
      newId: () => `${id}-${++names}`,
      onWarning: (message) => warnings.push(message),
      artifactExists: async () => false,
      fileMedium: fileMedium(id),
    });
    const opened = { ...node, journal, replica, warnings, key };
    nodes.push(opened);
    await settle();
    return opened;
  }

  async function settle(): Promise<void> {
    await fewTurns(40);
    await clock.settle();
  }
  const leads = ({ life }: TestNode): boolean => life().role === "leader" && !life().signal.aborted;
  context.after(async () => {
    for (const node of nodes) {
      node.journal.fault({ cut: "none", hold: null });
      const closed = node.close();
      // What a node waits for when it closes comes with the time.
      await clock.advance(1000);
      await closed;
    }
  });
  const cluster: TestCluster = {
    clock,
    store,
    nodes,
    urls,
    aheadMs,
    open,
    settle,
    leader() {
      const [first, ...more] = nodes.filter(leads);
      if (first === undefined || more.length > 0) throw new Error(`${more.length + (first ? 1 : 0)} nodes lead`);
      return first;
    },
    followers: () => nodes.filter((node) => !leads(node)),
    states: () => nodes.map(({ life }) => [...snapshotLines(life().drover.state)].join("\n")),
  };
  for (const id of ids) await open(id);
  return cluster;
}

function readOwn(given: object): Config {
  const read = readConfig(given);
  if (!read.ok) throw new Error(JSON.stringify(read.failure));
  return read.value;
}

function newKey(): TestKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKey.export({ type: "spki", format: "der" }).toString("base64"),
    signer: { sign: (text) => sign(null, Buffer.from(text), privateKey).toString("hex") },
  };
}
