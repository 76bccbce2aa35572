/**
 * The calls about the cluster as a whole, and what a node says of itself when it is asked whether it takes work.
 */
import { DroverError } from "../../engine/base/index.ts";
import { DOWN_MS, type DroverNode } from "../../engine/node/index.ts";
import { ServerRefusal } from "../../http/index.ts";
import type { ClusterCalls } from "../../protocol/calls/index.ts";
import type { ClusterView, Pulse, Readiness } from "../../protocol/index.ts";
import { isoTime, present } from "../../std/index.ts";
import type { Handlers } from "./handler.ts";

export function clusterHandlers(node: DroverNode | undefined): Handlers<keyof ClusterCalls> {
  return {
    cluster: async () => {
      if (node === undefined)
        throw new ServerRefusal("not_found", "this server is no node of a cluster: it has a log of its own");
      return shown(await node.cluster());
    },
  };
}

/** What the journal says of itself, without its inside. */
function shown({ nodes, log }: Awaited<ReturnType<DroverNode["cluster"]>>): ClusterView {
  const { version, head, base, bytes, awayMs, ageMs, ...said } = log;
  const { seq, hash, epoch } = head;
  const old = awayMs === undefined ? {} : { awayMs: Math.ceil(awayMs), ageMs: Math.ceil(ageMs ?? 0) };
  const known = present({ version: version ?? undefined, bytes: bytes ?? undefined, ...old });
  return {
    nodes: nodes.map(({ heardMs = 0, ageMs: past, ...one }) => ({
      ...one,
      lagMs: Math.ceil(one.lagMs),
      heardMs: Math.ceil(heardMs),
      ...(past === undefined ? {} : { ageMs: Math.ceil(past) }),
    })),
    log: { ...said, ...known, seq, hash, epoch, prunedTo: base.seq },
  };
}

/** Throws if a node takes no work: it has no life, its lead is not sure, or it does not keep up. */
export function nodeReadiness(
  node: DroverNode,
): Pick<Readiness, "role" | "epoch" | "lagMs" | "readOnly" | "nodesDown"> {
  const { role, signal, leads } = node.life();
  const lagMs = Math.ceil(node.ageMs());
  const known = present({ readOnly: node.readOnly() ?? undefined, nodesDown: node.down().length || undefined });
  const facts = { role, epoch: node.applied().epoch, lagMs, ...known };
  if (signal.aborted) throw asRefusal(signal.reason, facts);
  if (role === "leader" ? !leads() : lagMs > DOWN_MS)
    throw new ServerRefusal(
      "behind",
      `this node has not been sure for ${lagMs} ms that it has all that the journal has; is that within reach?`,
      facts,
    );
  return facts;
}

type NodePulse = NonNullable<Pulse["node"]>;
type Watched = Pick<DroverNode, "life" | "ageMs" | "readOnly" | "journalAway" | "down">;

/** A node asks its journal every two seconds: one that is well may be a little more than that behind. */
const BEHIND_MS = 5000;

/** Why what a node shows may be old, or nothing is taken; null if it is well. */
function troubleOf(node: Watched): NodePulse["trouble"] | null {
  if (node.readOnly() !== null) return "read-only";
  if (isSure(node)) return null;
  return node.journalAway() === null ? "behind" : "journal-away";
}

/** What of a node can change while nothing happens. */
export const nodeStanding = (node: Watched): string =>
  [node.life().role, troubleOf(node), ...node.down().map(({ id }) => id)].join(" ");

/** What a node tells of itself to those who look on. */
export function nodePulse(node: Watched, now: number): NodePulse {
  const trouble = troubleOf(node) ?? undefined;
  const since = isSure(node) ? undefined : isoTime(now - Math.ceil(node.ageMs()));
  const silent = node.down().map(({ id, silentMs }) => ({ id, since: isoTime(now - Math.ceil(silentMs)) }));
  const down = silent.length === 0 ? undefined : silent;
  return { role: node.life().role, ...present({ trouble, since, down }) };
}

const isSure = ({ ageMs }: Watched): boolean => ageMs() <= BEHIND_MS;

function asRefusal(reason: unknown, facts: object): Error {
  if (!(reason instanceof DroverError)) return reason as Error;
  return new DroverError(reason.code, reason.message, { details: { ...reason.details, ...facts } });
}
