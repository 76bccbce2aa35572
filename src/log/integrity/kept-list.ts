/**
 * The payloads that outlive their events, with the hashes that those events held.
 *
 * A task may wait longer than its submit is kept. Then its body is still there, and the event that holds its hash is
 * not. So pruning writes that hash down first, for every payload that stays, and signs the list: a payload of it that
 * was changed or taken away is noticed as any other. The list is written anew by each pruning, a few entries at a
 * time, under a number of its own; it is in force from the moment that it is signed.
 */
import { createHash } from "node:crypto";
import type { Seq } from "../../core/base/index.ts";
import { hashOfPayload } from "../format/codec.ts";
import { type Seal, type Signed, sealOf } from "./signing-key.ts";

export type KeptList = Signed<KeptClaim>;
export type KeptClaim = {
  readonly run: number;
  /** No event behind this one was pruned when the list was signed: an older list does not fit a log that was. */
  readonly upTo: Seq;
  /** sha256 over its entries in their order, in hex. */
  readonly hash: string;
};

/** Hashes the entries of a list as they come. */
export function createListHash(): { add(seq: Seq, hash: string): void; digest(): string } {
  const hash = createHash("sha256");
  return {
    add: (seq, payloadHash) => void hash.update(`${seq} ${payloadHash}\n`),
    digest: () => hash.digest("hex"),
  };
}

export const keptListSeal: Seal<KeptClaim> = sealOf(({ run, upTo, hash }) => `drover kept 1 ${run} ${upTo} ${hash}`);

/** What is wrong with what lies beside an event; null if nothing is. */
export function payloadProblem(at: Seq, expected: string | null, payload: Uint8Array | null): string | null {
  if (expected === null) return null;
  if (payload === null) return `the payload of event ${at} is missing`;
  return hashOfPayload(payload) === expected ? null : `the payload of event ${at} is not what was written`;
}
