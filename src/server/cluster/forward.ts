/**
 * A node that follows sends what changes something on to the leader, and passes the answer on as it is.
 *
 *     caller ─► follower ── X-Drover-Forwarded ─► leader
 *            ◄─         ◄── answer, X-Drover-Leader
 *
 * One hop: what was sent on already and meets a node that does not lead is answered 503 `no_leader`, and so is what
 * cannot be sent on. The header gives a caller nothing more: the leader asks for the token as ever, and it is the
 * caller's own; that the ids which were added do not count as bytes of the body takes the seal of a node beside it
 * (log/shared/forward-seal.ts).
 *
 * Where no answer came, or the leader said that it leads no more, the call is made once more, at the next leader, if
 * that is known by then and the call is safe to repeat (given-ids.ts sees to ids). That may be this node. Where it is
 * not known whether the leader has done it, the connection to the caller is cut. Everything has a bound: how many are
 * under way, the bytes they hold, and how long each may take.
 */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { awayText, type DroverNode } from "../../engine/node/index.ts";
import { type Holder, PollEnded, ServerRefusal, tokenIn, uploadOf } from "../../http/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { ENDPOINTS, FORWARDED_HEADER, isRead } from "../../protocol/wire/index.ts";
import type { Asking, CameIn, Outcome } from "./asking.ts";
import type { ForwardRoom } from "./forward-room.ts";
import { GIVEN_BYTES_MAX, withIds } from "./given-ids.ts";

/** The body is sent on as it comes, and the call never again. */
export const AS_IT_COMES: unique symbol = Symbol("as it comes");

export type Passed = CameIn & {
  readonly holder: Holder;
  /** JSON that was read, undefined for none, or AS_IT_COMES. */
  readonly body: unknown;
  /** What it was read from. */
  readonly bytes: Buffer | null;
};
/** Its answer was passed back; or it is to be answered here, with this body, because this node leads by now. */
export type PassedOn = { readonly status: number } | { readonly here: unknown };
export type Forwarding = {
  /** Sends a call on and passes its answer back. Rejects if nothing was answered. */
  pass(call: Passed): Promise<PassedOn>;
};

export function createForwarding(deps: {
  readonly node: Pick<DroverNode, "life" | "readOnly" | "journalAway">;
  readonly asking: Asking;
  readonly room: ForwardRoom;
}): Forwarding {
  const { node, room } = deps;
  const { findLeader, ask, handBack } = deps.asking;

  async function passOn(call: Passed, { body, isOnce }: Sent): Promise<PassedOn> {
    for (let mayRepeat = !isOnce; ; mayRepeat = false) {
      const leader = await findLeader();
      // Who sends what goes on as it comes may not be known here: only a leader that was asked answers that.
      if (leader === null && call.body !== AS_IT_COMES && node.life().leads()) return { here: call.body };
      if (leader === null) throw notLed(node, "no node that was heard of lately leads");
      const outcome = await ask({ ...call, base: leader, asLeader: true, body });
      if (outcome.kind === "answer" && isOtherwiseKnown(call, outcome.answer)) {
        outcome.answer.resume();
        throw unknownToLeader(leader);
      }
      if (outcome.kind !== "failed" && body instanceof Readable) letGo(call, body);
      if (outcome.kind === "answer") return handBack(call, outcome, leader);
      if (mayRepeat && isToBeRepeated(call, outcome, leader !== (await findLeader()))) continue;
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
      const sent = sentFor(call, call.body !== given.body);
      const { body } = sent;
      // A worker is lost without its sync. What comes with a token that is not known here is not waited for so.
      const isNeeded = call.name === "sync" && call.body !== AS_IT_COMES;
      const leave = room.take({ holder: call.holder, size: Buffer.isBuffer(body) ? body.length : 0, isNeeded });
      if (leave === null)
        throw new ServerRefusal("overloaded", `${room.count()} calls are on their way to the leader; try again later`);
      try {
        return await passOn(call, sent);
      } finally {
        leave();
      }
    },
  };
}

function notLed(node: Pick<DroverNode, "readOnly" | "journalAway">, why: string): ServerRefusal {
  const [full, away] = [node.readOnly(), node.journalAway()];
  const refused = (text: string, journal?: "full" | "away"): ServerRefusal =>
    new ServerRefusal("no_leader", text, journal === undefined ? undefined : { journal });
  if (full !== null) return refused(`the cluster is read-only: ${full} Then try again.`, "full");
  if (away !== null) return refused(`${why}: ${awayText(away)} Try again when it is back.`, "away");
  return refused(`${why}; try again in a moment`);
}

/** What never left may be sent anywhere; what may have been heard, only if it is the same when it is heard twice. */
function isToBeRepeated({ name, request }: Passed, outcome: Outcome, hasMoved: boolean): boolean {
  const { method, repeatable, onceWith } = ENDPOINTS[name];
  const isOnce = onceWith !== undefined && isAskedFor(onceWith, request.url ?? "");
  // Whoever repeats these finds gone what was to go: only a caller that knows of the loss can tell that it has worked.
  const isFoundDone = method === "DELETE" || name === "cancel";
  const isSafe = repeatable && !isOnce && !isFoundDone;
  if (outcome.kind !== "failed") return isSafe && hasMoved;
  const { isUnsent, wasKept } = outcome.failure;
  return (isSafe || isUnsent) && (hasMoved || wasKept);
}

const isAskedFor = (field: string, target: string): boolean =>
  new URLSearchParams(target.slice(target.indexOf("?") + 1)).getAll(field).some((value) => value !== "false");

/** Only what is known here is sent on, and tokens of attempts, of which the leader knows best. */
const isOtherwiseKnown = ({ request }: Passed, { statusCode }: IncomingMessage): boolean =>
  statusCode === 401 && !ATTEMPT_TOKEN_FORM.test(tokenIn(request.headers.authorization) ?? "");

const unknownToLeader = (leader: string): ServerRefusal =>
  new ServerRefusal(
    "unauthorized",
    `this node lets the caller in, and the leader, ${leader}, does not: give all nodes the same server.tokens`,
  );

/** A body as it goes to the leader, and whether it may go there once only. */
type Sent = { readonly body: Buffer | Readable | null; readonly isOnce: boolean };

/** A body that was answered before all of it came is dropped by the connection, or ends with it (send-answer.ts). */
function letGo({ request }: Passed, body: Readable): void {
  body.once("close", () => void request.resume()).destroy();
}

/** The bytes as they were read, unless ids were added. */
function sentFor({ request, body, bytes }: Passed, isChanged: boolean): Sent {
  if (body === AS_IT_COMES) {
    const isNone = !hasBody(request);
    return { body: isNone ? null : Readable.from(uploadOf(request), { objectMode: false }), isOnce: !isNone };
  }
  if (body === undefined || bytes === null) return { body: null, isOnce: false };
  if (!isChanged) return { body: bytes, isOnce: false };
  const anew = writtenAnew(body, bytes.length + GIVEN_BYTES_MAX);
  // Without ids the leader says what is wrong with it, or does it; but it cannot be asked twice.
  return anew === null ? { body: bytes, isOnce: true } : { body: anew, isOnce: false };
}

/** Null for what is nested too deep to be written, or too long then. */
function writtenAnew(body: unknown, bytesMax: number): Buffer | null {
  try {
    const written = Buffer.from(JSON.stringify(body));
    return written.length <= bytesMax ? written : null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
