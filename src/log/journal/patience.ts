/**
 * Asking a journal again until it answers.
 *
 * A journal that is out of reach, full, or that lost an answer is no reason to end: it is asked again, sooner at first
 * and then every two seconds, for as long as the caller wants. Meanwhile a line every few seconds says what is waited
 * for, and one says when it is over; of several who wait and tell the same listener, one speaks. A
 * caller that wants no more does not wait for a question that is under way: one that hangs may take half a minute to
 * say so.
 */
import { type Clock, restFor } from "../../std/index.ts";
import { type Head, LogFailure } from "../log.ts";
import type { Journal, SealedBatch } from "./journal.ts";

const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 2000;
const NOTICE_EVERY_MS = 5000;
/** Whoever waits fails sooner than that: one of whom nothing was heard since was given up, and ended nothing. */
const GIVEN_UP_MS = 60_000;

export type Patience = {
  readonly clock: Clock;
  /** With the cause, where it is waited. */
  readonly onNotice: (line: string, cause?: string) => void;
  /** What is waited for: the journal, if nothing else is said. */
  readonly what?: string;
};

/** Since when somebody waits, and when the listener was told last. */
type Waited = { readonly since: number; readonly toldAt: number };
/** By listener, and by what is waited for; absent if that is over. */
const told = new WeakMap<Patience["onNotice"], Map<string, Waited>>();

function tellWaiting({ clock, onNotice, what = "the journal" }: Patience, begunAt: number, cause: string): void {
  const waits = told.get(onNotice) ?? new Map<string, Waited>();
  told.set(onNotice, waits);
  const { since: earliest = begunAt, toldAt = Number.NEGATIVE_INFINITY } = waits.get(what) ?? {};
  const silentMs = clock.elapsed() - toldAt;
  const since = silentMs >= GIVEN_UP_MS ? begunAt : Math.min(earliest, begunAt);
  const isDue = silentMs >= NOTICE_EVERY_MS;
  waits.set(what, { since, toldAt: isDue ? clock.elapsed() : toldAt });
  if (isDue) onNotice(`waiting for ${what} since ${secondsSince(clock, since)} s: ${cause}`, cause);
}

/** Of all who waited, whoever has waited longest counts: for so long it was away. */
function tellEnd({ clock, onNotice, what = "the journal" }: Patience): void {
  const waits = told.get(onNotice);
  const waited = waits?.get(what);
  if (waited === undefined) return;
  waits?.delete(what);
  onNotice(`${what} answers again, after ${secondsSince(clock, waited.since)} s`);
}

/** Whether asking again may help. */
export const passes = (error: unknown): error is LogFailure =>
  error instanceof LogFailure && (error.code === "unreachable" || error.code === "journal-full");

/**
 * The answer, once there is one. The signal ends it at once, with its reason. What comes later is nobody's, and goes to
 * `onLate`: work that takes something gives it back there.
 */
export async function untilAnswered<Answer>(
  work: () => Promise<Answer>,
  patience: Patience,
  signal: AbortSignal,
  onLate: (answer: Answer) => unknown = () => {},
): Promise<Answer> {
  signal.throwIfAborted();
  const { clock } = patience;
  const since = clock.elapsed();
  let hasWaited = false;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, 2 * pauseMs)) {
    try {
      const answer = await unlessAborted(work(), signal, onLate);
      if (hasWaited) tellEnd(patience);
      return answer;
    } catch (error) {
      if (signal.aborted || !passes(error)) throw error;
      hasWaited = true;
      tellWaiting(patience, since, error.message);
    }
    await restFor(clock, pauseMs, { signal });
    signal.throwIfAborted();
  }
}

function unlessAborted<Answer>(
  answer: Promise<Answer>,
  signal: AbortSignal,
  onLate: (answer: Answer) => unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const abort = (): void => {
      isLate = true;
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort);
    answer
      .then((given) => (isLate ? onLate(given) : resolve(given)))
      .catch(reject) // Where it is late, nobody is left to be told.
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

const secondsSince = (clock: Clock, since: number): number => Math.round((clock.elapsed() - since) / 1000);

/** An append as work that is asked for again: whether it was stored is known in the end. */
export async function knownAnswer(
  journal: Journal,
  entry: SealedBatch,
): Promise<{ readonly type: "appended" | "conflict"; readonly head: Head }> {
  const answer = await journal.append(entry);
  if (answer.type !== "unknown") return answer;
  throw new LogFailure("unreachable", `it is not known whether event ${entry.firstSeq} was stored: ${answer.cause}`);
}
