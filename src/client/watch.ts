/**
 * Waits that are under way at the same time share their requests.
 *
 * What is waited for in one turn goes as one `waitAny`, which is answered when any of it has ended, and is made again
 * at once for what is left and what has come meanwhile. A task that is waited for alone is asked for as it always was.
 * Few requests are out at a time: where there are too many, the one with the fewest tasks is given up, and its tasks go
 * with the new ones. Each wait ends by itself: with its task, with its own refusal, or when its caller gives it up; its
 * rests and repeats are its own (exchange.ts). A request that is refused for one of its tasks is looked into: its
 * halves are asked for one after the other, without waiting, and what is not refused waits again with the others. One
 * that is too large goes again for fewer, and so do the next for a while. A server that does not know `waitAny` is
 * asked for each task for a while.
 */
import type { TaskView, WaitAnyAnswer, WaitAnyItem } from "../protocol/index.ts";
import { BULK_MAX, ENDPOINTS, isEnded, WAIT_MS_DEFAULT } from "../protocol/wire/index.ts";
import type { CallOptions } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { answerOf, fetchOnce, inTime, refusalOfOne, retried, TIMER_MS_MAX, type Wiring, waitFor } from "./exchange.ts";
import { createKnown, FOR_THE_WHOLE, TOO_LARGE, UNKNOWN } from "./known.ts";

/** What was found, and whether that is its end. */
export type Waited<Found> = { readonly found: Found; readonly isOver: boolean };
/** A wait for a task; `look` asks for it alone. */
export type Watched = {
  readonly id: string;
  readonly withinMs: number | undefined;
  readonly options: CallOptions;
  readonly look: (timeoutMs: number, options: CallOptions) => Promise<TaskView>;
};
export type Watch = (watched: Watched) => Promise<Waited<TaskView>>;
/** One part of a wait: null if nothing has come by then, or if a failure came after answers: it is to join anew. */
export type Join<Found> = (id: string, signal: AbortSignal | undefined, withinMs: number) => Promise<Found | null>;
/** What is waited for, and how it is asked for: one alone, or many. */
export type Awaited<Found> = {
  readonly ask: (
    wiring: Wiring,
    ids: readonly string[],
    timeoutMs: number,
    signal: AbortSignal,
  ) => Promise<readonly WaitAnyItem[]>;
  /** What has come of it; null: it waits on. Undefined for what is not such a thing at all. */
  readonly read: (body: unknown) => Found | null | undefined;
};

/** So many requests are out at once, and one that looks for what was refused. */
const OUT_MAX = 8;
/** To give up a request costs its connection: while so many are out, what comes gathers for so long. */
const GATHER_MS = 20;

