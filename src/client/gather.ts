/**
 * Calls that are made at the same time travel together.
 *
 * A call that is made alone leaves at once, as the request it is. While a request is out, what comes gathers, and goes
 * as one `bulk` when the answer is there: in the order in which it was asked for, at most so many calls and characters,
 * and after a while even if there is no answer yet. Two bulks may be out at once, so that the server has work while an
 * answer is under way. Each names the last one that has no answer, and is begun behind it (server/bulk-order.ts). While
 * many requests have no answer hardly anything more leaves (trials.ts): what waits here costs a server that is behind
 * nothing. Each call is answered or refused by itself; its rests and repeats are its own (exchange.ts), and whoever
 * gives it up gives up that one. A bulk that all its callers have given up is given up too. What must not overtake
 * another comes here only when that has its answer (turns.ts). A server that does not know `bulk` is asked one by one
 * for a while: it may have been something on the way to it that did not.
 *
 * A bulk that is too large for the server goes again at once as several smaller ones, and the next are as small. They
 * take its place: the number of a bulk is that of its last call, so theirs lie before it, the last of them has its own,
 * and what had left behind it is begun behind that one. What is not in order all the same: what had left behind such a
 * bulk, if those that take its place need longer than the second that the server waits for it; calls that are made
 * again; and those of a server that does not know `bulk`, or finds one ill formed, which all leave at once.
 */
import type { BulkAnswer, BulkItem } from "../protocol/index.ts";
import { BULK_HEADER, type BulkName, ENDPOINTS } from "../protocol/wire/index.ts";
import { ClientError } from "./client-error.ts";
import { answerOf, fetchOnce, type Gather, type Gathered, objectOf, refusalOfOne, type Wiring } from "./exchange.ts";
import { createLine, type InLine } from "./gather-line.ts";
import { createKnown, FOR_THE_WHOLE, TOO_LARGE, UNKNOWN } from "./known.ts";
import { createTrials } from "./trials.ts";

/** More would be smaller ones, which cost more each. */
const OUT_MAX = 2;
/** What has gathered for so long goes without waiting for the answer of what went before, */
const WAIT_MS = 100;
/** or after as long as the server waits for a bulk, if that went alone: it has no number that could be named. */
const WAIT_ALONE_MS = 1000;
/** So many have no answer, and no other leaves, */
const UNANSWERED_MAX = 16;
/** but for trials, until they are so many together. */
const TRIED_MAX = 24;

type Waiting = InLine &
  Gathered & {
    readonly resolve: (answer: unknown) => void;
    readonly reject: (error: unknown) => void;
    /** With which it has left, if that may be given up. */
    request: Request | undefined;
  };

/** A request: of a bulk its number, and that of the one that it follows; 0 where there is none. */
type Request = {
  readonly calls: readonly Waiting[];
  readonly number: number;
  readonly after: number;
  /** Only where all of its callers can give up: most cannot, and a signal is dear. */
  readonly controller: AbortController | undefined;
  /** How many of its calls nobody has given up. */
  wanted: number;
};

