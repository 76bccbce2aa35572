/**
 * Getting from another node what the journal no longer has.
 *
 * A node that was away while the journal was pruned asks the others, over HTTP. One that has the batches behind its end
 * gives those. Where all were pruned there too, the replica begins anew where that node's begins: with its kept
 * payloads, its snapshot and then its batches. Old content is replaced in one transaction, and only where it is known
 * to be of this history: a directory that has events and was never part of the cluster is refused as it is. A reload
 * that was broken off shows by a log that begins late and has no checkpoint, and is begun again.
 *
 * Nothing of it is used before it is linked to the journal: every batch is hashed on the way in, and the first of the
 * journal must follow the last of the other node. The snapshot and the list of kept payloads carry that node's
 * signature, by the key that it has announced, and get this node's own.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { errorText, type Seq, seq } from "../../core/base/index.ts";
import { type Clock, OWN_FILE_MODE } from "../../std/index.ts";
import { createListHash, keptListSeal } from "../integrity/kept-list.ts";
import { type Verifier, verifierFor } from "../integrity/signing-key.ts";
import { checkpointSeal } from "../integrity/snapshot-rules.ts";
import type { Journal, NodeSeen } from "../journal/journal.ts";
import { type Checkpoint, type Log, LogFailure } from "../log.ts";
import { divergedAt } from "../sqlite/sealed-batches.ts";
import type { KeptEntry } from "../sqlite/signed-tables.ts";
import type { StoreThread } from "../sqlite/thread-client.ts";
import { takeIn } from "./following.ts";
import { jsonIn, KIND } from "./frames.ts";
import { blockIn, historyOf, type NodeReplica, type OtherNode, replicaOf, tokenFrom } from "./from-node.ts";
import type { Tail } from "./tail.ts";

/** A snapshot that has come and waits for the events up to its own. */
const WAITING_FILE = "reloaded-snapshot.tmp";

export type ReloadGround = {
  readonly journal: Journal;
  readonly thread: StoreThread;
  readonly directory: string;
  readonly clock: Clock;
  /** The name of this node. */
  readonly self: string;
  /** Whether the directory was part of this cluster before. */
  readonly isOfCluster: boolean;
  readonly signal: AbortSignal;
};

/** Asks one node after the other. Answers the snapshot that is to be stored when the replica is there, if one came. */
export async function reloadFromNodes(
  ground: ReloadGround,
  tail: Tail,
  how: { readonly isAnew: boolean; readonly mayBeginAnew: boolean },
): Promise<Checkpoint | null> {
  const { journal, self } = ground;
  const [{ nodes }, secret] = [await journal.nodes(), await journal.secret()];
  const others = nodes.filter(({ node }) => node !== self).sort((left, right) => left.ageMs - right.ageMs);
  const failures: string[] = [];
  /** What no repetition mends: of another history, or too far behind. A node that is asked next may still help. */
  let final: LogFailure | null = null;
  for (const other of others) {
    try {
      return await reloadFrom(ground, other, { secret, tail, ...how });
    } catch (error) {
      ground.signal.throwIfAborted();
      tail.check();
      if (error instanceof LogFailure && (error.code === "pruned" || error.code === "diverged")) final ??= error;
      failures.push(`${other.node}: ${errorText(error)}`);
    }
  }
  if (final !== null) throw final;
  const what = "the journal was pruned behind the end of this data directory, and no other node gives what is missing";
  throw new LogFailure("unreachable", `${what} (${failures.join("; ") || "none has told of itself"})`);
}

type Reload = {
  readonly secret: string;
  readonly tail: Tail;
  readonly isAnew: boolean;
  /** False while an engine works over the replica. */
  readonly mayBeginAnew: boolean;
};

