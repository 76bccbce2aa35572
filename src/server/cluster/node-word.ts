/**
 * Asking who is at an address, and answering that: a node's word (log/shared/node-word.ts), with no token either way.
 *
 * What it says to anybody is little more than `/readyz` does, and it is no call of the API: only nodes can read whether
 * it is true.
 */
import type { IncomingMessage, RequestListener } from "node:http";
import { badInput } from "../../engine/base/index.ts";
import {
  answerIn,
  type DroverNode,
  isQuestion,
  type NodeWord,
  newQuestion,
  WORD_MS,
  WORD_PATH,
} from "../../engine/node/index.ts";
import {
  headersOf,
  JSON_TYPE,
  type RequestCheck,
  type SendParts,
  ServerRefusal,
  sendAnswer,
  sendProblem,
} from "../../http/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import type { Peers } from "./peers.ts";

export type Heard =
  | { readonly kind: "word"; readonly word: NodeWord }
  /** Something answers there, and it is no node of this cluster. */
  | { readonly kind: "stranger"; readonly status: number }
  | { readonly kind: "nothing"; readonly why: string };
export type AskWord = (base: string, signal: AbortSignal) => Promise<Heard>;

/** Asks who is there. Never rejects. */
export const askWordBy =
  (node: Pick<DroverNode, "readWord">, peers: Pick<Peers, "ask">, clock: Clock): AskWord =>
  async (base, signal) => {
    const late = new AbortController();
    const giveUp = (): void => late.abort(new Error(`no answer within ${WORD_MS} ms`));
    const cancel = ringAfter(clock, WORD_MS, giveUp, { keepAlive: false });
    const question = newQuestion();
    const path = `${WORD_PATH}?question=${question}`;
    try {
      const ends = AbortSignal.any([signal, late.signal]);
      const answer = await peers.ask({ base, path, method: "GET", headers: {}, body: null, signal: ends });
      const word = node.readWord(question, await allOf(answer, ends));
      return word === null ? { kind: "stranger", status: answer.statusCode ?? 0 } : { kind: "word", word };
    } catch (error) {
      return { kind: "nothing", why: error instanceof Error ? error.message : String(error) };
    } finally {
      cancel();
    }
  };

async function allOf(answer: IncomingMessage, signal: AbortSignal): Promise<unknown> {
  const cut = (): void => void answer.destroy(signal.reason);
  signal.addEventListener("abort", cut, { once: true });
  try {
    return await answerIn(answer);
  } finally {
    signal.removeEventListener("abort", cut);
  }
}

type WordParts = SendParts & {
  readonly checkRequest: RequestCheck;
  readonly cluster: Pick<DroverNode, "word"> | null;
};

export function answerWord(parts: WordParts): RequestListener {
  const onAnswered = parts.observerOf("GET", WORD_PATH);
  return (request, response) => {
    const context = { request, response, route: WORD_PATH, startedAt: performance.now() };
    try {
      const refusal = parts.checkRequest(request);
      if (refusal !== null) throw refusal;
      const question = new URL(request.url ?? "", "http://node").searchParams.get("question");
      if (!isQuestion(question)) throw badInput("question", question, "32 hexadecimal digits");
      const word = parts.cluster?.word(question) ?? null;
      if (word === null) throw new ServerRefusal("not_found", "this server is no node of a cluster");
      sendAnswer(
        parts,
        context,
        { status: 200, body: JSON.stringify(word), headers: headersOf(JSON_TYPE) },
        onAnswered,
      );
    } catch (error) {
      sendProblem(parts, context, error);
    }
  };
}
