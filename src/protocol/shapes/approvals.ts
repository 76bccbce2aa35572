/**
 * Approvals on the wire: what somebody is asked of a task, and what is answered.
 */
import type * as wire from "../generated/approvals.ts";
import * as s from "../schema/schema.ts";

const NOTE_MAX = 4096;
const ANSWER_MS_MAX = 31_556_952_000_000;
export const approvalBody: s.Schema<wire.ApprovalBody> = s.namedObject("ApprovalBody", {
  question: s.optional(s.text(1, NOTE_MAX), "What is asked."),
  timeoutMs: s.optional(s.whole(1, ANSWER_MS_MAX), "After so long without an answer it has failed; absent: never."),
});
export const approvalView: s.Schema<wire.ApprovalView> = s.namedAnswer("ApprovalView", {
  question: s.optional(s.text(0, NOTE_MAX), "What is or was asked."),
  timeoutMs: s.optional(s.whole(1, ANSWER_MS_MAX), "As submitted."),
  until: s.optional(s.instant(), "When it fails if nobody answers."),
  at: s.optional(s.instant(), "When it was approved."),
  note: s.optional(s.text(0, NOTE_MAX), "What was said then."),
});
export const approveBody: s.Schema<wire.ApproveBody> = s.object({
  note: s.optional(s.text(0, NOTE_MAX), "What the next attempt sees; with deny, why."),
  deny: s.optional(s.flag(), "It is denied, and fails."),
});
