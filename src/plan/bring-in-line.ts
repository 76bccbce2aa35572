/**
 * What is to become of each task when a plan is put: submitted, run again, or left as it is.
 *
 * What is done stays done. What failed or was skipped runs again, unless the caller wants it left; what was cancelled
 * was only no part of an earlier run, and runs again always. One that its own condition skipped stays as it is while
 * nothing that it needs is run: the condition would be the same. And what was skipped for the sake of one that stays
 * bad stays with it.
 */
import { hasEnded, type Matched } from "./identity.ts";
import { IF_REASON } from "./work/fill.ts";

export type Fate = "submit" | "retry" | "keep";

/** `matched`: each behind all that it needs. `reasonOf`: why a task ended as it did; null if nothing says. */
export function fatesOf(
  matched: readonly Matched[],
  { retriesFailed, reasonOf }: { readonly retriesFailed: boolean; readonly reasonOf: (id: string) => string | null },
): Map<string, Fate> {
  const fates = new Map<string, Fate>();
  const staysBad = new Set<string>();
  for (const { id, phase, needs } of matched) {
    const fate = fateOf(id, phase, needs);
    fates.set(id, fate);
    if (fate === "keep" && phase !== "done" && hasEnded(phase ?? "")) staysBad.add(id);
  }
  return fates;

  function fateOf(id: string, phase: string | null, needs: readonly string[]): Fate {
    if (phase === null) return "submit";
    if (phase !== "failed" && phase !== "skipped" && phase !== "cancelled") return "keep";
    if (!retriesFailed && phase !== "cancelled") return "keep";
    if (phase === "failed") return "retry";
    if (needs.some((need) => staysBad.has(need))) return "keep";
    if (phase === "cancelled") return "retry";
    const isByCondition = reasonOf(id)?.startsWith(IF_REASON) === true;
    return isByCondition && needs.every((need) => fates.get(need) === "keep") ? "keep" : "retry";
  }
}
