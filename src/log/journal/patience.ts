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

export type Patience = {
  readonly clock: Clock;
  /** With the cause, where it is waited. */
  readonly onNotice: (line: string, cause?: string) => void;
  /** What is waited for: the journal, if nothing else is said. */
  readonly what?: string;
};

/** When a listener was told last of what is waited for; absent if that is over. */
const told = new WeakMap<Patience["onNotice"], Map<string, number>>();

function tellWaiting({ clock, onNotice, what = "the journal" }: Patience, since: number, cause: string): void {
  const waits = told.get(onNotice) ?? new Map<string, number>();
  told.set(onNotice, waits);
  if (clock.elapsed() - (waits.get(what) ?? Number.NEGATIVE_INFINITY) < NOTICE_EVERY_MS) return;
  waits.set(what, clock.elapsed());
  onNotice(`waiting for ${what} since ${secondsSince(clock, since)} s: ${cause}`, cause);
}

function tellEnd({ clock, onNotice, what = "the journal" }: Patience, since: number): void {
  if (told.get(onNotice)?.delete(what) === true)
    onNotice(`${what} answers again, after ${secondsSince(clock, since)} s`);
}

/** Whether asking again may help. */
export const passes = (error: unknown): error is LogFailure =>
  error instanceof LogFailure && (error.code === "unreachable" || error.code === "journal-full");

/** The answer, once there is one. The signal ends it at once, with its reason; what comes later is nobody's. */
export async function untilAnswered<Answer>(
  work: () => Promise<Answer>,
  patience: Patience,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  const { clock } = patience;
  const since = clock.elapsed();
  let hasWaited = false;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, 2 * pauseMs)) {
    try {
      const answer = await unlessAborted(work(), signal);
      if (hasWaited) tellEnd(patience, since);
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

function unlessAborted<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort);
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
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
