/**
 * The lead: a key under a lease, which etcd deletes when the lease is not renewed.
 *
 * Whoever finds it free writes it, and raises the epoch of the head in the same transaction: from then on every append
 * under an older epoch is refused, whatever its writer believes of its lease. A lease of etcd has whole seconds, and is
 * given anew in full when etcd itself gets another leader: both only make the next one wait longer.
 */
import type { Clock } from "../../std/index.ts";
import { keepLease, type Lease } from "../journal/lease.ts";
import { LogFailure } from "../log.ts";
import type { KeyValue } from "./answers.ts";
import { compareHead, storedHead } from "./appending.ts";
import type { EtcdClient } from "./client.ts";
import { unlessFault } from "./fault.ts";
import { type Keys, readLead, writeHead, writeLead } from "./records.ts";

export type LeadInput = {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly node: string;
  readonly ttlMs: number;
  /** Nobody wants it any more. */
  readonly ends: AbortSignal;
};

/** Turns in which others write the head between our look and our transaction. */
const TURNS_MAX = 16;
/** A member that hangs must not cost the lease: the next one is asked while there is time. */
const TRIES_PER_LEASE = 6;

/** Whether it may be taken: nobody has it, or an earlier life of this node. */
export const isFree = (found: KeyValue | null, node: string): boolean =>
  found === null || readLead(found.value)?.node === node;

/** Takes the lead if it is free; else null. */
export async function takeLead(input: LeadInput): Promise<Lease | null> {
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    const taken = await tryToTake(input);
    if (taken !== "changed") return taken;
    if (input.ends.aborted) return null;
  }
  throw new LogFailure("unreachable", `the head of the journal changed ${TURNS_MAX} times while the lead was free`);
}

async function tryToTake(input: LeadInput): Promise<Lease | null | "changed"> {
  const { client, keys, clock, node, ttlMs } = input;
  const { ranges } = await client.txn({ compare: [], success: [rangeOf(keys.lead), rangeOf(keys.head)] });
  const found = ranges[0]?.[0] ?? null;
  if (!isFree(found, node)) return null;
  const stored = storedHead(ranges[1]?.[0]);
  const epoch = stored.head.epoch + 1;
  const sentAt = clock.elapsed();
  const lease = await client.grantLease(Math.ceil(ttlMs / 1000));
  const txn = {
    compare: [{ key: keys.lead, modRevision: found?.modRevision ?? 0 }, compareHead(keys, stored)],
    success: [
      { put: keys.lead, value: writeLead({ node, epoch }), lease },
      { put: keys.head, value: writeHead({ ...stored.head, epoch }) },
    ],
  };
  // Where this answer is lost the caller tries again, and finds a lead of this node's own.
  if ((await client.txn(txn)).succeeded) return keep(input, { epoch, lease, sentAt });
  await client.revokeLease(lease).catch(unlessFault);
  return "changed";
}

const rangeOf = (key: string): { range: { key: string } } => ({ range: { key } });

type Taken = { readonly epoch: number; readonly lease: string; readonly sentAt: number };

function keep({ client, keys, clock, ttlMs }: LeadInput, { epoch, lease, sentAt }: Taken): Lease {
  const limits = { limitMs: Math.ceil(ttlMs / TRIES_PER_LEASE) };
  void client.seekLeader(limits);
  return keepLease({
    epoch,
    ttlMs,
    clock,
    sentAt,
    renew: async () => {
      const [isAlive, found] = await Promise.all([client.keepAlive(lease, limits), client.get(keys.lead, limits)]);
      // Whoever appends goes straight to the member that decides.
      void client.seekLeader(limits);
      return isAlive && found?.lease === lease;
    },
    giveUp: () => client.revokeLease(lease),
  });
}
