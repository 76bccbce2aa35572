/**
 * One call of a caller, put to another node, and its answer handed back as it is.
 *
 * Only headers that a call may need go along; where it came from was checked here. An answer whose head has come is the
 * caller's; if it breaks off, so does the caller's. When another node takes the lead, calls that wait for the old one
 * are called off.
 *
 * Who is asked as the leader gets the caller's token, and is believed. So it must be known that the leader is there:
 * that the log names it is not enough, since the address of one that is gone may be anybody's by now. Either the
 * journal has a word of it of the last seconds, or, where this node hears nothing of the journal, it has proved to this
 * node itself, just now and without having seen any token, that it leads (known-leader.ts). That a call was answered
 * well is no such proof: whoever has the address could answer so for ever.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { cutOffSilent, headerText, leaveRest, PollEnded } from "../../http/index.ts";
import {
  AFTER_HEADER,
  BULK_HEADER,
  type CallName,
  ENDPOINTS,
  FORWARD_SEAL_HEADER,
  FORWARDED_HEADER,
  LEADER_HEADER,
  PROTOCOL_HEADER,
} from "../../protocol/wire/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { createKnownLeader } from "./known-leader.ts";
import { askWordBy } from "./node-word.ts";
import { createPeers, PeerFailure } from "./peers.ts";

/** For the head of an answer; of a call that may be held back for a minute, longer. */
const [ANSWER_MS, HELD_ANSWER_MS] = [30_000, 75_000];
/** For that of a node that may have what is not here: the leader waits for the worker that has a log. */
const ELSEWHERE_MS = 7000;
/** A refusal is looked into before it is passed on; none is longer. */
const REFUSAL_BYTES_MAX = 64 * 1024;

/** A call as it came in. */
export type CameIn = {
  readonly name: CallName;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};
export type Question = CameIn & {
  /** The node that is asked. */
  readonly base: string;
  /** Whether it is asked as the leader: not any longer, if it is that no more. */
  readonly asLeader: boolean;
  readonly body: Buffer | Readable | null;
  /** In the place of what the caller sent. */
  readonly headers?: Readonly<Record<string, string>>;
};
export type Outcome =
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

export type Asking = {
  /** Where the leader is; null if no other node is known to lead by what it has said lately. */
  findLeader(): Promise<string | null>;
  /** Rejects only if the caller has hung up. */
  ask(question: Question): Promise<Outcome>;
  /** Resolves when the caller has the answer, or is gone. */
  handBack(
    call: CameIn,
    outcome: Exclude<Outcome, { kind: "failed" }>,
    leader: string,
  ): Promise<{ readonly status: number }>;
  /** What is under way is not waited for, and its connections end. */
  stop(): void;
};
export type AskingDeps = {
  readonly node: Pick<
    DroverNode,
    "id" | "leaderUrl" | "peers" | "life" | "onLife" | "applied" | "readWord" | "sealForward"
  >;
  readonly drover: Pick<Drover, "state" | "watch">;
  readonly clock: Clock;
  /** A caller that takes nothing of its answer for so long is gone. */
  readonly silenceMs: number;
};

