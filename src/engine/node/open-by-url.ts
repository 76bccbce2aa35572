/**
 * A node opened by the URL of its cluster's log and its own data directory.
 *
 *     const node = await openNodeByUrl({ url: "etcd://h1:2379,h2:2379/drover", data: ".drover", … });
 *
 * The journal is waited for, and the replica brought up to it. The secret of attempt tokens is the journal's: a token
 * that one leader gave holds with the next.
 */
import { randomUUID } from "node:crypto";
import type { Config } from "../../core/config/index.ts";
import { passes, untilAnswered } from "../../log/journal/index.ts";
import { openJournal, openKey, openSharedLog, publicKeyIn } from "../../log/shared/index.ts";
import { realClock } from "../../std/index.ts";
import { checkCluster, clusterOf, identityFor, keepIdentity } from "../base/node-identity.ts";
import { checkAlone } from "./alone.ts";
import { type DroverNode, openNode } from "./node.ts";

/** How a node is opened by a URL. */
export type NodeByUrlOptions = {
  /** `etcd://…` or `postgres://…`. */
  readonly url: string;
  /** The node's own data directory. */
  readonly data: string;
  /** Its name; null: the one the directory has, or a new one that it keeps. */
  readonly node: string | null;
  /** Where other nodes and clients reach it. */
  readonly advertise: () => string;
  readonly leaseMs: number;
  /** The config that it puts in force when it leads; null: what the log has. */
  readonly config: () => Config | null;
  /** Gets a line when the journal has to be waited for, again every few seconds, and when it is back. */
  readonly onNotice: (line: string) => void;
  readonly onWarning: (message: string) => void;
  /** Called where the journal is empty: with its address, and those of other histories that lie beside it. */
  readonly onNewHistory: (address: string, beside: readonly string[]) => void;
  /** Ends a wait for the journal. */
  readonly signal: AbortSignal;
};

/** Resolves when the node follows. Rejects with a `LogFailure` that says what to do. */
export async function openNodeByUrl(options: NodeByUrlOptions): Promise<DroverNode> {
  const { url, data, advertise, leaseMs, config, onNotice, onWarning, signal } = options;
  const identity = identityFor(data, options.node);
  const openedAt = realClock.elapsed();
  const patiently = <Answer>(ask: () => Promise<Answer>): Promise<Answer> =>
    untilAnswered(ask, { clock: realClock, onNotice }, signal);
  const journal = await openJournal(url, { onNotice, signal });
  let opened: AsyncDisposable = journal;
  try {
    const attemptSecret = await patiently(() => journal.secret());
    const cluster = clusterOf(attemptSecret);
    checkCluster(data, identity, cluster);
    const isOfCluster = identity.cluster === cluster;
    const log = await openSharedLog({ journal, directory: data, node: identity.id, isOfCluster, onNotice, signal });
    opened = log;
    if ((await log.head()).seq === 0) {
      const { address } = await patiently(() => journal.describe());
      options.onNewHistory(address, await journal.beside().catch(noneIfAway));
    }
    const publicKey = publicKeyIn(data);
    const own = { id: identity.id, key: publicKey, url: advertise() };
    await checkAlone(() => patiently(() => journal.nodes()), own, realClock);
    keepIdentity(data, identity, cluster);
    const { signer } = openKey(data);
    const common = { log, signer, data, config, leaseMs, advertise, publicKey, attemptSecret, openedAt, onWarning };
    return await openNode({ ...common, id: identity.id, clock: realClock, newId: randomUUID });
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

function noneIfAway(error: unknown): readonly string[] {
  if (passes(error)) return [];
  throw error;
}
