/**
 * How a run stands: one row per task, changed by facts and by nothing else.
 *
 * Facts come from the log, in its sequence, so what is shown is what is written down. What shows it (a live picture,
 * lines, JSON, the summary) only reads here.
 */
export type RowState =
  | ("waiting" | "running" | "resting" | "parked" | "awaiting")
  | ("done" | "failed" | "skipped" | "cancelled");
export type Row = {
  /** Its name in the plan. */
  readonly name: string;
  readonly id: string;
  /** How many attempts may fail. */
  readonly maxAttempts: number;
  /** How many rounds its loop may have; null if it has none. */
  readonly maxRounds: number | null;
  readonly hasWorktree: boolean;
  state: RowState;
  /** It was done before this run began, or was not to be done then. */
  isBefore: boolean;
  /** The number of its latest attempt; 0 if there was none. */
  attempt: number;
  /** Attempts in this run. */
  attempts: number;
  /** Which round of its loop it is in, or was in last; 0 before the first, and without a loop. */
  round: number;
  /** When its attempt began, while it runs. */
  startedAt: number | null;
  /** How long its last attempt took; of a loop, all of its rounds. */
  tookMs: number | null;
  /** What its attempts in this run say they used; null if they say nothing. */
  usage: Used | null;
  /** Why it failed, was skipped, or rests. */
  why: string;
  /** It was skipped by its own condition, or because of one that was: that is no failure. */
  isUnwanted?: boolean;
};
/** Tokens that are charged, and what they cost in the currency of the worker. */
export type Used = { readonly tokens: number; readonly cost: number | null };
export type Fact = { readonly id: string; readonly at: number } & (
  | { readonly kind: "started"; readonly attempt: number }
  /** Stopped: the run was interrupted; it goes on with the next. */
  | { readonly kind: "done" | "stopped" }
  /** Retried: it had ended, and is to run again. Awaiting: it has answered, and its children have not ended. */
  | { readonly kind: "retried" | "awaiting" }
  /** It failed or was sent back, and will be tried again. */
  | { readonly kind: "again"; readonly why: string; readonly until: number }
  /** A round of its loop was not enough. */
  | { readonly kind: "round"; readonly note: string | null }
  | { readonly kind: "failed" | "cancelled" | "parked"; readonly why: string }
  /** What one attempt used, in all. */
  | {
      readonly kind: "used";
      readonly usage: { readonly inputTokens: number; readonly outputTokens: number; readonly cost: number | null };
    }
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
  /** Whether one runs, or waits for its children. */
  isBusy(): boolean;
};

const LIVE: ReadonlySet<RowState> = new Set<RowState>(["waiting", "running", "resting", "parked", "awaiting"]);
export const isLive = ({ state }: Row): boolean => LIVE.has(state);

/** A row of a task that has not begun. */
export const newRow = (given: Pick<Row, "name" | "id"> & Partial<Row>): Row => ({
  maxAttempts: 1,
  maxRounds: null,
  hasWorktree: false,
  state: "waiting",
  isBefore: false,
  attempt: 0,
  attempts: 0,
  round: 0,
  startedAt: null,
  tookMs: null,
  usage: null,
  why: "",
  ...given,
});

export function createRunState(rows: readonly Row[]): RunState {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return {
    rows,
    apply(fact) {
      const row = byId.get(fact.id);
      return row === undefined || (row.isBefore && fact.kind !== "retried") ? null : change(row, fact, byId);
    },
    counts() {
      const live = { waiting: 0, running: 0, resting: 0, parked: 0, awaiting: 0 };
      const count = { ...live, done: 0, failed: 0, skipped: 0, cancelled: 0 };
      for (const { state } of rows) count[state] += 1;
      return { ...count, all: rows.length, before: rows.filter(({ isBefore }) => isBefore).length };
    },
    isOver: () => !rows.some(isLive),
    isBusy: () => rows.some(({ state }) => state === "running" || state === "awaiting"),
  };
}

function change(row: Row, fact: Fact, byId: ReadonlyMap<string, Row>): Row | null {
  switch (fact.kind) {
    case "started":
      Object.assign(row, { state: "running", startedAt: fact.at, attempt: fact.attempt, why: "" });
      row.attempts += 1;
      if (row.maxRounds === null) row.tookMs = null;
      else if (row.round === 0) row.round = 1;
      return row;
    case "used": {
      const { inputTokens, outputTokens, cost } = fact.usage;
      row.usage = sumOf([row.usage, { tokens: inputTokens + outputTokens, cost }]);
      return null;
    }
    case "round":
      return endRound(row, fact.note, fact.at);
    case "done":
      return settle(row, "done", fact.at, "");
    case "retried":
      Object.assign(row, { isBefore: false, isUnwanted: false });
      return settle(row, "waiting", fact.at, "");
    case "awaiting":
      return settle(row, "awaiting", fact.at, "its children have not ended");
    case "again":
      return settle(row, "resting", fact.at, fact.why);
    case "parked":
      return settle(row, "parked", fact.at, fact.why);
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
      const { state = "failed", name = fact.dependency } = byId.get(fact.dependency) ?? {};
      const how = state === "failed" ? "failed" : `was ${state}`;
      return settle(row, "skipped", fact.at, `needs ${name}, which ${how}`);
    }
    default:
      return fact satisfies never;
  }
}

/** Absent costs count as nothing, unless all are absent. */
export const sumOf = (parts: readonly (Used | null)[]): Used | null =>
  parts.reduce((sum, part) => {
    if (sum === null || part === null) return sum ?? part;
    const cost = sum.cost === null && part.cost === null ? null : (sum.cost ?? 0) + (part.cost ?? 0);
    return { tokens: sum.tokens + part.tokens, cost };
  }, null);

/** After the last round comes the end, which says all there is to say. */
function endRound(row: Row, note: string | null, at: number): Row | null {
  const isLast = row.maxRounds !== null && row.round >= row.maxRounds;
  // The last line of what a check printed says most.
  settle(row, "resting", at, note === null ? "" : note.slice(note.trimEnd().lastIndexOf("\n") + 1).trim());
  if (isLast) return null;
  row.round += 1;
  return row;
}

function settle(row: Row, state: RowState, at: number, why: string): Row {
  const tookMs = row.startedAt === null ? row.tookMs : (row.tookMs ?? 0) + Math.max(0, at - row.startedAt);
  return Object.assign(row, { state, why, tookMs, startedAt: null });
}
