/**
 * How a run stands: one row per task, changed by facts and by nothing else.
 *
 * Facts come from the log, in its sequence, so what is shown is what is written down. What shows it (a live picture,
 * lines, JSON, the summary) only reads here.
 */
import type { PlanTask } from "../../plan/index.ts";

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
  /** It was skipped by its own condition, or because of one that was: that is no failure. */
  isUnwanted?: boolean;
};
export type Fact = { readonly id: string; readonly at: number } & (
  | { readonly kind: "started"; readonly attempt: number }
  /** Stopped: the run was interrupted; it goes on with the next. */
  | { readonly kind: "done" | "stopped" }
  /** It failed or was sent back, and will be tried again. */
  | { readonly kind: "again"; readonly why: string; readonly until: number }
  | { readonly kind: "failed" | "cancelled" | "parked"; readonly why: string }
  /** Without a dependency, by its own condition. */
  | { readonly kind: "skipped"; readonly dependency: string | null; readonly why: string }
);

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
  return {
    rows,
    apply(fact) {
      const row = byId.get(fact.id);
      return row === undefined || row.isBefore ? null : change(row, fact, byId);
    },
    counts() {
      const count = { waiting: 0, running: 0, resting: 0, done: 0, failed: 0, skipped: 0, cancelled: 0 };
      for (const { state } of rows) count[state] += 1;
      return { ...count, all: rows.length, before: rows.filter(({ isBefore }) => isBefore).length };
    },
    isOver: () => !rows.some(isLive),
  };
}

function change(row: Row, fact: Fact, byId: ReadonlyMap<string, Row>): Row {
  switch (fact.kind) {
    case "started":
      Object.assign(row, { state: "running", startedAt: fact.at, attempt: fact.attempt, why: "" });
      row.attempts += 1;
      return row;
    case "done":
      return settle(row, "done", fact.at, "");
    case "again":
      return settle(row, "resting", fact.at, fact.why);
    case "parked":
      return settle(row, "waiting", fact.at, fact.why);
    case "stopped":
      return settle(row, "waiting", fact.at, "stopped before its end");
    case "failed":
    case "cancelled":
      return settle(row, fact.kind, fact.at, fact.why);
    case "skipped": {
      if (fact.dependency === null) {
        row.isUnwanted = true;
        return settle(row, "skipped", fact.at, fact.why);
      }
      row.isUnwanted = byId.get(fact.dependency)?.isUnwanted === true;
      const { state = "failed", task } = byId.get(fact.dependency) ?? {};
      const how = state === "failed" ? "failed" : `was ${state}`;
      return settle(row, "skipped", fact.at, `needs ${task?.name ?? fact.dependency}, which ${how}`);
    }
    default:
      return fact satisfies never;
  }
}

function settle(row: Row, state: RowState, at: number, why: string): Row {
  const tookMs = row.startedAt === null ? row.tookMs : Math.max(0, at - row.startedAt);
  return Object.assign(row, { state, why, tookMs, startedAt: null });
}
