/**
 * Is this log what was written, and all of it?
 *
 * Integrity: every link is hashed again; the head and every checkpoint must lie on the chain, and every signature must
 * hold. What lies beside an event must have the hash that the event says, and a snapshot the hash that its checkpoint
 * says. A pruned log begins at a hash it merely claims, so some signed checkpoint at or behind that point must confirm
 * it. What no signature covers could be rewritten by anybody; so that is told, and may not be more than the rule under
 * which the head was signed allows. Completeness cannot be seen from inside, since a log that lost its last hour is a
 * valid shorter log: for that the caller brings an anchor it kept.
 */
import { invariant, isSha256, type Seq } from "../../core/base/index.ts";
import { nextTurn } from "../../std/index.ts";
import { hashOf, seqAt, toHex } from "../format/chain.ts";
import { factsOf } from "../format/codec.ts";
import type { Anchor, Checkpoint, Head, ReadBatch, VerifyProblem, VerifyReport } from "../log.ts";
import { LogFailure } from "../log.ts";
import { payloadProblem } from "./kept-list.ts";
import { headProblem, headSeal, type SignedHead } from "./signed-head.ts";
import type { Verifier } from "./signing-key.ts";
import { checkpointSeal } from "./snapshot-rules.ts";

const PROBLEMS_MAX = 100;
/** After so many bytes everybody else has a turn; an event counts for so many more than it has. */
const SLICE_BYTES: number = 256 * 1024;
const EVENT_BYTES = 1024;
/** How often it begins again because the log was pruned meanwhile: a pruning takes some steps. */
const TRIES_MAX = 100;

type Verification = {
  readonly base: Anchor;
  readonly head: Head;
  /** The epoch of the last batch; 0 if there is none. */
  readonly batchEpoch: number;
  /** With what lies beside them. */
  readonly batches: AsyncIterable<ReadBatch>;
  readonly checkpoints: readonly Checkpoint[];
  /** Undefined where heads are not signed. */
  readonly signed: SignedHead | null | undefined;
  readonly verifier: Verifier;
  readonly expect?: Anchor | undefined;
  /** What was found wrong apart from all this: with files, snapshots, kept payloads. */
  readonly found: readonly VerifyProblem[];
};

export async function verifyLog(input: Verification): Promise<VerifyReport> {
  const { base, head, checkpoints, signed, verifier, expect } = input;
  if (expect !== undefined) invariant(isSha256(expect.hash), "an anchor's hash is 64 hex digits in lower case");
  const sure = checkpoints.filter((checkpoint) => checkpointSeal.holds(verifier, checkpoint));
  const problems: VerifyProblem[] = checkpoints
    .filter((checkpoint) => !sure.includes(checkpoint))
    .map(({ seq }) => ({ seq, message: `the checkpoint at ${seq} does not carry this directory's signature` }));
  const anchors = expect === undefined ? sure : [...sure, expect];
  const isSigned = signed !== undefined && signed !== null && headSeal.holds(verifier, signed);
  const covered = coveredSeq(isSigned ? signed : null, sure);
  const walked = await walk(input, covered, new Set([...anchors, ...(signed ? [signed] : [])].map(({ seq }) => seq)));
  problems.push(...walked.problems);
  for (const anchor of anchors) {
    const problem = checkAnchor(anchor, { base, head, walked, isExpected: anchor === expect });
    if (problem !== null) problems.push(problem);
  }
  if (base.seq > 0 && !sure.some(({ seq, hash }) => walked.hashes.get(seq) === hash)) {
    problems.push({ seq: base.seq, message: `events up to ${base.seq} were pruned and no checkpoint confirms that` });
  }
  if (signed !== undefined) problems.push(...signatureProblems(input, { isSigned, walked, sure }));
  problems.push(...input.found);
  const { events, payloads } = walked;
  const unsigned = signed === undefined || covered >= head.seq ? null : { from: seqAt(covered, 1), to: head.seq };
  const report = { base, head, events, payloads, checkpoints: sure.length, unsigned, key: verifier.fingerprint };
  return { ok: problems.length === 0, ...report, problems: cut(problems) };
}

