/**
 * How a run stands: one row per task, changed by facts and by nothing else.
 *
 * Facts come from the log, in its sequence, so what is shown is what is written down. What shows it (a live picture,
 * lines, JSON, the summary) only reads here.
 */
import type { PlanTask } from "../plan/plan-file.ts";

export type RowState = "waiting" | "running" | "resting" | "done" | "failed" | "skipped" | "cancelled";
export type Row = {
  readonly task: PlanTask;
  readonly id: string;
  state: RowState;
  /** It was done before this run began. */
  readonly isBefore: boolean;
  /** The number of its latest attempt; 0 if there was none. */
  attempt: number;
  /** Attempts in this run. */
  attempts: number;
  /** When its attempt began, while it runs. */
  startedAt: number | null;
  /** How long its last attempt took. */
  tookMs: number | null;
  /** Why it failed, was skipped, or rests. */
  why: string;
};
export type Fact =
  | { readonly kind: "started"; readonly id: string; readonly at: number; readonly attempt: number }
  | { readonly kind: "done"; readonly id: string; readonly at: number }
  /** It failed or was sent back, and will be tried again. */
  | { readonly kind: "again"; readonly id: string; readonly at: number; readonly why: string; readonly until: number }
  /** The run was interrupted; it goes on with the next. */
  | { readonly kind: "stopped"; readonly id: string; readonly at: number }
  | { readonly kind: "failed"; readonly id: string; readonly at: number; readonly why: string }
  | { readonly kind: "skipped"; readonly id: string; readonly at: number; readonly dependency: string }
  | { readonly kind: "cancelled"; readonly id: string; readonly at: number; readonly why: string };

export type Counts = Readonly<Record<RowState, number>> & { readonly all: number; readonly before: number };
export type RunState = {
  readonly rows: readonly Row[];
  /** The row a fact was about, changed; null if it is about none of them, or changes nothing. */
  apply(fact: Fact): Row | null;
  counts(): Counts;
  isOver(): boolean;
};

const LIVE: ReadonlySet<RowState> = new Set<RowState>(["waiting", "running", "resting"]);
export const isLive = ({ state }: Row): boolean => LIVE.has(state);

export function createRunState(rows: readonly Row[]): RunState {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const nameOf = (id: string): string => byId.get(id)?.task.name ?? id;
  const counts = (): Counts => {
    const count = { waiting: 0, running: 0, resting: 0, done: 0, failed: 0, skipped: 0, cancelled: 0, before: 0 };
    for (const row of rows) {
      count[row.state] += 1;
      if (row.isBefore) count.before += 1;
    }
    return { ...count, all: rows.length };
  };
  return {
    rows,
    apply(fact) {
      const row = byId.get(fact.id);
      return row === undefined || row.isBefore ? null : change(row, fact, nameOf, byId);
    },
    counts,
    isOver: () => !rows.some(isLive),
  };
}

function change(row: Row, fact: Fact, nameOf: (id: string) => string, byId: ReadonlyMap<string, Row>): Row {
  switch (fact.kind) {
    case "started":
      return Object.assign(row, {
        state: "running",
        startedAt: fact.at,
        attempt: fact.attempt,
        attempts: row.attempts + 1,
        why: "",
      });
    case "done":
      return settle(row, "done", fact.at, "");
    case "again":
      return settle(row, "resting", fact.at, fact.why);
    case "stopped":
      return settle(row, "waiting", fact.at, "stopped before its end");
    case "failed":
      return settle(row, "failed", fact.at, fact.why);
    case "skipped": {
      const cause = byId.get(fact.dependency)?.state ?? "failed";
      const how = cause === "failed" ? "failed" : `was ${cause}`;
      return settle(row, "skipped", fact.at, `needs ${nameOf(fact.dependency)}, which ${how}`);
    }
    case "cancelled":
      return settle(row, "cancelled", fact.at, fact.why);
    default:
      return fact satisfies never;
  }
}

function settle(row: Row, state: RowState, at: number, why: string): Row {
  const tookMs = row.startedAt === null ? row.tookMs : Math.max(0, at - row.startedAt);
  return Object.assign(row, { state, why, tookMs, startedAt: null });
}
