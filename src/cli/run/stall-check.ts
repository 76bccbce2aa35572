/**
 * Whether a run in which nothing runs will ever go on by itself.
 *
 * A budget that is used up, a gate that is shut for an hour, or trees that leave no room for others look like a run
 * that hangs. So as soon as nothing runs every task that could be next is asked why it does not start. If time alone
 * lets one of them start, a note says when and why; if nothing ever will, the run is over, with the reason.
 */
import { isLive, type Row, type RunState } from "./state.ts";

/** As much of the engine as is asked. */
type Asked = {
  why(id: string): Promise<{
    readonly summary: string;
    readonly conditions: readonly { readonly code: string; readonly ok: boolean }[];
    readonly earliestStart: number | null;
  }>;
  workers(): Promise<readonly { readonly inFlight: number }[]>;
};

/** A person does not wait longer than this; a window that ends later counts as never. */
const NEVER_MS = 30 * 24 * 3_600_000;
/** Shorter waits are the rests between attempts, and explain themselves. */
const WORTH_TELLING_MS = 10_000;

/** Why nothing will ever start by itself. */
export type Stall = {
  readonly why: string;
  /** The tasks that wait for a person. */
  readonly asks: readonly string[];
  /** Children that no worker of the run ever takes: an older version let them in. */
  readonly misfits: readonly string[];
};

/** Null if something runs or will. */
export function createStallCheck(given: {
  readonly drover: Asked;
  readonly runState: RunState;
  readonly now: () => number;
  readonly noted: (text: string) => void;
  /** What is in the way of another worktree now, in words; null if one may be made. */
  readonly shortage: () => Promise<string | null>;
}): () => Promise<Stall | null> {
  const { drover, runState, now, noted, shortage } = given;
  const { isQuiet } = runState;
  let isLooking = false;
  let lastNoted = "";

  async function look(): Promise<Stall | null> {
    const asks: string[] = [];
    const misfits: string[] = [];
    let earliest: { readonly at: number; readonly summary: string } | null = null;
    let reason = "";
    let trees: Promise<string | null> | null = null;
    for (const row of runState.rows.filter(isLive)) {
      const { conditions, earliestStart: at, summary } = await drover.why(row.id);
      const shut = conditions.filter(({ ok }) => !ok).map(({ code }) => code);
      if (!isQuiet() || shut.length === 0 || shut.includes("running")) return null;
      // What these wait for is asked itself.
      if (shut.includes("dependency") || shut.includes("children")) continue;
      if (row.hasWorktree && shut.includes("worker-room")) {
        trees ??= shortage();
        const inTheWay = await trees;
        // A tree has gone meanwhile: the worker has just heard of it.
        if (inTheWay === null) return null;
        reason ||= `${row.name}: ${inTheWay}`;
      }
      if (shut.includes("approval")) asks.push(row.name);
      if (row.parent !== null && shut.includes("never-fits")) misfits.push(row.name);
      reason ||= inNames(row, summary);
      if (at !== null && (earliest === null || at < earliest.at)) earliest = { at, summary: inNames(row, summary) };
    }
    const isBusy = (await drover.workers()).some(({ inFlight }) => inFlight > 0);
    if (isBusy || !isQuiet() || runState.isAllOver() || reason === "") return null;
    if (earliest === null || earliest.at > now() + NEVER_MS) return { why: reason, asks, misfits };
    tell(earliest);
    return null;
  }

  /** People know tasks by their names, the engine by their ids. */
  function inNames({ name }: Row, summary: string): string {
    const named = runState.rows.reduce((text, row) => text.replaceAll(row.id, row.name), summary);
    return `${name}: ${named}`;
  }

  function tell({ at, summary }: { readonly at: number; readonly summary: string }): void {
    if (at - now() < WORTH_TELLING_MS || summary === lastNoted) return;
    lastNoted = summary;
    noted(`nothing runs before ${new Date(at).toISOString()}: ${summary}`);
  }

  return async () => {
    if (isLooking || !isQuiet()) return null;
    isLooking = true;
    try {
      return await look();
    } finally {
      isLooking = false;
    }
  };
}
