/**
 * What became of an attempt, in the words of the core: from what a handler returned or threw.
 *
 * A result is stored with the log as JSON, up to a size. An error is a failure, unless it asks for the task to come
 * back: a `TaskRequeue`; or unless the task is not at fault: a provider's 429 or 529.
 */
import { shown, type TaskId } from "../../core/base/index.ts";
import type { AttemptReport } from "../../core/model/index.ts";
import { RESULT_BYTES_MAX, rateLimitOf, spanOf, TaskRequeue } from "../../std/index.ts";
import { payloadOf } from "../writer/canonical-json.ts";
import { badInput, DroverError } from "../writer/drover-error.ts";

/** The attempt a report is of, and the tokens it says it used. */
type Reported = { readonly task: TaskId; readonly attempt: number; readonly tokens: number | null };
export type Report = { readonly report: AttemptReport; readonly text?: string };

/** A report that says nothing yet. */
export const blank = ({ task, attempt, tokens }: Reported): Omit<AttemptReport, "outcome"> => ({
  task,
  attempt,
  tokens,
  error: null,
  retryAfterMs: null,
  resultHash: null,
  resultSize: 0,
  permanent: false,
});
const doneWith = (
  { task, attempt, tokens }: Reported,
  resultHash: string | null,
  resultSize: number,
): AttemptReport => ({
  task,
  attempt,
  outcome: "done",
  error: null,
  tokens,
  retryAfterMs: null,
  resultHash,
  resultSize,
  permanent: false,
});

export function done(entry: Reported, result: unknown): Report {
  if (result === undefined) return { report: doneWith(entry, null, 0) };
  const { text, size: resultSize, hash: resultHash } = payloadOf(result, "result");
  if (resultSize > RESULT_BYTES_MAX) {
    throw badInput(
      "result",
      `${resultSize} bytes`,
      `at most ${RESULT_BYTES_MAX} bytes; write more to an artifact and return its name`,
    );
  }
  return { report: doneWith(entry, resultHash, resultSize), text };
}

/** `wallNow` is what a provider's date to come back at is held to. */
function failed(entry: Reported, error: unknown, wallNow: number): Report {
  const message = (error instanceof Error ? `${error.message || error.name}` : shown(error)).toWellFormed();
  const isPermanent = error instanceof DroverError && error.code === "bad_request";
  const permanent = isPermanent || (error as { permanent?: unknown } | null)?.permanent === true;
  if (error instanceof TaskRequeue) {
    // Its own field, unless the handler has put something else there since.
    const restMs = spanOf(error.retryAfterMs) ?? 0;
    return { report: { ...blank(entry), outcome: "requeue", error: message, retryAfterMs: restMs } };
  }
  const retryAfterMs = rateLimitOf(error, wallNow);
  if (retryAfterMs !== null)
    return { report: { ...blank(entry), outcome: "requeue", error: message, retryAfterMs, rateLimited: true } };
  return { report: { ...blank(entry), outcome: "failed", error: message, permanent } };
}

/** The same for whatever a handler throws, also what cannot even be looked at. */
export function failedSafely(entry: Reported, error: unknown, wallNow: number): Report {
  try {
    return failed(entry, error, wallNow);
  } catch {
    return { report: { ...blank(entry), outcome: "failed", error: "threw something that cannot be shown" } };
  }
}
