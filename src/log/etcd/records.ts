/**
 * What is kept in etcd, key by key, and the two small records among it.
 *
 *     PREFIX/head                      {drover, version, seq, hash, epoch, batchId}: compared and set with every batch
 *     PREFIX/batch/0000000000000042    the batch that begins with event 42: how many further parts it has, first part
 *     PREFIX/part/0000000000000042/HASH/1   a further part; HASH is the chain's hash behind the batch
 *     PREFIX/lead                      {node, epoch}, under a lease
 *     PREFIX/node/NAME                 what a node told of itself, under a lease
 *     PREFIX/secret                    64 hex digits that all nodes share
 *
 * The head carries the mark of the product: keys without it are somebody else's. It is made with the first thing that
 * is written and never deleted; where there is none, the journal is empty. A request to etcd has at most 1.5 MiB, so a
 * longer batch lies in parts. They are written before the batch and are nobody's until its key is there; those of an
 * append that came to nothing go when what lies before them is pruned.
 */
import { isCount, isRecord, isSha256, type Seq, seq } from "../../core/base/index.ts";
import { GENESIS, HASH_BYTES, toHex } from "../format/chain.ts";
import { refused } from "../journal/address.ts";
import type { LeadSeen } from "../journal/journal.ts";
import { type Head, LogFailure } from "../log.ts";

const MARK = "journal";
const VERSION = 1;
const SEQ_DIGITS = 16;
const COUNT_BYTES = 4;
/** Of a part; the rest of a request is for the head and the keys. */
const PART_BYTES: number = 1024 * 1024;
export const EMPTY: Head = { ...GENESIS, epoch: 0, batchId: "" };

export type Keys = {
  readonly all: Span;
  readonly head: string;
  readonly lead: string;
  readonly secret: string;
  readonly nodes: Span;
  node(name: string): string;
  /** The name of the node with this key. */
  nameIn(key: string): string;
  batch(first: number): string;
  /** The keys of batches that begin with an event from `from` up to `to`, without that. */
  batches(from: number, to: number): Span;
  part(first: number, hash: string, index: number): string;
  parts(from: number, to: number): Span;
  /** The first event of the batch with this key. */
  firstOf(key: string): Seq;
};
export type Span = { readonly key: string; readonly end: string };

export function createKeys(prefix: string): Keys {
  const digits = (count: number): string => String(count).padStart(SEQ_DIGITS, "0");
  const batch = (first: number): string => `${prefix}batch/${digits(first)}`;
  const part = (first: number): string => `${prefix}part/${digits(first)}`;
  return {
    all: under(prefix),
    head: `${prefix}head`,
    lead: `${prefix}lead`,
    secret: `${prefix}secret`,
    nodes: under(`${prefix}node/`),
    node: (name) => `${prefix}node/${encodeURIComponent(name)}`,
    nameIn: (key) => decoded(key.slice(`${prefix}node/`.length)),
    batch,
    batches: (from, to) => ({ key: batch(from), end: batch(to) }),
    part: (first, hash, index) => `${part(first)}/${hash}/${index}`,
    parts: (from, to) => ({ key: part(from), end: part(to) }),
    firstOf: (key) => seq(Number(key.slice(-SEQ_DIGITS))),
  };
}

/** As it stands there, if nobody can have encoded it so. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** All keys that begin with what ends with a slash: the sign behind it ends them. */
const under = (start: string): Span => ({ key: start, end: `${start.slice(0, -1)}0` });

export function writeHead({ seq: at, hash, epoch, batchId }: Head): Buffer {
  return Buffer.from(JSON.stringify({ drover: MARK, version: VERSION, seq: at, hash, epoch, batchId }), "utf8");
}

/** Whether it is a head of ours, of whatever version. */
export const isHead = (value: Uint8Array): boolean => recordIn(value)?.drover === MARK;

export function readHead(value: Uint8Array, key: string): Head {
  const record = recordIn(value);
  if (record?.drover !== MARK) throw foreign(key);
  const { version, seq: at, hash, epoch, batchId } = record;
  if (typeof version === "number" && version > VERSION)
    throw new LogFailure(
      "unsupported-version",
      `the journal at ${key} was written by a newer version of Drover (format ${version}, this one has ${VERSION}); ` +
        "use that version. Nothing was written.",
    );
  if (!isCount(at) || !isSha256(hash) || !isCount(epoch) || typeof batchId !== "string")
    throw new LogFailure("corrupt", `the record ${key} of the journal makes no sense. Nothing was repaired.`);
  return { seq: seq(at), hash, epoch, batchId };
}

export const foreign = (key: string): LogFailure =>
  refused(
    `the keys under ${key} in etcd are not Drover's: give the address another prefix, as in etcd://h1:2379/drover-2. ` +
      "Nothing was written.",
  );

export const writeLead = (lead: LeadSeen): Buffer => Buffer.from(JSON.stringify(lead), "utf8");

/** Null for what is no record of a lead: it is not renewed either, or a person's to delete. */
export function readLead(value: Uint8Array): LeadSeen | null {
  const { node, epoch } = recordIn(value) ?? {};
  return typeof node === "string" && isCount(epoch) ? { node, epoch } : null;
}

export function recordIn(value: Uint8Array): Record<string, unknown> | null {
  try {
    const record: unknown = JSON.parse(Buffer.from(value).toString("utf8"));
    return isRecord(record) ? record : null;
  } catch {
    return null;
  }
}

/** The value of the batch's own key: how many further parts it has, their name, the first part. Then those parts. */
export function splitBlock(block: Buffer, hash: Uint8Array): readonly [Buffer, ...Buffer[]] {
  const further: Buffer[] = [];
  for (let at = PART_BYTES; at < block.length; at += PART_BYTES) further.push(block.subarray(at, at + PART_BYTES));
  const count = Buffer.alloc(COUNT_BYTES);
  count.writeUInt32BE(further.length);
  return [Buffer.concat([count, hash, block.subarray(0, PART_BYTES)]), ...further];
}

type FirstPart = { readonly furtherParts: number; readonly hash: string; readonly part: Buffer };

export function firstPartOf(value: Buffer, key: string): FirstPart {
  const at = COUNT_BYTES + HASH_BYTES;
  if (value.length < at) throw new LogFailure("corrupt", `the batch ${key} of the journal is cut off.`);
  return { furtherParts: value.readUInt32BE(), hash: toHex(value.subarray(COUNT_BYTES, at)), part: value.subarray(at) };
}
