/**
 * By which a leader knows that a node has sent a call on: that one has looked at the size of its body, and the ids that
 * it gave do not count.
 *
 * Sealed with the secret of their journal, for the caller's own token and the length that is sent. With another call it
 * is worth nothing, so it needs no time: sent once more it is the same call again, of the same caller.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { isSha256 } from "../../core/base/index.ts";

export type SentOn = {
  /** The header of the caller; undefined if it has sent none. */
  readonly authorization: string | undefined;
  /** Of the body, as its header says it. */
  readonly length: string | undefined;
};

export const forwardSeal = (secret: string, call: SentOn): string => sealOf(secret, call).toString("hex");

export const isForwardSeal = (secret: string, call: SentOn, given: unknown): boolean =>
  isSha256(given) && timingSafeEqual(sealOf(secret, call), Buffer.from(given, "hex"));

const sealOf = (secret: string, { authorization = "", length = "" }: SentOn): Buffer =>
  createHmac("sha256", secret).update(`drover forward 1 ${length} ${authorization}`).digest();
