/**
 * A node that follows sends what changes something on to the leader, and passes the answer on as it is.
 *
 *     caller ─► follower ── X-Drover-Forwarded ─► leader
 *            ◄─         ◄── answer, X-Drover-Leader
 *
 * One hop: what was sent on already and meets a node that does not lead is answered 503 `no_leader`, and so is what
 * cannot be sent on. The header gives a caller nothing more: the leader asks for the token as ever, and it is the
 * caller's own.
 *
 * Where no answer came, or the leader said that it leads no more, the call is made once more, at the next leader, if
 * that is known by then and the call is safe to repeat (given-ids.ts sees to ids). That may be this node. Where it is
 * not known whether the leader has done it, the connection to the caller is cut. Everything has a bound: how many are
 * under way, the bytes they hold, and how long each may take.
 */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { DroverNode } from "../../engine/node/index.ts";
import { PollEnded, ServerRefusal, tokenIn, uploadOf } from "../../http/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { ENDPOINTS, FORWARDED_HEADER, isRead } from "../../protocol/wire/index.ts";
import type { Asking, CameIn, Outcome } from "./asking.ts";
import type { ForwardRoom } from "./forward-room.ts";
import { withIds } from "./given-ids.ts";

/** The body is sent on as it comes, and the call never again. */
export const AS_IT_COMES: unique symbol = Symbol("as it comes");

export type Passed = CameIn & {
  /** JSON that was read, undefined for none, or AS_IT_COMES. */
  readonly body: unknown;
};
/** Its answer was passed back; or it is to be answered here, with this body, because this node leads by now. */
export type PassedOn = { readonly status: number } | { readonly here: unknown };
export type Forwarding = {
  /** Sends a call on and passes its answer back. Rejects if nothing was answered. */
  pass(call: Passed): Promise<PassedOn>;
};

export function createForwarding(deps: {
  readonly node: Pick<DroverNode, "life" | "readOnly">;
  readonly asking: Asking;
  readonly room: ForwardRoom;
}): Forwarding {
  const { node, room } = deps;
  const { leaderNow, ask, handBack } = deps.asking;

  async function passOn(call: Passed, body: Buffer | Readable | null): Promise<PassedOn> {
    for (let mayRepeat = Buffer.isBuffer(body) || body === null; ; mayRepeat = false) {
      const leader = leaderNow();
      // Who sends what goes on as it comes may not be known here: only a leader that was asked answers that.
      if (leader === null && call.body !== AS_IT_COMES && node.life().leads()) return { here: call.body };
      if (leader === null) throw notLed(node, "no node leads at the moment");
      const outcome = await ask({ ...call, base: leader, asLeader: true, body });
      if (outcome.kind === "answer" && isOtherwiseKnown(call, outcome.answer)) {
        outcome.answer.resume();
        throw unknownToLeader(leader);
      }
      if (outcome.kind === "answer") return handBack(call, outcome, leader);
      if (mayRepeat && isToBeRepeated(call, outcome, leader !== leaderNow())) continue;
      if (outcome.kind === "refused") return handBack(call, outcome, leader);
      if (!outcome.failure.isUnsent && !isRead(call.name)) {
        // The leader may have done it. A connection that is cut is how a caller knows what that means for its call.
        call.response.destroy();
        throw new PollEnded("hung-up");
      }
      throw notLed(node, `the leader cannot be reached, or did not answer (${outcome.failure.message})`);
    }
  }

  return {
    async pass(given) {
      const call = { ...given, body: withIds(given.name, given.body) };
      if (call.request.headers[FORWARDED_HEADER] !== undefined)
        throw notLed(node, "this node was taken for the leader, and follows");
      const body = bodyFor(call);
      const leave = room.take(Buffer.isBuffer(body) ? body.length : 0);
      if (leave === null)
        throw new ServerRefusal("overloaded", `${room.count()} calls are on their way to the leader; try again later`);
      try {
        return await passOn(call, body);
      } finally {
        leave();
      }
    },
  };
}

function notLed(node: Pick<DroverNode, "readOnly">, why: string): ServerRefusal {
  const full = node.readOnly();
  const message = full === null ? `${why}; try again in a moment` : `the cluster is read-only: ${full} Then try again.`;
  return new ServerRefusal("no_leader", message);
}

/** What never left may be sent anywhere; what may have been heard, only if it is the same when it is heard twice. */
function isToBeRepeated({ name, request }: Passed, outcome: Outcome, hasMoved: boolean): boolean {
  const { repeatable, onceWith } = ENDPOINTS[name];
  const isOnce = onceWith !== undefined && (request.url ?? "").includes(`${onceWith}=`);
  const isSafe = repeatable && !isOnce;
  if (outcome.kind !== "failed") return isSafe && hasMoved;
  const { isUnsent, wasKept } = outcome.failure;
  return (isSafe || isUnsent) && (hasMoved || wasKept);
}

/** Only what is known here is sent on, and tokens of attempts, of which the leader knows best. */
const isOtherwiseKnown = ({ request }: Passed, { statusCode }: IncomingMessage): boolean =>
  statusCode === 401 && !ATTEMPT_TOKEN_FORM.test(tokenIn(request.headers.authorization) ?? "");

const unknownToLeader = (leader: string): ServerRefusal =>
  new ServerRefusal(
    "unauthorized",
    `this node lets the caller in, and the leader, ${leader}, does not: give all nodes the same server.tokens`,
  );

function bodyFor({ request, body }: Passed): Buffer | Readable | null {
  if (body === AS_IT_COMES) return hasBody(request) ? Readable.from(uploadOf(request), { objectMode: false }) : null;
  return body === undefined ? null : Buffer.from(JSON.stringify(body));
}
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
