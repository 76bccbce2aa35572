/**
 * What nodes ask each other for, and a copy asks a node for: the history behind an event, and all that a replica needs
 * to begin where this one begins. Both are streams of bytes that only Drover reads, so they are no calls of the API.
 *
 * A node says by its token that it knows the secret of their journal; anybody else is an admin without a scope. Reading
 * a whole log is work, so few do it at a time.
 */
import type { RequestListener } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { badInput } from "../../engine/base/index.ts";
import type { ReplicaSource } from "../../engine/node/index.ts";
import {
  type Access,
  cutOffSilent,
  forbidden,
  headersOf,
  isScoped,
  type RequestCheck,
  type SendParts,
  ServerRefusal,
  sendProblem,
} from "../../http/index.ts";
import { BYTES } from "../../protocol/index.ts";

const AT_ONCE = 4;
const SILENCE_MS = 60_000;
const NODE_TOKEN = /^Bearer +(node\.\S+) *$/i;
const SEQ = /^\d{1,15}$/;

type ReplicaParts = SendParts & {
  readonly checkRequest: RequestCheck;
  readonly access: () => Access;
  /** Null where the log is in memory only. */
  readonly replica: ReplicaSource | null;
};
type Frames = (replica: ReplicaSource, query: URLSearchParams) => AsyncIterable<Uint8Array>;

/** By path. */
const STREAMS: ReadonlyMap<string, Frames> = new Map<string, Frames>([
  ["/cluster/log", (replica, query) => replica.history(seqIn(query))],
  ["/cluster/snapshot", (replica) => replica.beginning()],
]);
export const REPLICA_PATHS: readonly string[] = [...STREAMS.keys()];

export function answerReplica(parts: ReplicaParts): (route: string) => RequestListener {
  let underWay = 0;
  return (route) => async (request, response) => {
    const context = { request, response, route, startedAt: performance.now() };
    try {
      const refusal = parts.checkRequest(request);
      if (refusal !== null) throw refusal;
      const replica = admitted(parts, request.headers.authorization);
      const { searchParams } = new URL(request.url ?? "", "http://node");
      const frames = (STREAMS.get(route) as Frames)(replica, searchParams);
      if (underWay >= AT_ONCE)
        throw new ServerRefusal("overloaded", `${AT_ONCE} others read this log; try again later`);
      underWay++;
      try {
        response.writeHead(200, [...headersOf(BYTES)]);
        cutOffSilent(response, SILENCE_MS);
        await pipeline(Readable.from(frames), response);
      } finally {
        underWay--;
      }
    } catch (error) {
      // In the middle of an answer nothing can be said any more; it has no end, so it is not taken for whole.
      if (response.headersSent) response.destroy();
      else sendProblem(parts, context, error);
    }
  };
}

/** The replica, if this caller may read it. */
function admitted({ access, replica }: ReplicaParts, authorization: string | undefined): ReplicaSource {
  const [, token] = NODE_TOKEN.exec(authorization ?? "") ?? [];
  if (token === undefined) {
    const caller = access()(authorization);
    if (caller.role !== "admin" || isScoped(caller)) throw forbidden("it takes the role admin, or another node");
  } else if (replica?.isNode(token) !== true)
    throw new ServerRefusal("unauthorized", "this is no token of a node of this cluster, for this node and for now");
  if (replica === null) throw new ServerRefusal("not_found", "this log is in memory only");
  return replica;
}

function seqIn(query: URLSearchParams): number | null {
  const after = query.get("after");
  if (after === null) return null;
  if (!SEQ.test(after)) throw badInput("after", after, "the number of an event");
  return Number(after);
}
