/**
 * Forgetting what keys were before.
 *
 * etcd keeps every value that a key ever had until it is told to compact. Each append writes the head anew, and each
 * word of a node its key, so without this a journal that is never pruned fills etcd with heads of before. Every so many
 * writes, a handle has the history before its last one forgotten; that somebody else did so already is no fault, and
 * one that fails is made up for by the next.
 */
import type { EtcdClient } from "./client.ts";
import { unlessFault } from "./fault.ts";

const WRITES_MAX = 10_000;

export type Forgetting = {
  /** Something was written, and this is the revision of it. */
  wrote(revision: number): void;
};

export function createForgetting(client: Pick<EtcdClient, "compact">, writesMax: number = WRITES_MAX): Forgetting {
  let writes = 0;
  return {
    wrote: (revision) => {
      if (++writes < writesMax) return;
      writes = 0;
      void client.compact(revision).catch(unlessFault);
    },
  };
}
