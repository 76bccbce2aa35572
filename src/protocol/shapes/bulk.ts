/**
 * Calls that travel together: each is read, let in and answered by itself, as if it had come alone.
 */
import type * as wire from "../generated/bulk.ts";
import * as s from "../schema/schema.ts";
import { BULK_CALLS, BULK_MAX } from "../wire/endpoints.ts";
import { WAIT_MS_DEFAULT, WAIT_MS_MAX } from "../wire/task-state.ts";

export const bulkCall: s.Schema<wire.BulkCall> = s.namedObject("BulkCall", {
  call: s.described(s.oneOf(...BULK_CALLS), "Which call, by its operationId."),
  id: s.optional(s.anything() as s.Schema<string>, "What stands in the path of the call.", { shownAs: s.name() }),
  query: s.optional(s.anyObject(), "What stands in its query."),
  body: s.optional(s.anything(), "Its body."),
});
export const bulkBody: s.Schema<wire.BulkBody> = s.namedObject("BulkBody", {
  calls: s.described(
    s.noted(
      s.list(s.noted(s.anything(), { shownAs: bulkCall }) as s.Schema<wire.BulkCall>, { min: 1, max: BULK_MAX }),
      {
        expected: `a list of 1 to ${BULK_MAX} calls`,
      },
    ),
    `1 to ${BULK_MAX}. They are begun in their order, and one may name what an earlier one makes. What is wrong with ` +
      "one does not fail the others. None may wait: waitMs is 0.",
  ),
});
const item = {
  status: s.described(s.whole(200, 599), "The status that the call would have alone."),
  body: s.described(s.anything(), "The body that it would have: its answer, or an error."),
  retryAfterS: s.optional(s.whole(0), "When the same call may succeed, in seconds; as Retry-After says it."),
};
export const bulkAnswer: s.Schema<wire.BulkAnswer> = s.namedAnswer("BulkAnswer", {
  answers: s.described(s.list(s.answer<wire.BulkItem>(item)), "One for each call, in their order."),
});

export const waitAnyBody: s.Schema<wire.WaitAnyBody> = s.namedObject("WaitAnyBody", {
  ids: s.described(s.list(s.name(), { min: 1, max: BULK_MAX }), "The tasks."),
  timeoutMs: s.optional(s.whole(0, WAIT_MS_MAX), "How long to wait for the first at most.", {
    default: WAIT_MS_DEFAULT,
  }),
});
export const waitPermitsBody: s.Schema<wire.WaitPermitsBody> = s.namedObject("WaitPermitsBody", {
  ids: s.described(s.list(s.name(), { min: 1, max: BULK_MAX }), "The permits that were asked for."),
  timeoutMs: s.optional(s.whole(0, WAIT_MS_MAX), "How long to wait for the first at most.", {
    default: WAIT_MS_DEFAULT,
  }),
  session: s.optional(s.text(1, 256), "The session that joining gave. A worker token must say it."),
});
export const waitPermitsAnswer: s.Schema<wire.WaitPermitsAnswer> = s.namedAnswer("WaitPermitsAnswer", {
  ids: s.described(s.list(s.name()), "Those that wait no more; none when the time is over."),
});
export const waitAnyAnswer: s.Schema<wire.WaitAnyAnswer> = s.namedAnswer("WaitAnyAnswer", {
  answers: s.described(
    s.list(
      s.answer<wire.WaitAnyItem>({
        id: s.described(s.name(), "The task."),
        status: s.described(s.whole(200, 599), "The status that a wait for it alone would have."),
        body: s.described(s.anything(), "The task as it has ended, or an error."),
        retryAfterS: item.retryAfterS,
      }),
    ),
    "One for each task that has ended, or that is refused; none when the time is over.",
  ),
});
