/**
 * What `verify` looks at beside the chain: the files, the key that signs, the last two snapshots, the payloads that
 * outlived their events.
 *
 * A log may be written to meanwhile. It is read over a connection and in a thread of its own then, so that no append
 * waits for that; and a snapshot that has gone is missed only if it should still be there.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { createListHash, keptListSeal } from "../integrity/kept-list.ts";
import { privateKeyProblem, type Signer } from "../integrity/signing-key.ts";
import { SNAPSHOTS_KEPT, snapshotProblem } from "../integrity/snapshot-rules.ts";
import type { VerifyProblem } from "../log.ts";
import { LIST_NOT_SIGNED } from "./kept-check.ts";
import { hashSnapshot } from "./snapshot-files.ts";
import { type StoreThread, startStoreThread } from "./thread-client.ts";

const ENTRIES_PER_PAGE = 64;

/** What a log stands on: its directory, its database behind a thread, and its key. */
export type Session = {
  readonly directory: string;
  readonly readOnly: boolean;
  readonly thread: StoreThread;
  readonly signer: Signer;
};

/** The same log behind a thread that only reads, for as long as the work takes. */
export async function beside<Answer>(session: Session, work: (reader: Session) => Promise<Answer>): Promise<Answer> {
  if (session.readOnly) return work(session);
  await session.thread.ask("state", undefined); // It is still open.
  const thread = await startStoreThread({ directory: session.directory, readOnly: true, maxBytes: null });
  try {
    return await work({ ...session, readOnly: true, thread });
  } finally {
    await thread.close();
  }
}

export async function findProblems(session: Session): Promise<VerifyProblem[]> {
  const examined = await session.thread.ask("examine", undefined);
  const ofKey = privateKeyProblem(session.directory, session.signer);
  const problems = [...examined, ...(await snapshotProblems(session)), ...(await keptProblems(session))];
  return ofKey === null ? problems : [...problems, { seq: seq(0), message: ofKey }];
}

async function snapshotProblems({ directory, thread }: Session): Promise<VerifyProblem[]> {
  const expected = async () => (await thread.ask("state", undefined)).checkpoints.slice(-SNAPSHOTS_KEPT);
  const problems: VerifyProblem[] = [];
  for (const checkpoint of await expected()) {
    const problem = snapshotProblem(checkpoint, await hashSnapshot(directory, checkpoint.seq));
    if (problem === null) continue;
    const isStill = (await expected()).some(({ snapshotHash }) => snapshotHash === checkpoint.snapshotHash);
    if (isStill) problems.push(problem);
  }
  return problems;
}

async function keptProblems(session: Session): Promise<VerifyProblem[]> {
  const { thread, signer } = session;
  const { base } = await thread.ask("state", undefined);
  const list = await thread.ask("keptList", undefined);
  // One of a version that had no such list has no signed head either, and is told so.
  if (list === null && base.seq === 0) return [];
  if (list === null || list.upTo < base.seq) return [{ seq: seq(0), message: LIST_NOT_SIGNED }];
  const problems: VerifyProblem[] = [];
  const hash = createListHash();
  let after: Seq = seq(0);
  for (;;) {
    const page = await thread.ask("checkKept", { run: list.run, after, limit: ENTRIES_PER_PAGE });
    for (const kept of page.kept) hash.add(kept.seq, kept.hash);
    problems.push(...page.problems);
    const last = page.kept.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  // Another pruning may have put another list in its place.
  if ((await thread.ask("keptList", undefined))?.run !== list.run) return keptProblems(session);
  if (hash.digest() !== list.hash || !keptListSeal.holds(signer, list)) {
    problems.push({ seq: seq(0), message: LIST_NOT_SIGNED });
  }
  return problems;
}
