/**
 * Reading the replica of another node over HTTP.
 *
 * All that comes is checked by whoever takes it in: batches by their links, kept payloads by a list, list and snapshot
 * by the signature of that node. A stream that stalls or is cut off may be asked for again.
 */
import { errorText, isRecord, isSha256, type Seq, seq } from "../../core/base/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import type { KeptList } from "../integrity/kept-list.ts";
import { unpackEntry } from "../journal/entry.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { type Anchor, type Checkpoint, LogFailure } from "../log.ts";
import { type Frame, jsonIn, KIND, readFrames } from "./frames.ts";
import { nodeToken } from "./node-token.ts";
import { answerIn, newQuestion, readWord, WORD_MS, WORD_PATH } from "./node-word.ts";

/** Where nodes answer each other. */
export const LOG_PATH = "/cluster/log";
export const SNAPSHOT_PATH = "/cluster/snapshot";

/** Without a byte for so long, nothing more will come. */
const SILENCE_MS = 60_000;

export type OtherNode = {
  /** Its base URL, and for people. */
  readonly url: string;
  readonly token: string | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};
export type NodeHistory = AsyncDisposable & {
  readonly base: Anchor;
  readonly head: Anchor;
  readonly batches: AsyncIterable<SealedBatch>;
};
export type NodeReplica = {
  readonly base: Anchor;
  readonly checkpoint: Checkpoint | null;
  readonly list: KeptList | null;
  /** The rest: kept entries, blocks of payloads, the snapshot. */
  readonly frames: AsyncGenerator<Frame>;
};

/** By which the node there lets `self` in, if it is the node that is meant: it is asked first, without a token. */
export async function tokenFrom(
  { url, clock, signal }: Omit<OtherNode, "token">,
  who: { readonly self: string; readonly node: string; readonly secret: string },
): Promise<string> {
  const late = new AbortController();
  const giveUp = (): void => late.abort(new Error(`no answer within ${WORD_MS} ms`));
  const cancel = ringAfter(clock, WORD_MS, giveUp);
  const question = newQuestion();
  try {
    const ends = AbortSignal.any([signal, late.signal]);
    const target = `${url.replace(/\/+$/, "")}${WORD_PATH}?question=${question}`;
    const answer = await fetch(target, { signal: ends, redirect: "error" });
    const word = readWord(who.secret, question, answer.body === null ? null : await answerIn(answer.body));
    if (word?.node === who.node && word.url === url) return nodeToken(who.secret, who.self, word);
    throw new LogFailure("refused", `what answers at ${url} has not proved to be node ${who.node}`);
  } catch (error) {
    if (error instanceof LogFailure) throw error;
    signal.throwIfAborted();
    throw new LogFailure("unreachable", `the node at ${url} cannot be reached: ${reasonOf(error)}`);
  } finally {
    cancel();
  }
}

/** Where its history begins and ends, and what is behind an event. */
export async function historyOf(node: OtherNode, after: Seq | null): Promise<NodeHistory> {
  const frames = ask(node, after === null ? LOG_PATH : `${LOG_PATH}?after=${after}`);
  const { base, head } = await factsIn(frames);
  if (!isAnchor(base) || !isAnchor(head)) throw senseless(node);
  const end = async (): Promise<void> => void (await frames.return(undefined));
  return { base, head, batches: batchesIn(frames), [Symbol.asyncDispose]: end };
}

export async function replicaOf(node: OtherNode): Promise<NodeReplica> {
  const frames = ask(node, SNAPSHOT_PATH);
  const { base, checkpoint, list } = await factsIn(frames);
  if (!isAnchor(base)) throw senseless(node);
  return { base, checkpoint: checkpoint as Checkpoint | null, list: list as KeptList | null, frames };
}

async function* batchesIn(frames: AsyncGenerator<Frame>): AsyncGenerator<SealedBatch> {
  for await (const { kind, body } of frames) if (kind === KIND.batch) yield unpackEntry(body);
}

async function factsIn(frames: AsyncGenerator<Frame>): Promise<Readonly<Record<string, unknown>>> {
  const { value } = await frames.next();
  const facts = value === undefined || value.kind !== KIND.facts ? null : jsonIn(value);
  return isRecord(facts) ? facts : {};
}

const isAnchor = (value: unknown): value is Anchor =>
  isRecord(value) && Number.isSafeInteger(value.seq) && (value.seq as number) >= 0 && isSha256(value.hash);

const senseless = ({ url }: OtherNode): LogFailure =>
  new LogFailure("refused", `what ${url} sent is no part of a log: is it a Drover of this version?`);

async function* ask(node: OtherNode, path: string): AsyncGenerator<Frame> {
  const { url, token, clock } = node;
  const silent = new AbortController();
  const signal = AbortSignal.any([node.signal, silent.signal]);
  const restart = () => ringAfter(clock, SILENCE_MS, () => silent.abort(new Error("nothing came for a minute")));
  let cancel = restart();
  async function* heard(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      cancel();
      yield chunk;
      cancel = restart();
    }
  }
  try {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`${url.replace(/\/+$/, "")}${path}`, { headers, signal, redirect: "error" });
    if (answer.status === 200 && answer.body !== null) yield* readFrames(heard(answer.body));
    else throw await refusalOf(node, answer);
  } catch (error) {
    if (error instanceof LogFailure) throw error;
    node.signal.throwIfAborted();
    throw new LogFailure("unreachable", `the node at ${url} cannot be reached: ${reasonOf(error)}`);
  } finally {
    cancel();
  }
}

async function refusalOf({ url }: OtherNode, answer: Response): Promise<LogFailure> {
  const problem = (await answer.json().catch(() => null)) as { error?: unknown } | null;
  const said = typeof problem?.error === "string" ? problem.error : `status ${answer.status}`;
  const passes = answer.status >= 500 || answer.status === 429;
  return new LogFailure(passes ? "unreachable" : "refused", `the node at ${url} says: ${said}`);
}

/** What `fetch` throws says little; its cause says why. */
const reasonOf = (error: unknown): string =>
  errorText(error instanceof Error && error.cause !== undefined ? error.cause : error);
export const blockIn = ({ body }: Frame): { firstSeq: Seq; bytes: Uint8Array } => ({
  firstSeq: seq(Number(body.readBigUInt64BE())),
  bytes: body.subarray(8),
});
