/**
 * What etcd's gateway answers, read once: past this file nothing is unknown.
 *
 * The gateway leaves out what is empty, zero or false, writes 64-bit numbers as text, and bytes in base 64.
 */
import { isRecord } from "../../core/base/index.ts";
import { EtcdFault } from "./fault.ts";

export type KeyValue = {
  readonly key: string;
  readonly value: Buffer;
  /** The revision of its last change. */
  readonly modRevision: number;
  /** The lease it ends with; "0" if none. */
  readonly lease: string;
};
export type RangeAnswer = {
  /** The store's revision when it was read. */
  readonly revision: number;
  readonly found: readonly KeyValue[];
  /** Whether there are more than the limit let through. */
  readonly hasMore: boolean;
};
export type TxnAnswer = {
  readonly revision: number;
  readonly succeeded: boolean;
  /** What each range of the branch that was taken found, in order. */
  readonly ranges: readonly (readonly KeyValue[])[];
};
export type WatchAnswer =
  | { readonly type: "created" }
  | { readonly type: "changed"; readonly changes: readonly (KeyValue | null)[] }
  /** The history it was to begin with is forgotten. */
  | { readonly type: "compacted" }
  | { readonly type: "cancelled"; readonly reason: string };

export function rangeOf(answer: unknown): RangeAnswer {
  return { revision: revisionOf(answer), found: foundIn(answer), hasMore: objectOf(answer).more === true };
}

export function txnOf(answer: unknown): TxnAnswer {
  const { succeeded = false, responses } = objectOf(answer);
  const ranges = listOf(responses)
    .map((each) => objectOf(each).response_range)
    .filter((each) => each !== undefined)
    .map(foundIn);
  return { revision: revisionOf(answer), succeeded: succeeded === true, ranges };
}

export function watchOf(line: unknown): WatchAnswer {
  const { result, error } = objectOf(line);
  if (error !== undefined) return { type: "cancelled", reason: textOf(error, "message", "no reason was given") };
  const { created, canceled, events } = objectOf(result);
  if (canceled === true) {
    if (wholeOf(result, "compact_revision") > 0) return { type: "compacted" };
    return { type: "cancelled", reason: textOf(result, "cancel_reason", "no reason was given") };
  }
  if (created === true) return { type: "created" };
  return { type: "changed", changes: listOf(events).map(changeOf) };
}

/** The key as it is now; null if it was deleted. */
function changeOf(event: unknown): KeyValue | null {
  const { type, kv } = objectOf(event);
  return type === "DELETE" ? null : keyValueOf(kv);
}

const foundIn = (answer: unknown): KeyValue[] => listOf(objectOf(answer).kvs).map(keyValueOf);

function keyValueOf(value: unknown): KeyValue {
  return {
    key: Buffer.from(textOf(value, "key"), "base64").toString("utf8"),
    value: Buffer.from(textOf(value, "value", ""), "base64"),
    modRevision: wholeOf(value, "mod_revision"),
    lease: textOf(value, "lease", "0"),
  };
}

export const revisionOf = (answer: unknown): number => wholeOf(objectOf(answer).header, "revision");

export function objectOf(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw notEtcd("an object");
  return value;
}

function listOf(value: unknown = []): readonly unknown[] {
  if (!Array.isArray(value)) throw notEtcd("a list");
  return value;
}

export function textOf(value: unknown, field: string, absent?: string): string {
  const text = objectOf(value)[field] ?? absent;
  if (typeof text !== "string") throw notEtcd(`text in ${field}`);
  return text;
}

/** A whole number, which travels as text; 0 if it is left out. */
export function wholeOf(value: unknown, field: string): number {
  const number = Number(objectOf(value)[field] ?? 0);
  if (!Number.isSafeInteger(number)) throw notEtcd(`a whole number in ${field}`);
  return number;
}

const notEtcd = (expected: string): EtcdFault =>
  new EtcdFault("lost", `its answer is not one of etcd 3.4 or later: ${expected} is missing`);
