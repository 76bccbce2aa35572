/**
 * From a long history that fails to a short one that fails in the same way.
 *
 * Delta debugging on the list of steps: leave out halves, then quarters, down to single steps, and keep
 * whatever still breaks the same rule. Every attempt is a whole run, so their number is bounded.
 */
import type { History } from "./history.ts";
import { type PlantedBug, playHistory, type Report } from "./simulate.ts";

const RUNS_MAX = 250;

export async function shrink(failed: Report, plant: PlantedBug = {}): Promise<Report> {
  const rule = failed.complaints[0]?.rule;
  let best = failed;
  let runs = 0;

  async function tryWithout(from: number, count: number): Promise<boolean> {
    const { steps } = best.history;
    const shorter: History = { ...best.history, steps: [...steps.slice(0, from), ...steps.slice(from + count)] };
    runs++;
    const report = await playHistory(shorter, plant);
    if (report.complaints[0]?.rule !== rule) return false;
    best = report;
    return true;
  }

  for (let size = Math.ceil(best.history.steps.length / 2); runs < RUNS_MAX; size = Math.ceil(size / 2)) {
    let hasShrunk = false;
    // From the end: what came after the failure goes first.
    for (let end = best.history.steps.length; end > 0 && runs < RUNS_MAX; end -= size) {
      if (await tryWithout(Math.max(0, end - size), Math.min(size, end))) hasShrunk = true;
    }
    if (size === 1 && !hasShrunk) break;
  }
  return best;
}
