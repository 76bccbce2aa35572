/**
 * Asking a journal again until it answers.
 *
 * A journal that is out of reach, full, or that lost an answer is no reason to end: it is asked again, sooner at first
 * and then every two seconds, for as long as the caller wants. Meanwhile a line every few seconds says what is waited
 * for, and one says when it is over.
 */
import { type Clock, restFor } from "../../std/index.ts";
import { type Head, LogFailure } from "../log.ts";
import type { Journal, SealedBatch } from "./journal.ts";

const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 2000;
const NOTICE_EVERY_MS = 5000;

export type Patience = {
  readonly clock: Clock;
  readonly onNotice: (line: string) => void;
};

/** Whether asking again may help. */
export const passes = (error: unknown): error is LogFailure =>
  error instanceof LogFailure && (error.code === "unreachable" || error.code === "journal-full");

/** The answer, once there is one. It is asked for once at least; then the signal ends it, with its reason. */
export async function untilAnswered<Answer>(
  work: () => Promise<Answer>,
  { clock, onNotice }: Patience,
  signal: AbortSignal,
): Promise<Answer> {
  const since = clock.elapsed();
  let noticeAt = since;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, 2 * pauseMs)) {
    try {
      const answer = await work();
      if (noticeAt > since) onNotice(`the journal answers again, after ${secondsSince(clock, since)} s`);
      return answer;
    } catch (error) {
      if (!passes(error)) throw error;
      if (clock.elapsed() >= noticeAt) {
        onNotice(`waiting for the journal since ${secondsSince(clock, since)} s: ${error.message}`);
        noticeAt = clock.elapsed() + NOTICE_EVERY_MS;
      }
    }
    signal.throwIfAborted();
    await restFor(clock, pauseMs, { signal });
    signal.throwIfAborted();
  }
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
