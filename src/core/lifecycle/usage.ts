/**
 * What attempts say they used, in detail: summed up for their task, its group and its project.
 *
 * Shares and budgets go by tokens alone (turn/budget.ts); these sums are for people.
 */
import type { EventOf, UsageTotals } from "../model/events.ts";
import type { Task } from "../model/state.ts";
import { extraOf } from "./labels.ts";

export function noteDetails(task: Task, event: EventOf<"attempt-usage">): void {
  const extra = extraOf(task);
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
