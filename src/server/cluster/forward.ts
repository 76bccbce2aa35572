/**
 * A node that follows sends what changes something on to the leader, and passes the answer on as it is.
 *
 *     caller ─► follower ── X-Drover-Forwarded ─► leader
 *            ◄─         ◄── answer, X-Drover-Leader
 *
 * One hop: what was sent on already and meets a node that does not lead is answered 503 `no_leader`, and so is what
 * cannot be sent on. The header gives a caller nothing more: the leader asks for the token as ever, and it is the
 * caller's own. Only headers that a call may need go along; where it came from was checked here.
 *
 * Where no answer came, or the leader said that it leads no more, the call is made once more, at the next leader, if
 * that is known by then and the call is safe to repeat (given-ids.ts sees to ids). That may be this node. An answer
 * whose head has come is the caller's; if it breaks off, so does the caller's. When another node takes the lead, calls
 * that wait for the old one are called off. Everything has a bound: how many are under way, the bytes they hold, and
 * how long each may take.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { cutOffSilent, headerText, PollEnded, ServerRefusal, uploadOf } from "../../http/index.ts";
import {
  AFTER_HEADER,
  BULK_HEADER,
  type CallName,
  ENDPOINTS,
  FORWARDED_HEADER,
  LEADER_HEADER,
  PROTOCOL_HEADER,
} from "../../protocol/wire/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { otherNodes } from "./file-copies.ts";
import { withIds } from "./given-ids.ts";
import { createPeers, PeerFailure } from "./peers.ts";

export type ForwardLimits = {
  /** Calls under way at once, those that are held included. */
  readonly forwardsMax: number;
  /** Of the bodies they have. */
  readonly forwardBytesMax: number;
};
/** For the head of an answer; of a call that may be held back for a minute, longer. */
const [ANSWER_MS, HELD_ANSWER_MS] = [30_000, 75_000];
/** For that of a node that may have what is not here: the leader waits for the worker that has a log. */
const ELSEWHERE_MS = 7000;
/** What is in no log and was decided by the leader: tasks that it has turned away. No other node knows of them. */
const LEADERS_ONLY: ReadonlySet<CallName> = new Set(["task", "wait"]);
/** A refusal is looked into before it is passed on; none is longer. */
const REFUSAL_BYTES_MAX = 64 * 1024;

/** The body is sent on as it comes, and the call never again. */
export const AS_IT_COMES: unique symbol = Symbol("as it comes");

export type Passed = {
  readonly name: CallName;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** JSON that was read, undefined for none, or AS_IT_COMES. */
  readonly body: unknown;
};
/** Its answer was passed back; or it is to be answered here, with this body, because this node leads by now. */
export type PassedOn = { readonly status: number } | { readonly here: unknown };
export type Forwarding = {
  /** Sends a call on and passes its answer back. Rejects if nothing was answered. */
  pass(call: Passed): Promise<PassedOn>;
  /** Asks those who may have what is not here, the leader first; null if none has it. Reads only. */
  elsewhere(call: Omit<Passed, "body">): Promise<{ readonly status: number } | null>;
  /** What is under way is answered 503, and its connections end. */
  stop(): void;
};
type Outcome =
  | { readonly kind: "answer"; readonly answer: IncomingMessage }
  /** It leads no more, or does not work: its words are passed on, unless another is asked. */
  | { readonly kind: "refused"; readonly answer: IncomingMessage; readonly bytes: Buffer }
  | { readonly kind: "failed"; readonly failure: PeerFailure };
/** One that waits for the head of its answer. */
type Waiting = {
  /** Null: it does not matter who leads. */
  readonly leader: string | null;
  readonly over: AbortController;
};

