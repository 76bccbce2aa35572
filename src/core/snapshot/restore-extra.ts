/**
 * What few tasks have, from its rows: rounds, files, an approval, what was used.
 */
import type { Instant } from "../base/brand.ts";
import type { FileRef, UsageTotals } from "../model/events.ts";
import type { Approval, AttemptUsage, EndedExtra, Loop } from "../model/extra.ts";
import type * as format from "./format.ts";

export const fileFrom = ([path, hash, size]: format.FileRow): FileRef => ({ path, hash, size });

export const attemptFrom = ([attempt, worker, usage]: (format.ExtraRow["attempts"] & {})[number]): AttemptUsage => ({
  attempt,
  worker,
  usage: usageFrom(usage),
});

export const loopFrom = ([max, ...rounds]: format.LoopRow): Loop => ({
  max,
  rounds: rounds.map(([iteration, attempt, outcome, note, tokens, usage = null]) => ({
    iteration,
    attempt,
    outcome,
    note,
    tokens,
    usage: usage === null ? null : usageFrom(usage),
  })),
});

export const usageFrom = ([inputTokens, outputTokens, cachedTokens, cost]: format.UsageRow): UsageTotals => ({
  inputTokens,
  outputTokens,
  cachedTokens,
  cost,
});

export const approvalFrom = ([required, question, until, note, at, askedBy = 0]: format.ApprovalRow): Approval => ({
  required,
  question,
  until,
  given: at < 0 ? null : { note, at: at as Instant },
  askedBy,
});

export function endedExtraFrom({ usage, attempts, loop, files, approval, group }: format.ExtraRow): EndedExtra {
  return {
    usage: usage === undefined ? null : usageFrom(usage),
    attempts: attempts === undefined ? null : attempts.map(attemptFrom),
    loop: loop === undefined ? null : loopFrom(loop),
    files: files === undefined ? null : files.map(fileFrom),
    approval: approval === undefined ? null : approvalFrom(approval),
    group: group === undefined ? null : { group: { id: group } },
  };
}
