/**
 * The outcome of a command where handlers answer: what one returns is the result, what it throws is why not.
 */
import { again, present, TaskAsk, TaskRequeue, TaskSkip } from "../../std/index.ts";
import type { ExecOutcome } from "./contract.ts";

/** With `isStopping` the worker itself has stopped the command: that costs the task nothing. */
export function answerOf(
  { outcome, result, error = outcome, retryAfterMs, rateLimited, permanent, note, question, timeoutMs }: ExecOutcome,
  isStopping: boolean = false,
): unknown {
  if (outcome === "done") return result;
  if (outcome === "again") return again(note);
  if (outcome === "ask") throw new TaskAsk(question ?? "", present({ timeoutMs }));
  // Asking to come back would cost the task something; having been stopped must not.
  if (isStopping) throw new Error(error);
  switch (outcome) {
    case "requeue":
      if (rateLimited === true) throw Object.assign(new Error(error), { status: 429, retryAfterMs });
      throw new TaskRequeue(error, present({ retryAfterMs }));
    case "skipped":
      throw new TaskSkip(error);
    case "failed":
    case "cancelled":
      throw Object.assign(new Error(error), { permanent: permanent === true });
    default:
      return outcome satisfies never;
  }
}
