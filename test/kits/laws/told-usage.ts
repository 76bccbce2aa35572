/**
 * What the log says that attempts used: the word of their worker at their end, or where there is none, what their
 * permits said while they lived.
 */
import assert from "node:assert/strict";
import type { TaskId } from "../../../src/core/base/brand.ts";
import type { Event, UsageTotals } from "../../../src/core/model/events.ts";
import type { State, Task } from "../../../src/core/model/state.ts";

const NOTHING: UsageTotals = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, cost: null };

/** Charged and cached tokens in one number. */
export const allTokens = ({ inputTokens, outputTokens, cachedTokens }: UsageTotals): number =>
  inputTokens + outputTokens + cachedTokens;

/** To be told every event after it was applied; it calls `heard` with each attempt's usage once. */
export function usageTeller(
  heard: (task: Task, usage: UsageTotals, at: number) => void,
): (state: State, event: Event) => void {
  /** Which attempt each permit is for, and what those of an attempt have said so far. */
  const attempts = new Map<string, string>();
  const said = new Map<string, UsageTotals>();
  const settled = ({ tasks }: State, permit: string, usage: UsageTotals): void => {
    const attempt = attempts.get(permit) ?? "";
    const task = tasks.get(attempt.split(" ")[0] as TaskId);
    // A call whose attempt is over was told with it.
    if (attempt !== `${task?.id} ${task?.attempt?.number}`) return;
    const before = said.get(attempt) ?? NOTHING;
    const sum = (of: "inputTokens" | "outputTokens" | "cachedTokens"): number => before[of] + usage[of];
    const cost = usage.cost === null ? before.cost : (before.cost ?? 0) + usage.cost;
    said.set(attempt, {
      inputTokens: sum("inputTokens"),
      outputTokens: sum("outputTokens"),
      cachedTokens: sum("cachedTokens"),
      cost,
    });
  };
  return (state, event) => {
    if (event.kind === "permit-settled" && event.usage !== null) settled(state, event.permit, event.usage);
    if (!("task" in event && "attempt" in event) || event.kind === "attempt-used") return;
    const key = `${event.task} ${event.attempt}`;
    if (event.kind === "permit-asked") return void attempts.set(event.permit, key);
    const isSaid = event.kind === "attempt-usage";
    const permits = said.get(key);
    if (!isSaid && (permits === undefined || !("tokens" in event))) return;
    said.delete(key);
    const usage = isSaid ? event : (permits as UsageTotals);
    const { inputTokens, outputTokens } = permits ?? NOTHING;
    assert.ok(usage.inputTokens + usage.outputTokens >= inputTokens + outputTokens, "what its permits said is in it");
    heard(state.tasks.get(event.task as TaskId) as Task, usage, event.at);
  };
}
