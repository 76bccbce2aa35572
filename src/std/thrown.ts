/**
 * What a handler means by what it throws, in the engine's own process and in any other.
 *
 * An error is a failure, unless it asks for the task to come back: a `TaskRequeue`; or unless the task is not at fault:
 * a provider's 429 or 529, or no room for its files. One with `permanent: true` is not tried again.
 */
import { cutError, errorText } from "../core/base/index.ts";
import { TaskAsk } from "./ask.ts";
import { rateLimitOf, spanOf, TaskRequeue, TaskSkip } from "./retry-after.ts";

/** How long a task rests for whose files there was no room. */
const NO_ROOM_MS = 60_000;

type Thrown = {
  readonly outcome: "requeue" | "skipped" | "ask" | "failed";
  readonly error?: string;
  readonly retryAfterMs?: number;
  readonly rateLimited?: true;
  readonly permanent?: true;
  readonly question?: string;
  readonly timeoutMs?: number | null;
};
/** What an error of Drover's own says of an attempt; null for every other error. */
export type OwnFault = (error: unknown) => "no room" | "permanent" | null;

/** For whatever is thrown, also what cannot even be looked at. `wallNow` is what a provider's date is held to. */
export function readThrown(error: unknown, wallNow: number, ownFault: OwnFault): Thrown {
  try {
    return classified(error, wallNow, ownFault);
  } catch {
    return { outcome: "failed", error: "threw something that cannot be shown" };
  }
}

function classified(thrown: unknown, wallNow: number, ownFault: OwnFault): Thrown {
  const error = cutError(errorText(thrown));
  // Its own field, unless the handler has put something else there since.
  if (thrown instanceof TaskRequeue)
    return { outcome: "requeue", error, retryAfterMs: spanOf(thrown.retryAfterMs) ?? 0 };
  if (thrown instanceof TaskSkip) return { outcome: "skipped", error };
  if (thrown instanceof TaskAsk)
    return { outcome: "ask", question: cutError(thrown.message), timeoutMs: thrown.timeoutMs };
  const retryAfterMs = rateLimitOf(thrown, wallNow);
  if (retryAfterMs !== null) return { outcome: "requeue", error, retryAfterMs, rateLimited: true };
  const fault = ownFault(thrown);
  if (fault === "no room") return { outcome: "requeue", error, retryAfterMs: NO_ROOM_MS };
  const isPermanent =
    fault === "permanent" || (thrown as { permanent?: unknown } | null | undefined)?.permanent === true;
  return { outcome: "failed", error, ...(isPermanent ? { permanent: true } : {}) };
}
