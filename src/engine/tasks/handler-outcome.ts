/**
 * What became of an attempt, in the words of the core: from what a handler returned or threw.
 *
 * A result is stored with the log as JSON, up to a size. An answer of `again` ends a round.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { AttemptReport, UsageTotals } from "../../core/model/index.ts";
import { isAgain, type OwnFault, RESULT_BYTES_MAX, readThrown } from "../../std/index.ts";
import { payloadOf } from "../base/canonical-json.ts";
import { badInput, DroverError } from "../base/drover-error.ts";

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

/** For whatever a handler throws. */
export function failed(entry: Reported, thrown: unknown, wallNow: number): Report {
  const { outcome, error = null, ...more } = readThrown(thrown, wallNow, ownFault);
  return { report: { ...reportOf(entry, outcome, error), ...more } };
}

function ownFault(error: unknown): ReturnType<OwnFault> {
  if (!(error instanceof DroverError)) return null;
  if (error.code === "over_capacity") return "no room";
  return error.code === "bad_request" || error.code === "too_large" ? "permanent" : null;
}
