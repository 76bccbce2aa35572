/**
 * What a node says of itself to whoever asks at its address, and how another node knows that it is true.
 *
 * Whoever asks does not know yet who answers there, so it sends no token: only a question, chance that nobody has seen
 * before. The answer is sealed with the secret of their journal, together with that question. So it is of a node of
 * this cluster, and of now: what was answered before fits no other question. The answer names the address that the node
 * tells the others. One that passes questions on from an address that is no node's any more is found out by that. It
 * also says what time it is there, for which whoever asked can make a token (node-token.ts).
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { isCount, isRecord, isSha256 } from "../../core/base/index.ts";

export type NodeWord = {
  readonly node: string;
  /** Where it tells others that it is reached. */
  readonly url: string;
  /** Whether it leads for sure. */
  readonly leads: boolean;
  readonly epoch: number;
  /** What time it has: of its process, and for nobody else to read. */
  readonly moment: string;
};
export type SealedWord = NodeWord & { readonly seal: string };

/** Where nodes are asked. */
export const WORD_PATH = "/cluster/node";
/** For the whole answer, and no word is longer. */
export const WORD_MS = 2000;
const BYTES_MAX = 16 * 1024;
const QUESTION = /^[0-9a-f]{32}$/;

export const newQuestion = (): string => randomBytes(16).toString("hex");
export const isQuestion = (text: string | null): text is string => text !== null && QUESTION.test(text);

export const sealWord = (secret: string, question: string, word: NodeWord): SealedWord => ({
  ...word,
  seal: sealOf(secret, question, word).toString("hex"),
});

/** What was answered, to be read; null for what is no JSON, or too long to be a word. */
export async function answerIn(parts: AsyncIterable<Uint8Array>): Promise<unknown> {
  const kept: Uint8Array[] = [];
  let size = 0;
  for await (const part of parts) {
    size += part.length;
    if (size > BYTES_MAX) return null;
    kept.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(kept).toString("utf8"));
  } catch {
    return null;
  }
}

/** The word, if a node of this journal has given it in answer to this question; else null. */
export function readWord(secret: string, question: string, told: unknown): NodeWord | null {
  if (!isRecord(told)) return null;
  const { node, url, leads, epoch, moment, seal } = told;
  if (typeof node !== "string" || typeof url !== "string" || typeof moment !== "string") return null;
  if (typeof leads !== "boolean" || !isCount(epoch)) return null;
  const word = { node, url, leads, epoch, moment };
  const isTrue = isSha256(seal) && timingSafeEqual(sealOf(secret, question, word), Buffer.from(seal, "hex"));
  return isTrue ? word : null;
}

const sealOf = (secret: string, question: string, { node, url, leads, epoch, moment }: NodeWord): Buffer =>
  createHmac("sha256", secret)
    .update(`drover word 2 ${JSON.stringify([question, node, url, leads, epoch, moment])}`)
    .digest();
