/**
 * What became of an attempt, in the words of the core: from what a handler returned or threw.
 *
 * A result is stored with the log as JSON, up to a size. An error is a failure, unless it asks for the task to come
 * back: a `TaskRequeue`; or unless the task is not at fault: a provider's 429 or 529. An answer of `again` ends a
 * round.
 */
import { cutError, errorText, type TaskId } from "../../core/base/index.ts";
import type { AttemptReport, UsageTotals } from "../../core/model/index.ts";
import { isAgain, RESULT_BYTES_MAX, rateLimitOf, spanOf, TaskAsk, TaskRequeue, TaskSkip } from "../../std/index.ts";
import { payloadOf } from "../base/canonical-json.ts";
import { badInput, DroverError } from "../base/drover-error.ts";

/** How long a task rests for whose files there was no room. */
const NO_ROOM_MS = 60_000;

/** The attempt a report is of, and the tokens it says it used. */
type Reported = {
  readonly task: TaskId;
  readonly attempt: number;
  readonly tokens: number | null;
  readonly usage?: UsageTotals | null;
};
export type Report = { readonly report: AttemptReport; readonly text?: string };

/** A report that says how an attempt ended, and nothing more. */
export const reportOf = (
  { task, attempt, tokens, usage = null }: Reported,
  outcome: AttemptReport["outcome"],
  error: string | null = null,
  resultHash: string | null = null,
  resultSize: number = 0,
): AttemptReport => ({
  task,
  attempt,
  outcome,
  error,
  tokens,
  usage,
  retryAfterMs: null,
  resultHash,
  resultSize,
  permanent: false,
});

export function done(entry: Reported, result: unknown): Report {
  if (result === undefined) return { report: reportOf(entry, "done") };
  if (isAgain(result)) return { report: { ...reportOf(entry, "again"), note: result.note?.toWellFormed() ?? null } };
  const { text, size: resultSize, hash: resultHash } = payloadOf(result, "result");
  const most = `at most ${RESULT_BYTES_MAX} bytes; write more to an artifact and return its name`;
  if (resultSize > RESULT_BYTES_MAX) throw badInput("result", `${resultSize} bytes`, most);
  return { report: reportOf(entry, "done", null, resultHash, resultSize), text };
}

/** `wallNow` is what a provider's date to come back at is held to. */
function failed(entry: Reported, error: unknown, wallNow: number): Report {
  const message = cutError(errorText(error));
  if (error instanceof TaskRequeue) {
    // Its own field, unless the handler has put something else there since.
    const restMs = spanOf(error.retryAfterMs) ?? 0;
    return { report: { ...reportOf(entry, "requeue", message), retryAfterMs: restMs } };
  }
  if (error instanceof TaskSkip) return { report: reportOf(entry, "skipped", message) };
  if (error instanceof TaskAsk)
    return {
      report: { ...reportOf(entry, "ask"), question: error.message.toWellFormed(), timeoutMs: error.timeoutMs },
    };
  const retryAfterMs = rateLimitOf(error, wallNow);
  if (retryAfterMs !== null)
    return { report: { ...reportOf(entry, "requeue", message), retryAfterMs, rateLimited: true } };
  // There is no room for its files now; that is no fault of the task.
  if (error instanceof DroverError && error.code === "over_capacity")
    return { report: { ...reportOf(entry, "requeue", message), retryAfterMs: NO_ROOM_MS } };
  const isPermanent = error instanceof DroverError && (error.code === "bad_request" || error.code === "too_large");
  const permanent = isPermanent || (error as { permanent?: unknown } | null)?.permanent === true;
  return { report: { ...reportOf(entry, "failed", message), permanent } };
}

/** The same for whatever a handler throws, also what cannot even be looked at. */
export function failedSafely(entry: Reported, error: unknown, wallNow: number): Report {
  try {
    return failed(entry, error, wallNow);
  } catch {
    return { report: reportOf(entry, "failed", "threw something that cannot be shown") };
  }
}
