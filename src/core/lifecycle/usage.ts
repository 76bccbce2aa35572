/**
 * What attempts say they used, in detail: kept by attempt, summed up for their task, its group and its project.
 *
 * Shares and budgets go by tokens alone (turn/budget.ts); these sums are for people.
 */
import type { EventOf, UsageTotals } from "../model/events.ts";
import type { Task } from "../model/state.ts";
import { extraOf } from "./labels.ts";

/** Of how many attempts of a task it is kept: the last ones. */
const ATTEMPTS_MAX = 100;

export function noteDetails(task: Task, event: EventOf<"attempt-usage">): void {
  const extra = extraOf(task);
  const { attempt, inputTokens, outputTokens, cachedTokens, cost } = event;
  const usage = { inputTokens, outputTokens, cachedTokens, cost };
  const said = { attempt, worker: task.lastWorker ?? "", usage };
  extra.attempts = [...(extra.attempts ?? []), said].slice(-ATTEMPTS_MAX);
  extra.usage = summed(extra.usage, event);
  task.project.usage = summed(task.project.usage, event);
  if (extra.group !== null) extra.group.usage = summed(extra.group.usage, event);
}

/** Absent costs count as nothing, unless all are absent. */
export function summed(before: UsageTotals | null, more: UsageTotals): UsageTotals {
  return {
    inputTokens: (before?.inputTokens ?? 0) + more.inputTokens,
    outputTokens: (before?.outputTokens ?? 0) + more.outputTokens,
    cachedTokens: (before?.cachedTokens ?? 0) + more.cachedTokens,
    cost: more.cost === null ? (before?.cost ?? null) : (before?.cost ?? 0) + more.cost,
  };
}
