/**
 * Waits that are under way at the same time share their requests.
 *
 * What is waited for in one turn goes as one `waitAny`, which is answered when any of it has ended, and is made again
 * at once for what is left and what has come meanwhile. A task that is waited for alone is asked for as it always was.
 * Few requests are out at a time: where there are too many, the one with the fewest tasks is given up, and its tasks go
 * with the new ones. Each wait ends by itself: with its task, with its own refusal, or when its caller gives it up; its
 * rests and repeats are its own (exchange.ts). A server that does not know `waitAny` is asked for each task.
 */
import type { TaskView, WaitAnyAnswer, WaitAnyItem } from "../protocol/index.ts";
import { BULK_MAX, ENDPOINTS, isEnded, WAIT_MS_DEFAULT } from "../protocol/wire/index.ts";
import { ClientError } from "./client-error.ts";
import { answerOf, type CallOptions, fetchOnce, refusalFrom, retried, type Wiring } from "./exchange.ts";

/** What was found, and whether that is its end. */
export type Waited<Found> = { readonly found: Found; readonly isOver: boolean };
/** A wait for a task; `look` asks for it alone. */
export type Watched = {
  readonly id: string;
  readonly withinMs: number | undefined;
  readonly options: CallOptions;
  readonly look: (timeoutMs: number) => Promise<TaskView>;
};
export type Watch = (watched: Watched) => Promise<Waited<TaskView>>;

/** A timer takes no more. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const OUT_MAX = 8;
/** A request with more tasks is not given up for others. */
const MERGED_MAX = BULK_MAX / 2;
/** What is refused as a whole for the form of the whole; alone each may be right. */
const FOR_THE_WHOLE: ReadonlySet<number> = new Set([400, 404, 405, 413, 415]);
const UNKNOWN: ReadonlySet<number> = new Set([404, 405]);

type Waiting = {
  readonly id: string;
  readonly resolve: (task: TaskView | null) => void;
  readonly reject: (error: unknown) => void;
  /** The request it is part of. */
  out: Out | null;
  /** Whether a request has been answered since it was last asked for anew. */
  isHeard: boolean;
  isAlone: boolean;
};
type Out = { readonly waits: Map<string, Set<Waiting>>; readonly controller: AbortController };

export function createWatch(wiring: Wiring): Watch {
  const waiting = new Set<Waiting>();
  const all = new Set<Out>();
  let isDue = false;
  let isKnown = true;

  /** In a turn of its own, so that all that is asked for in this one goes with it. */
  function goSoon(): void {
    if (isDue || waiting.size === 0) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      while (waiting.size > 0) go();
    });
  }

  function go(): void {
    if (isKnown && all.size >= OUT_MAX) giveUpSmallest();
    const out = takeNext();
    all.add(out);
    void send(out).finally(() => all.delete(out));
  }

  function takeNext(): Out {
    const out: Out = { waits: new Map(), controller: new AbortController() };
    const [first] = waiting;
    const max = isKnown && first?.isAlone === false ? BULK_MAX : 1;
    for (const wait of waiting) {
      if (out.waits.size >= max) break;
      if (wait.isAlone && out.waits.size > 0) continue;
      waiting.delete(wait);
      wait.out = out;
      out.waits.set(wait.id, (out.waits.get(wait.id) ?? new Set()).add(wait));
    }
    return out;
  }

  function giveUpSmallest(): void {
    const [smallest] = [...all].sort((left, right) => left.waits.size - right.waits.size);
    if (smallest === undefined || smallest.waits.size > MERGED_MAX) return;
    putBack(smallest);
    all.delete(smallest);
    smallest.controller.abort();
  }

  function putBack({ waits }: Out): void {
    for (const same of waits.values())
      for (const wait of same) {
        wait.out = null;
        waiting.add(wait);
      }
    waits.clear();
  }

  async function send(out: Out): Promise<void> {
    try {
      for (const answer of await ask(wiring, [...out.waits.keys()], out.controller.signal)) settle(out, answer);
      for (const same of out.waits.values()) for (const wait of same) wait.isHeard = true;
      putBack(out);
    } catch (error) {
      fail(out, error);
    }
    goSoon();
  }

  function fail(out: Out, error: unknown): void {
    const { status = 0, retryable = false } = error as Partial<ClientError>;
    const isWhole = out.waits.size > 1 && FOR_THE_WHOLE.has(status);
    if (isWhole && UNKNOWN.has(status)) isKnown = false;
    for (const same of out.waits.values())
      for (const wait of same) {
        if (isWhole) wait.isAlone = true;
        else if (retryable && wait.isHeard) wait.isHeard = false;
        else leave(wait).reject(error);
      }
    putBack(out);
  }

  function leave(wait: Waiting): Waiting {
    const { id, out } = wait;
    waiting.delete(wait);
    wait.out = null;
    const same = out?.waits.get(id);
    if (same?.delete(wait) === true && same.size === 0) out?.waits.delete(id);
    return wait;
  }

  function settle(out: Out, { id, status, body, retryAfterS }: WaitAnyItem): void {
    const { state } = (body ?? {}) as Partial<TaskView>;
    if (status < 400 && state !== undefined && !isEnded(state)) return;
    for (const wait of out.waits.get(id) ?? []) {
      leave(wait);
      if (status >= 400)
        wait.reject(refusalFrom(status, body, retryAfterS === undefined ? undefined : retryAfterS * 1000));
      else if (state !== undefined) wait.resolve(body as TaskView);
      else
        wait.reject(
          new ClientError("bad_answer", `the answer is not task ${id}; is this a Drover server?`, { status }),
        );
    }
  }

  /** Null if it has not ended by then. */
  async function join(id: string, signal: AbortSignal | undefined, withinMs: number): Promise<TaskView | null> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<TaskView | null>();
    const wait: Waiting = { id, resolve, reject, out: null, isHeard: false, isAlone: false };
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
    const timer = Number.isFinite(withinMs) ? setTimeout(late, Math.min(withinMs, TIMER_MS_MAX)) : undefined;
    signal?.addEventListener("abort", giveUp, { once: true });
    waiting.add(wait);
    goSoon();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  return async ({ id, withinMs = Number.POSITIVE_INFINITY, options, look }) => {
    const until = performance.now() + withinMs;
    const leftMs = (): number => Math.max(0, until - performance.now());
    while (leftMs() > 0) {
      const found = await retried(wiring, options, () => join(id, options.signal, leftMs()));
      if (found !== null) return { found, isOver: true };
    }
    const found = await look(0);
    return { found, isOver: isEnded(found.state) };
  };
}

async function ask(wiring: Wiring, ids: readonly string[], signal: AbortSignal): Promise<readonly WaitAnyItem[]> {
  const timeoutMs = WAIT_MS_DEFAULT;
  const [id = ""] = ids;
  if (ids.length === 1) {
    const asked = { params: { id }, query: { timeoutMs }, text: undefined };
    const body = answerOf(ENDPOINTS.wait, await fetchOnce(wiring, ENDPOINTS.wait, asked, { signal }));
    return [{ id, status: 200, body }];
  }
  const asked = { body: { timeoutMs }, text: JSON.stringify({ ids, timeoutMs }) };
  const read = answerOf(ENDPOINTS.waitAny, await fetchOnce(wiring, ENDPOINTS.waitAny, asked, { signal }));
  const { answers } = read as Partial<WaitAnyAnswer>;
  if (!Array.isArray(answers)) throw new ClientError("bad_answer", "the answers are missing", { status: 200 });
  return answers as readonly WaitAnyItem[];
}