export function createAsking({ node, drover, clock, silenceMs }: AskingDeps): Asking {
  const peers = createPeers(clock);
  const proved = createKnownLeader({ node, drover, clock, askWord: askWordBy(node, peers, clock) });
  const waiting = new Set<Waiting>();

  const leaderInLog = (): string | null => (drover.state.cluster.leader === node.id ? null : node.leaderUrl());
  function findLeader(): Promise<string | null> {
    const leader = leaderInLog();
    const isHeardOf = node.peers().some(({ url }) => url === leader);
    return isHeardOf || node.life().leads() ? Promise.resolve(isHeardOf ? leader : null) : proved.find();
  }

  function callOffMoved(): void {
    if (waiting.size === 0) return;
    const now = leaderInLog();
    for (const { leader, over } of waiting)
      if (leader !== null && leader !== now && leader !== proved.lately())
        over.abort(new Error("another node leads now"));
  }
  const stopListening = [drover.watch(callOffMoved), node.onLife(callOffMoved)];

  async function ask({ name, request, response, base, asLeader, body, ...more }: Question): Promise<Outcome> {
    const over = new AbortController();
    const hangUp = (): void => over.abort(new PollEnded("hung-up"));
    const entry: Waiting = { leader: asLeader ? base : null, over };
    const late = (): void => over.abort(new Error("it did not answer in time"));
    const shortMs = asLeader ? ANSWER_MS : ELSEWHERE_MS;
    const cancel = ringAfter(clock, ENDPOINTS[name].waits ? HELD_ANSWER_MS : shortMs, late, { keepAlive: false });
    waiting.add(entry);
    response.once("close", hangUp);
    if (response.destroyed) hangUp();
    try {
      const { method = "GET" } = request;
      const headers = { ...headersFor(request, node, body), ...more.headers };
      const path = pathOf(request.url ?? "/");
      const answer = await peers.ask({ base, path, method, headers, body, signal: over.signal });
      // What is no answer of Drover was none of its leader.
      if (answer.headers[PROTOCOL_HEADER] === undefined) {
        answer.destroy();
        return { kind: "failed", failure: new PeerFailure("what answered there is no node of Drover") };
      }
      if (answer.statusCode !== 503) return { kind: "answer", answer };
      if (asLeader) proved.forget(base);
      return { kind: "refused", answer, bytes: await allOf(answer) };
    } catch (error) {
      if (over.signal.reason instanceof PollEnded) throw over.signal.reason;
      if (asLeader) proved.forget(base);
      return { kind: "failed", failure: error instanceof PeerFailure ? error : new PeerFailure(error) };
    } finally {
      cancel();
      waiting.delete(entry);
      response.removeListener("close", hangUp);
    }
  }

  async function handBack(
    { request, response }: CameIn,
    outcome: Exclude<Outcome, { kind: "failed" }>,
    leader: string,
  ): Promise<{ readonly status: number }> {
    const { statusCode = 502, rawHeaders } = outcome.answer;
    if (!request.complete) leaveRest({ request, response });
    const content = outcome.kind === "answer" ? outcome.answer : Readable.from([outcome.bytes], { objectMode: false });
    response.writeHead(statusCode, headersBack(rawHeaders, leader));
    cutOffSilent(response, silenceMs);
    try {
      await pipeline(content, response);
    } catch {
      // In the middle of an answer nothing can be said any more; its length says that it was cut.
      response.destroy();
    }
    return { status: statusCode };
  }

  return {
    findLeader,
    ask,
    handBack,
    stop() {
      proved.stop();
      for (const stop of stopListening) stop();
      for (const { over } of waiting) over.abort(new Error("this node stops"));
      peers.close();
    },
  };
}

/** A target may be a whole URL; that it names this server was checked. */
const pathOf = (target: string): string =>
  target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, "");

/** What of a request the leader may need. Its Host is that of the leader, and no page speaks to it. */
const SENT_ON = ["authorization", "accept", "content-type", "user-agent", "traceparent", "tracestate"] as const;

function headersFor(
  { headers }: IncomingMessage,
  { id, sealForward }: Pick<DroverNode, "id" | "sealForward">,
  body: Buffer | Readable | null,
): Record<string, string> {
  const sent: Record<string, string> = { [FORWARDED_HEADER]: headerText(id) };
  for (const name of [...SENT_ON, PROTOCOL_HEADER, BULK_HEADER, AFTER_HEADER]) {
    const value = headers[name];
    if (typeof value === "string") sent[name] = value;
  }
  const length = Buffer.isBuffer(body) ? String(body.length) : body === null ? undefined : headers["content-length"];
  if (length !== undefined) sent["content-length"] = length;
  // What is sent as it comes was not looked at here.
  const seal = Buffer.isBuffer(body) ? sealForward({ authorization: sent.authorization, length }) : null;
  if (seal !== null) sent[FORWARD_SEAL_HEADER] = seal;
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
