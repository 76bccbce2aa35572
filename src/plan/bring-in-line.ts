/**
 * What is to become of each task when a plan is put: submitted, run again, or left as it is.
 *
 * What is done stays done. What failed or was skipped runs again, unless the caller wants it left; what was cancelled
 * was only no part of an earlier run, and runs again always. One that its own condition skipped stays as it is while
 * nothing that it needs is run: the condition would be the same. And what cannot run because something that it needs
 * stays bad stays with it.
 */
import type { PlanTask } from "./tasks.ts";
import { IF_REASON } from "./work/fill.ts";

export type Fate = "submit" | "retry" | "keep";
type Standing = { readonly phase: string | null; readonly fate: Fate };

const BAD: ReadonlySet<string | null> = new Set(["failed", "skipped", "cancelled", "rejected"]);
const staysBad = ({ phase, fate }: Standing): boolean => fate === "keep" && BAD.has(phase);

/** `needs`: what has been found of all that it needs. */
export function fateOf(
  one: { readonly task: PlanTask; readonly phase: string | null; readonly error: string | null },
  needs: readonly Standing[],
  retriesFailed: boolean,
): Fate {
  const { task, phase, error } = one;
  if (phase === null) return "submit";
  if (phase !== "cancelled" && phase !== "failed" && phase !== "skipped") return "keep";
  if (phase !== "cancelled" && !retriesFailed) return "keep";
  if (task.rules.onDependencyFailure === "skip" && needs.some(staysBad)) return "keep";
  const isByCondition = phase === "skipped" && error?.startsWith(IF_REASON) === true;
  return isByCondition && needs.every(({ fate }) => fate === "keep") ? "keep" : "retry";
}
