/**
 * Reading what a node has told of itself: whoever can write to the journal can put anything there.
 */
import { isRecord, isSha256, seq } from "../../core/base/index.ts";
import type { NodeSeen } from "./journal.ts";

/** Null for what no version of ours has written. */
export function readAnnouncement(told: unknown, ageMs: number): NodeSeen | null {
  if (!isRecord(told)) return null;
  const { node, url, seq: at, hash, epoch, stored, key, behindMs, start } = told;
  if (typeof node !== "string" || typeof url !== "string" || !isSha256(hash)) return null;
  if (!isCount(at) || !isCount(epoch) || !isCount(stored)) return null;
  const seen = { node, url, seq: seq(at), hash, epoch, stored: seq(stored), ageMs };
  return {
    ...seen,
    ...(typeof key === "string" ? { key } : {}),
    ...(isCount(behindMs) ? { behindMs } : {}),
    ...(typeof start === "string" ? { start } : {}),
  };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