export function createForwarding(deps: {
  readonly node: Pick<DroverNode, "id" | "leaderUrl" | "life" | "onLife" | "readOnly">;
  readonly drover: Pick<Drover, "state" | "watch">;
  readonly clock: Clock;
  readonly limits: ForwardLimits;
  /** A caller that takes nothing of its answer for so long is gone. */
  readonly silenceMs: number;
}): Forwarding {
  const { node, drover, clock, limits } = deps;
  const peers = createPeers(clock);
  const waiting = new Set<Waiting>();
  let [underWay, bytes] = [0, 0];

  /** Null if nobody is known to lead, or this node itself led last. */
  const leaderNow = (): string | null => (drover.state.cluster.leader === node.id ? null : node.leaderUrl());

  function callOffMoved(): void {
    if (waiting.size === 0) return;
    const now = leaderNow();
    for (const { leader, over } of waiting)
      if (leader !== null && leader !== now) over.abort(new Error("another node leads now"));
  }
  const stopListening = [drover.watch(callOffMoved), node.onLife(callOffMoved)];

  function whoMayHave(name: CallName): readonly string[] {
    if (!LEADERS_ONLY.has(name)) return otherNodes(drover.state, node.id).map(({ url }) => url);
    const leader = leaderNow();
    return leader === null ? [] : [leader];
  }

  async function ask(
    leader: string | null,
    call: Omit<Passed, "body">,
    body: Buffer | Readable | null,
    base: string = leader as string,
  ): Promise<Outcome> {
    const { name, request, response } = call;
    const over = new AbortController();
    const hangUp = (): void => over.abort(new PollEnded("hung-up"));
    const entry: Waiting = { leader, over };
    const late = (): void => over.abort(new Error("it did not answer in time"));
    const shortMs = leader === null ? ELSEWHERE_MS : ANSWER_MS;
    const cancel = ringAfter(clock, ENDPOINTS[name].waits ? HELD_ANSWER_MS : shortMs, late, { keepAlive: false });
    waiting.add(entry);
    response.once("close", hangUp);
    if (response.destroyed) hangUp();
    try {
      const { method = "GET" } = request;
      const headers = headersFor(request, node.id, body);
      const answer = await peers.ask({
        base,
        path: pathOf(request.url ?? "/"),
        method,
        headers,
        body,
        signal: over.signal,
      });
      // What is no answer of Drover was none of its leader.
      if (answer.headers[PROTOCOL_HEADER] === undefined) {
        answer.destroy();
        return { kind: "failed", failure: new PeerFailure("what answered there is no node of Drover") };
      }
      if (answer.statusCode !== 503) return { kind: "answer", answer };
      return { kind: "refused", answer, bytes: await allOf(answer) };
    } catch (error) {
      if (over.signal.reason instanceof PollEnded) throw over.signal.reason;
      return { kind: "failed", failure: error instanceof PeerFailure ? error : new PeerFailure(error) };
    } finally {
      cancel();
      waiting.delete(entry);
      response.removeListener("close", hangUp);
    }
  }

  async function passOn(call: Passed, body: Buffer | Readable | null): Promise<PassedOn> {
    for (let mayRepeat = Buffer.isBuffer(body) || body === null; ; mayRepeat = false) {
      const leader = leaderNow();
      // Who sends what goes on as it comes may not be known here: only a leader that was asked answers that.
      if (leader === null && call.body !== AS_IT_COMES && node.life().leads()) return { here: call.body };
      if (leader === null) throw notLed(node, "no node leads at the moment");
      const outcome = await ask(leader, call, body);
      if (outcome.kind === "answer") return handBack(call, outcome.answer, leader, outcome.answer);
      if (mayRepeat && isToBeRepeated(call, outcome, leader !== leaderNow())) continue;
      if (outcome.kind === "refused")
        return handBack(call, outcome.answer, leader, Readable.from([outcome.bytes], { objectMode: false }));
      throw notLed(node, `the leader cannot be reached, or did not answer (${outcome.failure.message})`);
    }
  }

  async function handBack(
    { request, response }: Omit<Passed, "body">,
    { statusCode = 502, rawHeaders }: IncomingMessage,
    leader: string,
    content: Readable,
  ): Promise<{ readonly status: number }> {
    response.writeHead(statusCode, headersBack(rawHeaders, leader));
    cutOffSilent(response, deps.silenceMs);
    try {
      await pipeline(content, response);
    } catch {
      // In the middle of an answer nothing can be said any more; its length says that it was cut.
      response.destroy();
    }
    // A body that nobody wanted in full is read to its end by the connection.
    request.resume();
    return { status: statusCode };
  }

  return {
    async pass(given) {
      const call = { ...given, body: withIds(given.name, given.body) };
      if (call.request.headers[FORWARDED_HEADER] !== undefined)
        throw notLed(node, "this node was taken for the leader, and follows");
      const body = bodyFor(call);
      const size = Buffer.isBuffer(body) ? body.length : 0;
      if (underWay >= limits.forwardsMax || bytes + size > limits.forwardBytesMax)
        throw new ServerRefusal("overloaded", `${underWay} calls are on their way to the leader; try again later`);
      underWay++;
      bytes += size;
      try {
        return await passOn(call, body);
      } finally {
        underWay--;
        bytes -= size;
      }
    },
    async elsewhere(call) {
      if (call.request.headers[FORWARDED_HEADER] !== undefined || underWay >= limits.forwardsMax) return null;
      underWay++;
      try {
        for (const url of whoMayHave(call.name)) {
          const outcome = await ask(null, call, null, url);
          if (outcome.kind !== "answer") continue;
          if (outcome.answer.statusCode === 200)
            return await handBack(call, outcome.answer, node.leaderUrl() ?? url, outcome.answer);
          outcome.answer.destroy();
        }
        return null;
      } finally {
        underWay--;
      }
    },
    stop() {
      for (const stop of stopListening) stop();
      for (const { over } of waiting) over.abort(new Error("this node stops"));
      peers.close();
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

function bodyFor({ request, body }: Passed): Buffer | Readable | null {
  if (body === AS_IT_COMES) return hasBody(request) ? Readable.from(uploadOf(request), { objectMode: false }) : null;
  return body === undefined ? null : Buffer.from(JSON.stringify(body));
}
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** A target may be a whole URL; that it names this server was checked. */
const pathOf = (target: string): string =>
  target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, "");

/** What of a request the leader may need. Its Host is that of the leader, and no page speaks to it. */
const SENT_ON = ["authorization", "accept", "content-type", "user-agent", "traceparent", "tracestate"] as const;

function headersFor(request: IncomingMessage, self: string, body: Buffer | Readable | null): Record<string, string> {
  const { headers } = request;
  const sent: Record<string, string> = { [FORWARDED_HEADER]: headerText(self) };
  for (const name of [...SENT_ON, PROTOCOL_HEADER, BULK_HEADER, AFTER_HEADER]) {
    const value = headers[name];
    if (typeof value === "string") sent[name] = value;
  }
  const length = Buffer.isBuffer(body) ? String(body.length) : body === null ? undefined : headers["content-length"];
  if (length !== undefined) sent["content-length"] = length;
  return sent;
}

/** Of one connection each; the body is passed on with the length it has. */
const HOP: ReadonlySet<string> = new Set(["connection", "keep-alive", "transfer-encoding", "date", LEADER_HEADER]);

function headersBack(raw: readonly string[], leader: string): string[] {
  const back = [LEADER_HEADER, leader];
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (!HOP.has((raw[at] as string).toLowerCase())) back.push(raw[at] as string, raw[at + 1] as string);
  return back;
}

async function allOf(answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > REFUSAL_BYTES_MAX) throw new Error("its refusal is too long");
    parts.push(part);
  }
  return Buffer.concat(parts);
}
