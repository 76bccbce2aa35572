/**
 * Reading what a node has told of itself: whoever can write to the journal can put anything there. So a node signs how
 * far it is, with the key that the log names for it, and others can compare their history with what it has signed.
 */
import { isCount, isRecord, isSha256, seq } from "../../core/base/index.ts";
import { type Seal, type Signer, sealOf, verifierFor } from "../integrity/signing-key.ts";
import type { NodeAnnouncement, NodeSeen } from "./journal.ts";

type Vouched = Pick<NodeAnnouncement, "node" | "seq" | "hash">;
/** A name may hold anything, so it comes last. */
const seal: Seal<Vouched> = sealOf(({ node, seq: at, hash }) => `drover node 1 ${at} ${hash} ${node}`);

export const vouchFor = (signer: Pick<Signer, "sign">, told: Vouched): string => seal.sign(signer, told).signature;
/** Whether the key, SPKI in base64, has signed how far that node is. */
export const isVouchedBy = (key: string, { signature = "", ...told }: NodeSeen): boolean =>
  seal.holds(verifierFor(key), { ...told, signature });

const WARNINGS_MAX = 8;
const isSentence = (text: unknown): text is string => typeof text === "string" && text !== "" && text.length <= 2000;

/** Null for what no version of ours has written. */
export function readAnnouncement(told: unknown, ageMs: number): NodeSeen | null {
  if (!isRecord(told)) return null;
  const { node, url, seq: at, hash, epoch, stored, key, behindMs, start, now, warnings, signature } = told;
  if (typeof node !== "string" || typeof url !== "string" || !isSha256(hash)) return null;
  if (!isCount(at) || !isCount(epoch) || !isCount(stored)) return null;
  const seen = { node, url, seq: seq(at), hash, epoch, stored: seq(stored), ageMs };
  return {
    ...seen,
    ...(typeof key === "string" ? { key } : {}),
    ...(isCount(behindMs) ? { behindMs } : {}),
    ...(typeof start === "string" ? { start } : {}),
    ...(isCount(now) ? { now } : {}),
    ...(Array.isArray(warnings) ? { warnings: warnings.filter(isSentence).slice(0, WARNINGS_MAX) } : {}),
    ...(typeof signature === "string" ? { signature } : {}),
  };
}