type Waiting = {
  readonly id: string;
  readonly resolve: (found: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The request it is part of. */
  out: Out | null;
  /** Whether a request has been answered since it joined: then a failure is the first of a new wait. */
  isHeard: boolean;
};
type Out = { readonly waits: Map<string, Set<Waiting>>; readonly controller: AbortController };

/** How many tasks a request may name, as far as the server has said; what it says once is so for a while. */
function createMost() {
  const known = createKnown();
  const takesAll = createKnown();
  let idsMax = BULK_MAX;
  const ifKnown = (): number => (takesAll.isSo() ? BULK_MAX : idsMax);
  return {
    now: (): number => (known.isSo() ? ifKnown() : 1),
    isUnknown: known.isNot,
    areTooMany(ids: number): void {
      idsMax = Math.min(ifKnown(), Math.ceil(ids / 2));
      takesAll.isNot();
    },
  };
}

/** What this request waits for will go with another. */
function putBack({ waits }: Out, waiting: Set<Waiting>): void {
  for (const same of waits.values())
    for (const wait of same) {
      wait.out = null;
      waiting.add(wait);
    }
  waits.clear();
}

export function createJoin<Found>(wiring: Wiring, awaited: Awaited<Found>): Join<Found> {
  const waiting = new Set<Waiting>();
  const all = new Set<Out>();
  /** The halves of what was refused as a whole. */
  const suspects: { readonly one: Out; readonly other: Out; readonly size: number }[] = [];
  let isLooking = false;
  let isDue = false;
  let late: NodeJS.Timeout | undefined;
  const most = createMost();

  /** In a turn of its own, so that all that is asked for in this one goes with it. */
  function goSoon(): void {
    if (isDue || waiting.size === 0) return;
    if (all.size >= OUT_MAX) {
      late ??= setTimeout(go, GATHER_MS);
      return;
    }
    isDue = true;
    setImmediate(go);
  }

  function go(): void {
    isDue = false;
    clearTimeout(late);
    late = undefined;
    while (waiting.size > 0) {
      if (all.size >= OUT_MAX) giveUpSmallest();
      const out = take(waiting, most.now());
      all.add(out);
      void send(out, WAIT_MS_DEFAULT);
    }
  }

  function take(waits: Iterable<Waiting>, max: number): Out {
    const out: Out = { waits: new Map(), controller: new AbortController() };
    for (const wait of waits) {
      if (out.waits.size >= max && !out.waits.has(wait.id)) break;
      leave(wait).out = out;
      out.waits.set(wait.id, (out.waits.get(wait.id) ?? new Set()).add(wait));
    }
    return out;
  }

  /** One that is more than half full stays: with every other that is given up there are fewer left to ask for. */
  function giveUpSmallest(): void {
    const [smallest] = [...all].sort((left, right) => left.waits.size - right.waits.size);
    if (smallest === undefined || smallest.waits.size > most.now() / 2) return;
    putBack(smallest, waiting);
    all.delete(smallest);
    smallest.controller.abort();
  }

  async function send(out: Out, timeoutMs: number): Promise<boolean> {
    const { waits, controller } = out;
    let isAnswered = true;
    try {
      const answers = await awaited.ask(wiring, [...waits.keys()], timeoutMs, controller.signal);
      for (const answer of answers) settle(out, answer);
      for (const same of waits.values()) for (const wait of same) wait.isHeard = true;
    } catch (error) {
      isAnswered = false;
      fail(out, error);
    }
    all.delete(out);
    putBack(out, waiting);
    goSoon();
    return isAnswered;
  }

  function fail({ waits }: Out, error: unknown): void {
    const { status = 0, retryable = false } = error as Partial<ClientError>;
    const each = (): Waiting[] => [...waits.values()].flatMap((same) => [...same]);
    if (waits.size > 1 && FOR_THE_WHOLE.has(status)) {
      const { size } = waits;
      const half = Math.ceil(size / 2);
      if (UNKNOWN.has(status)) most.isUnknown();
      else if (status === TOO_LARGE) most.areTooMany(size);
      else {
        suspects.push({ one: take(each(), half), other: take(each(), half), size });
        void lookInto();
      }
      return;
    }
    for (const wait of each())
      if (retryable && wait.isHeard) leave(wait).resolve(null);
      else leave(wait).reject(error);
  }

  /** One at a time, however many were refused: none of them is held. If each half is taken, they were too many. */
  async function lookInto(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    for (let pair = suspects.shift(); pair !== undefined; pair = suspects.shift()) {
      const { one, other, size } = pair;
      const isOneTaken = await isTakenWhole(one, Math.ceil(size / 2));
      if ((await isTakenWhole(other, Math.floor(size / 2))) && isOneTaken) most.areTooMany(size);
    }
    isLooking = false;
  }

  /** A half that lacks what was given up meanwhile is asked for, and is not what was refused. */
  async function isTakenWhole(half: Out, size: number): Promise<boolean> {
    const isWhole = half.waits.size === size;
    return half.waits.size > 0 && (await send(half, 0)) && isWhole;
  }

  function leave(wait: Waiting): Waiting {
    const { id, out } = wait;
    waiting.delete(wait);
    wait.out = null;
    const same = out?.waits.get(id);
    if (same?.delete(wait) === true && same.size === 0) out?.waits.delete(id);
    return wait;
  }

  function settle(out: Out, answer: WaitAnyItem): void {
    const { id, status, body } = answer;
    const found = status < 400 ? awaited.read(body) : undefined;
    if (found === null) return;
    for (const wait of out.waits.get(id) ?? []) {
      leave(wait);
      if (status >= 400) wait.reject(refusalOfOne(answer));
      else if (found !== undefined) wait.resolve(found);
      else wait.reject(notTheTask(id, status));
    }
  }

  return async (id, signal, withinMs) => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Found | null>();
    const wait: Waiting = { id, resolve: resolve as Waiting["resolve"], reject, out: null, isHeard: false };
    const part = (): void => {
      const { out } = wait;
      leave(wait);
      // Nobody waits for what it would say.
      if (out !== null && out.waits.size === 0) out.controller.abort();
    };
    const giveUp = (): void => {
      part();
      reject(signal?.reason);
    };
    const late = (): void => {
      part();
      resolve(null);
    };
    waiting.add(wait);
    goSoon();
    return whileWanted(promise, { signal, giveUp, withinMs, late });
  };
}

type Wanted = {
  readonly signal: AbortSignal | undefined;
  readonly giveUp: () => void;
  readonly withinMs: number;
  readonly late: () => void;
};

/** Calls what ends it when its signal fires, or when its time is over. */
async function whileWanted<Value>(given: Promise<Value>, { signal, giveUp, withinMs, late }: Wanted): Promise<Value> {
  const timer = Number.isFinite(withinMs) ? setTimeout(late, Math.min(withinMs, TIMER_MS_MAX)) : undefined;
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    return await given;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  }
}

export function createWatch(wiring: Wiring): Watch {
  const join = createJoin(wiring, { ask, read: endedIn });
  return async ({ id, withinMs, options, look }) => {
    const wait = waitFor(wiring, options, withinMs);
    return inTime(wait, options, async (timed) => {
      while (wait.leftMs() > 0) {
        const found = await retried(wiring, timed, () => join(id, timed.signal, wait.leftMs()), undefined, wait);
        if (found !== null) return { found, isOver: true };
      }
      const found = await look(0, timed);
      return { found, isOver: isEnded(found.state) };
    });
  };
}

function endedIn(body: unknown): TaskView | null | undefined {
  const { state } = (body ?? {}) as Partial<TaskView>;
  if (state === undefined) return undefined;
  return isEnded(state) ? (body as TaskView) : null;
}

const notTheTask = (id: string, status: number): ClientError =>
  new ClientError("bad_answer", `the answer is not task ${id}; is this a Drover server?`, { status });

async function ask(
  wiring: Wiring,
  ids: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly WaitAnyItem[]> {
  const [id = ""] = ids;
  if (ids.length === 1) {
    const asked = { params: { id }, query: { timeoutMs }, text: undefined };
    const body = answerOf(ENDPOINTS.wait, await fetchOnce(wiring, ENDPOINTS.wait, asked, { signal }));
    return [{ id, status: 200, body }];
  }
  const asked = { body: { timeoutMs }, text: JSON.stringify({ ids, timeoutMs }) };
  const read = answerOf(ENDPOINTS.waitAny, await fetchOnce(wiring, ENDPOINTS.waitAny, asked, { signal }));
  const { answers } = (read ?? {}) as Partial<WaitAnyAnswer>;
  if (!Array.isArray(answers)) throw new ClientError("bad_answer", "the answers are missing", { status: 200 });
  return answers as readonly WaitAnyItem[];
}
