/**
 * Permits on the wire: the right to make one LLM call now.
 *
 * A caller that is queued keeps its position by its id: asking again with the same id asks for the same ticket.
 */
import type * as wire from "../generated/permits.ts";
import * as s from "../schema/schema.ts";
import { WAIT_MS_MAX } from "../wire/task-state.ts";
import { taskSeq, usage } from "./workers.ts";

const session = (): s.OptionalSchema<string> =>
  s.optional(
    s.text(1, 256),
    "The session that joining gave. A worker token must say it, and reaches the permits of that session only.",
  );

export const permitBody: s.Schema<wire.PermitBody> = s.component(
  "PermitBody",
  s.refined(
    s.object<wire.PermitBody>(
      {
        gate: s.described(s.name(), "The provider account, such as anthropic/default.", {
          expected: `the gate to pass: ${s.notesOf(s.name()).expected}`,
        }),
        id: s.optional(
          s.name(),
          "Chosen by the caller, and not of the form p and a number. The same id again is the same ticket.",
        ),
        project: s.optional(s.name()),
        class: s.optional(
          s.oneOf("critical", "high", "normal", "low"),
          "Absent: by the task, else as the gate says. At most what the project's maxPriority allows.",
        ),
        tokens: s.optional(s.whole(0, 1_000_000_000_000), "What the call is expected to use."),
        taskId: s.optional(s.name(), "The task on whose reservation it draws, with attempt."),
        attempt: s.optional(s.whole(1, 1_000_000_000)),
        taskSeq: taskSeq(),
        waitMs: s.optional(s.whole(0, WAIT_MS_MAX), "How long to wait for the grant.", { default: 0 }),
        again: s.optional(
          s.name(),
          "The permit of the same call that was settled as rateLimited: this one takes its position in the queue.",
        ),
        session: session(),
      },
      { examples: [{ gate: "anthropic/default", id: "call-17", tokens: 2000, waitMs: 30_000 }] },
    ),
    ({ taskId, attempt, taskSeq: seq }) =>
      (taskId === undefined) === (attempt === undefined) && (seq === undefined || taskId !== undefined),
    "an object with taskId and attempt together or neither, and taskSeq only beside them",
  ),
);
export const permitView: s.Schema<wire.PermitView> = s.namedAnswer("Permit", {
  permitId: s.name(),
  gate: s.name(),
  status: s.described(
    s.oneOf("granted", "queued", "rate-limited"),
    "queued: others go first; rate-limited: a window or a block is in its way. It keeps its position either way: " +
      "ask again with the same id, within some seconds, or drop it.",
  ),
  expiresAt: s.optional(s.instant(), "A permit that is not settled returns by itself then."),
  position: s.optional(s.whole(1), "Its position in the queue."),
  estimatedWaitMs: s.optional(
    s.whole(0),
    "queued: position × the mean time calls took (30 s until known) ÷ maxConcurrent.",
  ),
  retryAfterMs: s.optional(s.whole(0), "rate-limited: when the window or the block may let it go."),
});
export const settleBody: s.Schema<wire.SettleBody> = s.namedObject("SettleBody", {
  ok: s.optional(s.flag(), "Whether the call succeeded.", { default: true }),
  usage: s.optional(usage, "Absent: it is charged at its estimate."),
  rateLimited: s.optional(
    s.object<NonNullable<wire.SettleBody["rateLimited"]>>({ retryAfterMs: s.finite(0, 31_556_952_000_000) }),
    "The provider said 429 or 529, and how long to wait. Of an agent at most 10 minutes are believed, else a day.",
  ),
  session: session(),
});
export const dropQuery: s.Schema<wire.DropQuery> = s.object({
  session: session(),
  unheard: s.optional(s.flag(), "Only if nobody has heard that it was granted: a call that is out stays out."),
});
export const permitStatus: s.Schema<wire.PermitStatus> = s.answer({
  status: s.oneOf("settled", "dropped"),
  permitId: s.name(),
});
export const gateStatus: s.Schema<wire.GateStatus> = s.answer({ status: s.oneOf("reset", "removed"), gate: s.name() });