/** If somebody pruned what was about to be read, it begins again where the log begins now. */
export async function afterPruning<Answer>(read: () => Promise<Answer>): Promise<Answer> {
  for (let triesLeft = TRIES_MAX - 1; ; triesLeft--) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof LogFailure) || error.code !== "pruned" || triesLeft === 0) throw error;
    }
  }
}

/** The last event that a signature covers. */
const coveredSeq = (signed: SignedHead | null, sure: readonly Checkpoint[]): Seq =>
  Math.max(signed?.seq ?? 0, sure.at(-1)?.seq ?? 0) as Seq;

type Signatures = { readonly isSigned: boolean; readonly walked: Walked; readonly sure: readonly Checkpoint[] };

function signatureProblems(input: Verification, { isSigned, walked, sure }: Signatures): VerifyProblem[] {
  const { head, base, batchEpoch, signed = null } = input;
  const found = signed === null ? null : (walked.hashes.get(signed.seq) ?? null);
  const checkpointSeq = sure.at(-1)?.seq ?? 0;
  const problem = headProblem(signed, isSigned, { head, base, batchEpoch, found, checkpointSeq });
  if (problem !== null) return [problem];
  const { firstAt, lastAt } = walked.unsigned;
  if (signed === null || firstAt === null || lastAt === null || lastAt - firstAt <= signed.rule.time) return [];
  const from = coveredSeq(signed, sure) + 1;
  const which = `no signature covers events ${from} to ${head.seq}, ${lastAt - firstAt} ms`;
  return [{ seq: from as Seq, message: `${which}; at most ${signed.rule.time} ms may be unsigned` }];
}

type Walked = {
  readonly events: number;
  readonly payloads: number;
  /** The chain's hash at each seq that was asked for. */
  readonly hashes: ReadonlyMap<Seq, string>;
  readonly problems: readonly VerifyProblem[];
  /** When the first and the last unsigned event happened. */
  readonly unsigned: { readonly firstAt: number | null; readonly lastAt: number | null };
};

async function walk({ base, head, batches }: Verification, covered: Seq, wanted: ReadonlySet<Seq>): Promise<Walked> {
  const hashes = new Map<Seq, string>([[base.seq, base.hash]]);
  const problems: VerifyProblem[] = [];
  const count = { events: 0, payloads: 0 };
  const unsigned = { firstAt: null as number | null, lastAt: null as number | null };
  let slice = 0;
  try {
    for await (const { firstSeq, hashes: posts, records } of batches) {
      count.events += posts.length;
      for (const [index, post] of posts.entries()) {
        const seq = seqAt(firstSeq, index);
        if (wanted.has(seq)) hashes.set(seq, toHex(hashOf(post, 0)));
        const { bytes = new Uint8Array(0), payload = null } = records[index] ?? {};
        slice += EVENT_BYTES + bytes.length + (payload?.length ?? 0);
        if (slice >= SLICE_BYTES) {
          slice = 0;
          await nextTurn();
        }
        const { at, payloadHash } = factsOf(bytes, seq);
        const message = payloadProblem(seq, payloadHash, payload);
        if (message !== null) problems.push({ seq, message });
        else if (payloadHash !== null) count.payloads++;
        if (seq <= covered || seq > head.seq) continue;
        unsigned.firstAt ??= at;
        unsigned.lastAt = at;
      }
    }
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "corrupt") throw error;
    problems.push({ seq: error.seq ?? base.seq, message: error.message });
  }
  return { ...count, hashes, problems, unsigned };
}

function cut(problems: readonly VerifyProblem[]): readonly VerifyProblem[] {
  const more = problems.length - PROBLEMS_MAX;
  const last = problems[PROBLEMS_MAX];
  if (more <= 0 || last === undefined) return problems;
  return [...problems.slice(0, PROBLEMS_MAX), { seq: last.seq, message: `and ${more} more from here on` }];
}

type Place = { readonly base: Anchor; readonly head: Head; readonly walked: Walked; readonly isExpected: boolean };

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