async function reloadFrom(ground: ReloadGround, other: NodeSeen, reload: Reload): Promise<Checkpoint | null> {
  const { clock, signal, self } = ground;
  const { tail, secret } = reload;
  const place = { url: other.url.replace(/\/+$/, ""), clock, signal };
  const node: OtherNode = { ...place, token: await tokenFrom(place, { self, node: other.node, secret }) };
  if (!reload.isAnew) {
    await using history = await historyOf(node, tail.head().seq);
    const { base, batches } = history;
    if (base.seq <= tail.head().seq) {
      const { seq: before } = tail.head();
      for await (const entry of batches) await takeIn({ ...ground, tail }, entry);
      await tail.flush();
      if (tail.head().seq === before) throw new LogFailure("unreachable", `it ends at event ${before} too`);
      return null;
    }
  }
  const { seq: end } = tail.head();
  if (!reload.mayBeginAnew) throw tooFarBehind(end);
  if (end > 0 && !reload.isAnew && !ground.isOfCluster) throw unproven(end);
  return beginAnew(ground, await replicaOf(node), announcedBy(other));
}

const unproven = (end: Seq): LogFailure =>
  new LogFailure(
    "diverged",
    `the data directory ends at event ${end} and was never part of this cluster, whose log begins later: nothing ` +
      "shows that it is of the same history. Nothing was changed. Name another directory with --data, or the log " +
      "that this one belongs to with --log; to join with this one, move away what it has.",
    end,
  );

async function beginAnew(
  { thread, directory }: ReloadGround,
  replica: NodeReplica,
  verifier: Verifier,
): Promise<Checkpoint | null> {
  const { base, checkpoint, list, frames } = replica;
  const isVouchedFor = checkpoint !== null && checkpoint.seq >= base.seq && checkpointSeal.holds(verifier, checkpoint);
  if (base.seq > 0 && !isVouchedFor) throw unsigned("its snapshot");
  if (list === null || list.upTo < base.seq || !keptListSeal.holds(verifier, list)) throw unsigned("its kept payloads");
  await thread.ask("beginAnew", base);
  const hash = createListHash();
  await using file = await open(join(directory, WAITING_FILE), "w", OWN_FILE_MODE);
  const snapshotHash = createHash("sha256");
  for await (const frame of frames) {
    if (frame.kind === KIND.kept) {
      const kept = jsonIn(frame) as readonly KeptEntry[];
      for (const entry of kept) hash.add(entry.seq, entry.hash);
      await thread.ask("addKept", kept);
    } else if (frame.kind === KIND.block) await thread.ask("addBlock", blockIn(frame));
    else if (frame.kind === KIND.snapshot) {
      snapshotHash.update(frame.body);
      await file.writeFile(frame.body);
    }
  }
  if (hash.digest() !== list.hash) throw unsigned("its kept payloads");
  if (checkpoint !== null && snapshotHash.digest("hex") !== checkpoint.snapshotHash) throw unsigned("its snapshot");
  await checkKept(thread, await thread.ask("endKept", undefined));
  return checkpoint;
}

async function checkKept(thread: StoreThread, run: number): Promise<void> {
  for (let after: Seq = seq(0); ; ) {
    const { kept, problems } = await thread.ask("checkKept", { run, after, limit: 256 });
    if (problems[0] !== undefined) throw new LogFailure("corrupt", problems[0].message, problems[0].seq);
    const last = kept.at(-1);
    if (last === undefined) return;
    after = last.seq;
  }
}

const tooFarBehind = (at: Seq): LogFailure =>
  new LogFailure(
    "pruned",
    `this node is at event ${at}, and neither the journal nor another node has what comes next. Start it again: it ` +
      "then begins anew with the snapshot of another node.",
    at,
  );

const unsigned = (what: string): LogFailure =>
  new LogFailure("corrupt", `${what} does not carry the signature of the node that it has announced`);

function announcedBy({ key = "", node }: NodeSeen): Verifier {
  const verifier = verifierFor(key);
  if (verifier.fingerprint === null) throw new LogFailure("refused", `the node ${node} has announced no key`);
  return verifier;
}

/** Stores the snapshot that has come, with this node's own signature: the replica has the events that it rests on. */
export async function storeSnapshot(
  { thread, directory }: ReloadGround,
  replica: Log,
  { seq: at, hash }: Checkpoint,
): Promise<void> {
  const path = join(directory, WAITING_FILE);
  if ((await thread.ask("hashAt", at)) !== hash) throw divergedAt(at);
  await replica.saveSnapshot({ seq: at, hash, chunks: createReadStream(path) });
  await rm(path, { force: true });
}