/** `first` left before there was anything to gather: the end of it, if it has no answer yet. */
export function createGather(wiring: Wiring, first?: Promise<unknown>): Gather {
  const waiting = createLine<Waiting>();
  /** What is waited for: a request that was left behind once does not hold up what comes later. */
  let out: readonly Request[] = [];
  /** With those that were left behind, in the order in which they left. */
  let unanswered: readonly Request[] = [];
  let newest: Request | undefined;
  /** The name under which the server knows the order of the bulks. */
  let name: string | undefined;
  /** How many calls have come. */
  let made = 0;
  let isDue = false;
  let late: NodeJS.Timeout | undefined;
  const known = createKnown();
  const trials = createTrials(() => unanswered.length < TRIED_MAX && goLate());

  /** In a turn of its own, so that all that is asked for in this one goes with it. */
  function goSoon(): void {
    if (isDue || waiting.isEmpty()) return;
    if (isFull()) return trials.soon();
    if (!mayGo()) {
      late ??= setTimeout(goLate, isBehindOneAlone() ? WAIT_ALONE_MS : WAIT_MS);
      return;
    }
    isDue = true;
    clearTimeout(late);
    late = undefined;
    setImmediate(go);
  }

  /** Where the last that left is over, older ones were lost, or it took the place of one that was. */
  function isFull(): boolean {
    return unanswered.length >= UNANSWERED_MAX && unanswered.at(-1) === newest;
  }

  function goLate(): boolean {
    clearTimeout(late);
    late = undefined;
    out = [];
    return go();
  }

  /** Nothing is out, or one bulk that the next can name. */
  function mayGo(): boolean {
    const [first] = out;
    return first === undefined || (out.length < OUT_MAX && first.number > 0);
  }

  /** A server that does not know bulks begins what it is asked in no order that waiting could keep. */
  function isBehindOneAlone(): boolean {
    const [first] = out;
    return known.isSo() && first?.number === 0;
  }

  /** Whether there was anything to send. */
  function go(): boolean {
    isDue = false;
    const calls = waiting.take();
    if (calls.length === 0) return false;
    // What goes alone has no number: nothing could be begun behind it.
    const isBulk = known.isSo() && (calls.length > 1 || unanswered.length > 0);
    const number = isBulk ? (calls.at(-1)?.number ?? 0) : 0;
    const request = requestOf(calls, number, lastOutBefore(number));
    if (request.controller !== undefined) for (const call of calls) call.request = request;
    leaves(request, send(request));
    goSoon();
    return true;
  }

  function leaves(request: Request, over: Promise<unknown>): void {
    newest = request;
    out = [...out, request];
    unanswered = [...unanswered, request];
    const isOver = (): void => {
      out = out.filter((one) => one !== request);
      unanswered = unanswered.filter((one) => one !== request);
      trials.heard();
      goSoon();
    };
    over.then(isOver, isOver);
  }

  /** The number of the last bulk before this one that has no answer; 0 if there is none. */
  function lastOutBefore(bulk: number): number {
    let last = 0;
    for (const { number } of unanswered) if (number < bulk) last = Math.max(last, number);
    return last;
  }

  async function send({ calls, number, after, controller }: Request): Promise<void> {
    if (number === 0) return eachAlone(calls);
    try {
      const text = `{"calls":[${calls.map((call) => call.text).join(",")}]}`;
      name ??= crypto.randomUUID();
      const place = after === 0 ? `${name} ${number}` : `${name} ${number} ${after}`;
      const options = controller === undefined ? {} : { signal: controller.signal };
      const answer = await fetchOnce(wiring, ENDPOINTS.bulk, { text }, options, { [BULK_HEADER]: place });
      const { answers } = answerOf(ENDPOINTS.bulk, answer) as Partial<BulkAnswer>;
      for (const [index, call] of calls.entries()) settle(call, answers?.[index], answer.isAfterLoss);
    } catch (error) {
      // Its callers are gone, and what they gave it up with is no word of the server.
      if (controller?.signal.aborted === true) return;
      const { status = 0 } = error as Partial<ClientError>;
      if (UNKNOWN.has(status)) known.isNot();
      // One that is too large by itself says nothing of the others.
      if (status === TOO_LARGE && calls.length > 1) return waiting.putBack(calls, error as Partial<ClientError>);
      if (FOR_THE_WHOLE.has(status)) return eachAlone(calls);
      for (const { reject } of calls) reject(error);
    }
  }

  if (first !== undefined) leaves(requestOf([], 0, 0), first);

  /** No promise more than there must be: this is what every call costs that travels. */
  return (call) => {
    const { name, asked, signal, alone } = call;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const entry: Waiting = {
      name,
      asked,
      signal,
      alone,
      text: textOf(call),
      number: ++made,
      resolve,
      reject,
      request: undefined,
      isLast: false,
    };
    waiting.add(entry);
    goSoon();
    if (signal === undefined) return promise;
    const giveUp = (): void => {
      waiting.remove(entry);
      reject(signal.reason);
      const { request } = entry;
      if (request !== undefined && --request.wanted === 0) request.controller?.abort(signal.reason);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    return promise.finally(() => signal.removeEventListener("abort", giveUp));
  };
}

const requestOf = (calls: readonly Waiting[], number: number, after: number): Request => ({
  calls,
  number,
  after,
  controller: calls.length > 0 && calls.every(({ signal }) => signal !== undefined) ? new AbortController() : undefined,
  wanted: calls.length,
});

async function eachAlone(calls: readonly Waiting[]): Promise<void> {
  await Promise.all(calls.map(({ alone, resolve, reject }) => alone().then(resolve, reject)));
}

/** A call as an item of a bulk. Its body is text already, and is not read again. */
function textOf({ name, asked: { params, query, text } }: Gathered): string {
  const { id } = (params ?? {}) as { readonly id?: string };
  let item = `{"call":"${name satisfies BulkName}"`;
  if (id !== undefined) item += `,"id":${JSON.stringify(id)}`;
  if (query !== undefined) item += `,"query":${JSON.stringify(query)}`;
  if (text !== undefined) item += `,"body":${text}`;
  return `${item}}`;
}

function settle({ resolve, reject }: Waiting, answer: BulkItem | undefined, isAfterLoss: boolean | undefined): void {
  try {
    resolve(answerIn(answer, isAfterLoss));
  } catch (error) {
    reject(error);
  }
}

/** What is no answer to a call alone is none here. */
function answerIn(answer: BulkItem | undefined, isAfterLoss: boolean | undefined): unknown {
  if (typeof answer?.status !== "number")
    throw new ClientError("bad_answer", "the answer to one of the calls is missing", { status: 200 });
  if (answer.status >= 400) throw refusalOfOne(answer, isAfterLoss);
  return objectOf(answer.body, answer.status);
}
