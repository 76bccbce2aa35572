/**
 * Is this log what was written, and all of it?
 *
 * Integrity: every link is hashed again; the head and every checkpoint must lie on the chain, and every
 * checkpoint's signature must hold. A pruned log begins at a hash it merely claims, so some signed
 * checkpoint at or behind that point must confirm it. Completeness cannot be seen from inside, since a
 * log that lost its last hour is a valid shorter log: for that the caller brings an anchor it kept.
 */

import type { Seq } from "../core/brand.ts";
import { invariant } from "../core/result.ts";
import { hashOf, isHash, seqAt, toHex } from "./chain.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { Anchor, Head, ReadBatch, VerifyProblem, VerifyReport } from "./log.ts";
import { LogFailure } from "./log.ts";

export type Verification = {
  readonly base: Anchor;
  readonly head: Head;
  readonly batches: AsyncIterable<ReadBatch>;
  readonly checkpoints: readonly Checkpoint[];
  readonly isSigned: (checkpoint: Checkpoint) => boolean;
  readonly expect?: Anchor | undefined;
};

export async function verifyLog(input: Verification): Promise<VerifyReport> {
  const { base, head, checkpoints, expect } = input;
  if (expect !== undefined) invariant(isHash(expect.hash), "an anchor's hash is 64 hex digits in lower case");
  const signed = checkpoints.filter(input.isSigned);
  const problems: VerifyProblem[] = checkpoints
    .filter((checkpoint) => !signed.includes(checkpoint))
    .map(({ seq }) => ({ seq, message: `the checkpoint at ${seq} does not carry this directory's signature` }));
  const anchors = expect === undefined ? signed : [...signed, expect];
  const walked = await walk(input, new Set(anchors.map(({ seq }) => seq)));
  if (walked.problem !== null) problems.push(walked.problem);
  for (const anchor of anchors) {
    const problem = checkAnchor(anchor, { base, head, walked, isExpected: anchor === expect });
    if (problem !== null) problems.push(problem);
  }
  if (base.seq > 0 && !signed.some(({ seq, hash }) => walked.hashes.get(seq) === hash)) {
    problems.push({ seq: base.seq, message: `events up to ${base.seq} were pruned and no checkpoint confirms that` });
  }
  return { ok: problems.length === 0, base, head, events: walked.events, checkpoints: signed.length, problems };
}

type Walked = {
  readonly events: number;
  /** The chain's hash at each seq that was asked for. */
  readonly hashes: ReadonlyMap<Seq, string>;
  readonly problem: VerifyProblem | null;
};

async function walk({ base, batches }: Verification, wanted: ReadonlySet<Seq>): Promise<Walked> {
  const hashes = new Map<Seq, string>([[base.seq, base.hash]]);
  let events = 0;
  try {
    for await (const { firstSeq, hashes: posts } of batches) {
      events += posts.length;
      for (const [index, post] of posts.entries()) {
        const at = seqAt(firstSeq, index);
        if (wanted.has(at)) hashes.set(at, toHex(hashOf(post, 0)));
      }
    }
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "corrupt") throw error;
    return { events, hashes, problem: { seq: error.seq ?? base.seq, message: error.message } };
  }
  return { events, hashes, problem: null };
}

type Place = {
  readonly base: Anchor;
  readonly head: Head;
  readonly walked: Walked;
  readonly isExpected: boolean;
};

function checkAnchor({ seq, hash }: Anchor, { base, head, walked, isExpected }: Place): VerifyProblem | null {
  const what = isExpected ? "the expected anchor" : "the checkpoint";
  if (seq < base.seq) {
    return isExpected
      ? { seq, message: `events up to ${base.seq} were pruned; give an anchor at or behind that` }
      : null;
  }
  if (seq > head.seq)
    return { seq, message: `the log ends at ${head.seq}, before ${what} at ${seq}: events are missing` };
  const found = walked.hashes.get(seq);
  if (found === undefined || found === hash) return null; // Not reached: the break before it is told already.
  return { seq, message: `at ${seq} the log has hash ${found}, ${what} has ${hash}: this is another history` };
}
