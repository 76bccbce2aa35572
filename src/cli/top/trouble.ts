/**
 * What is wrong with the cluster behind a picture, in a line: its journal is full or out of reach, the node that
 * answers is behind, or another is down.
 *
 * `/readyz` tells, and costs a node nothing. A server that is no node says so in its first answer, and is not asked
 * again. Only where something is wrong the cluster is asked what.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { ClusterView } from "../../protocol/index.ts";
import { span } from "../show/time.ts";

export type NodeWord = {
  /** Null: nothing has said so yet. */
  readonly isNode: boolean | null;
  /** Null: nothing is wrong. */
  readonly trouble: string | null;
};
export const NO_WORD: NodeWord = { isNode: null, trouble: null };

/** A node asks its journal every two seconds: one that is well may be a little more than that behind. */
const BEHIND_MS = 5000;

type Facts = {
  readonly role?: unknown;
  readonly lagMs?: unknown;
  readonly readOnly?: unknown;
  readonly nodesDown?: unknown;
};
type Until = { readonly signal?: AbortSignal };

export async function nodeWord(client: Client, until: Until = {}): Promise<NodeWord> {
  const { facts, isReady } = await readiness(client, until);
  if (facts.role === undefined) return { isNode: isReady ? false : null, trouble: null };
  if (typeof facts.readOnly === "string")
    return { isNode: true, trouble: `The cluster is read-only: ${facts.readOnly}` };
  const lagMs = Number(facts.lagMs);
  const isWell = isReady && lagMs <= BEHIND_MS;
  if (!isWell) return { isNode: true, trouble: await whatIsWrong(client, lagMs, until) };
  const isDown = facts.nodesDown !== undefined;
  return { isNode: true, trouble: isDown ? await whoIsDown(client, Number(facts.nodesDown), until) : null };
}

/** What a node says that is not ready is in the details of its refusal. */
async function readiness(client: Client, until: Until): Promise<{ readonly facts: Facts; readonly isReady: boolean }> {
  try {
    return { facts: await client.ready({ retries: 0, ...until }), isReady: true };
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return { facts: error.details, isReady: false };
  }
}

async function whatIsWrong(client: Client, lagMs: number, until: Until): Promise<string> {
  const awayMs = (await cluster(client, until))?.log.awayMs;
  return awayMs === undefined
    ? `This node is behind its journal for ${span(lagMs)}: what is shown may be as old.`
    : `The journal is out of reach for ${span(awayMs)}: nothing is taken, this may be as old.`;
}

async function whoIsDown(client: Client, howMany: number, until: Until): Promise<string | null> {
  const seen = await cluster(client, until);
  if (seen === null) return `${howMany} of the nodes ${howMany === 1 ? "is" : "are"} down.`;
  const down = seen.nodes.filter(({ role }) => role === "down");
  const silent = down.map(({ id, heardMs = 0 }) => `${id} (silent for ${span(heardMs)})`);
  // It may have come back meanwhile.
  return down.length === 0 ? null : `Down: node${down.length === 1 ? "" : "s"} ${silent.join(", ")}.`;
}

/** Null where it may not be read, or does not answer. */
async function cluster(client: Client, until: Until): Promise<ClusterView | null> {
  try {
    return await client.cluster({ retries: 0, ...until });
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return null;
  }
}
