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
  /** Its name in the plan; of a child, its id. */
  readonly name: string;
  readonly id: string;
  /** The id of the task that submitted it while it ran; null: it is of the plan itself. */
  readonly parent: string | null;
  /** How many attempts may fail. */
  readonly maxAttempts: number;
  /** How many rounds its loop may have; null if it has none. */
  readonly maxRounds: number | null;
  readonly hasWorktree: boolean;
  /** The ids of the tasks that must end before it may start. */
  needs: readonly string[];
  state: RowState;
  /** It was done before this run began, or was not to be done then. */
  isBefore: boolean;
  /** The number of its latest attempt; 0 if there was none. */
  attempt: number;
  /** Attempts in this run. */
  attempts: number;
  /** Which round of its loop it is in, or was in last; 0 before the first, and without a loop. */
  round: number;
  /** When its attempt began, while it runs or waits for its children. */
  startedAt: number | null;
  /** From the beginning of its last attempt to its end, as `drover tasks` has it; of a loop, its last round. */
  tookMs: number | null;
  /** What its attempts in this run say they used; null if they say nothing. */
  usage: Used | null;
  /** Why it failed, was skipped, or rests. */
  why: string;
  /** It was skipped by its own condition, or because of one that was: that is no failure. */
  isUnwanted?: boolean;
  /** The plan was put without it before it had ended: it is waited for, but no part of the plan any more. */
  isGone?: boolean;
};
/** Tokens that are charged, and what they cost in the currency of the worker. */
export type Used = { readonly tokens: number; readonly cost: number | null };
export type Fact = { readonly id: string; readonly at: number } & (
  | { readonly kind: "started"; readonly attempt: number }
  /** Stopped: the run was interrupted; it goes on with the next. */
  | { readonly kind: "done" | "stopped" }
  /** Retried: it had ended, and is to run again. Awaiting: it has answered, and its children have not ended. */
  | { readonly kind: "retried" | "awaiting" | "approved" }
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

type StateCounts = Record<RowState, number> & { all: number };
export type Counts = Readonly<StateCounts> & { readonly before: number; readonly children: Readonly<StateCounts> };
export type RunState = {
  /** Those of the plan, in its order; then their children, as they came. */
  readonly rows: readonly Row[];
  /** The row of this task; undefined if it is none of the run. */
  row(id: string): Row | undefined;
  /** Whether it could start if there were room: all that it needs has ended, in the run or outside. */
  isQueued(row: Row): boolean;
  /** The row a fact was about, changed; null if it is about none of them, or changes nothing. */
  apply(fact: Fact): Row | null;
  /** A running task has submitted another. */
  grow(row: Row): void;
  /**
   * The plan has these tasks now: those that it had stay as they are. Of those that it has no more, one that had not
   * ended stays too, since it was asked for, unless another has its name now. Answers which are new, and how many gone.
   */
  replan(rows: readonly Row[]): { readonly added: readonly Row[]; readonly gone: number };
  /** Whether it has other tasks than in the beginning. */
  isReplanned(): boolean;
  /** Of the tasks of the plan, and of their children apart. */
  counts(): Counts;
  /** Whether all tasks of the plan have ended. */
  isOver(): boolean;
  /** Whether all children have ended too. */
  isAllOver(): boolean;
  /** Whether one runs, or waits for its children; the children count. */
  isBusy(): boolean;
  /** Whether none runs. */
  isQuiet(): boolean;
};

const LIVE: ReadonlySet<RowState> = new Set<RowState>(["waiting", "running", "resting", "parked", "awaiting"]);
export const isLive = ({ state }: Row): boolean => LIVE.has(state);
const ENDS: ReadonlySet<Fact["kind"]> = new Set<Fact["kind"]>(["done", "failed", "skipped", "cancelled"]);
const hasEnded = (row: Row | undefined): boolean => row !== undefined && !isLive(row);

/** A row of a task that has not begun. */
export const newRow = (given: Pick<Row, "name" | "id"> & Partial<Row>): Row => ({
  parent: null,
  maxAttempts: 1,
  maxRounds: null,
  hasWorktree: false,
  needs: [],
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

const noCounts = (): StateCounts => ({
  waiting: 0,
  running: 0,
  resting: 0,
  parked: 0,
  awaiting: 0,
  done: 0,
  failed: 0,
  skipped: 0,
  cancelled: 0,
  all: 0,
});
const openIn = ({ all, done, failed, skipped, cancelled }: StateCounts): number =>
  all - done - failed - skipped - cancelled;

/** What is counted is counted as it changes: a tree may grow to very many. */
export function createRunState(given: readonly Row[]): RunState {
  const rows: Row[] = [];
  const byId = new Map<string, Row>();
  /** Tasks that are no rows, as far as a fact has told that they have ended. */
  const outside = new Set<string>();
  const own = noCounts();
  const children = noCounts();
  let isReplanned = false;
  const countsOf = ({ parent }: Row): StateCounts => (parent === null ? own : children);
  function add(row: Row): void {
    if (byId.has(row.id)) return;
    rows.push(row);
    byId.set(row.id, row);
    const counts = countsOf(row);
    counts[row.state] += 1;
    counts.all += 1;
  }
  for (const row of given) add(row);
  return {
    rows,
    row: (id) => byId.get(id),
    isQueued: ({ state, needs }) =>
      state === "waiting" && needs.every((id) => (byId.has(id) ? hasEnded(byId.get(id)) : outside.has(id))),
    apply(fact) {
      const row = byId.get(fact.id);
      if (row === undefined && ENDS.has(fact.kind)) outside.add(fact.id);
      else if (fact.kind === "retried") outside.delete(fact.id);
      if (row === undefined || (row.isBefore && fact.kind !== "retried")) return null;
      const counts = countsOf(row);
      counts[row.state] -= 1;
      const changed = change(row, fact, byId);
      counts[row.state] += 1;
      return changed;
    },
    grow: add,
    replan(next) {
      const [ids, names] = [new Set(next.map(({ id }) => id)), new Set(next.map(({ name }) => name))];
      const added = next.filter(({ id }) => !byId.has(id));
      const left = rows.filter(({ id, parent }) => parent === null && !ids.has(id));
      const stay = left.filter((row) => !names.has(row.name) && (isLive(row) || row.isGone === true));
      const kept = next.map((row) => Object.assign(byId.get(row.id) ?? row, { needs: row.needs }));
      const gone = left.filter(({ isGone }) => isGone !== true).length;
      for (const row of kept) if (row.isGone === true) row.isGone = false;
      for (const row of stay) row.isGone = true;
      const all = [...kept, ...stay, ...rows.filter(({ parent }) => parent !== null)];
      if (added.length + gone === 0) return { added, gone };
      isReplanned = true;
      rows.length = 0;
      byId.clear();
      for (const counts of [own, children]) Object.assign(counts, noCounts());
      for (const row of all) add(row);
      return { added, gone };
    },
    isReplanned: () => isReplanned,
    counts: () => ({
      ...own,
      before: rows.slice(0, own.all).filter(({ isBefore }) => isBefore).length,
      children: { ...children },
    }),
    isOver: () => openIn(own) === 0,
    isAllOver: () => openIn(own) + openIn(children) === 0,
    isBusy: () => own.running + own.awaiting + children.running + children.awaiting > 0,
    isQuiet: () => own.running + children.running === 0,
  };
}

/** Each behind the task that submitted it, and how deep it is below the plan. */
export function inTree(rows: readonly Row[]): { readonly row: Row; readonly depth: number }[] {
  const known = new Set(rows.map(({ id }) => id));
  const below = Map.groupBy(rows, ({ parent }) => (parent !== null && known.has(parent) ? parent : null));
  const found: { row: Row; depth: number }[] = [];
  const open = (below.get(null) ?? []).map((row) => ({ row, depth: row.parent === null ? 0 : 1 })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    found.push(next);
    const { row, depth } = next;
    for (const child of (below.get(row.id) ?? []).toReversed()) open.push({ row: child, depth: depth + 1 });
  }
  return found;
}

function change(row: Row, fact: Fact, byId: ReadonlyMap<string, Row>): Row | null {
  switch (fact.kind) {
    case "started":
      Object.assign(row, { state: "running", startedAt: fact.at, attempt: fact.attempt, why: "" });
      row.attempts += 1;
      row.tookMs = null;
      if (row.maxRounds !== null && row.round === 0) row.round = 1;
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
      return Object.assign(row, { state: "awaiting", why: "its children have not ended" });
    case "again":
      return settle(row, "resting", fact.at, fact.why);
    case "parked":
      return settle(row, "parked", fact.at, fact.why);
    case "approved":
      return settle(row, "waiting", fact.at, "");
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
  const tookMs = row.startedAt === null ? row.tookMs : Math.max(0, at - row.startedAt);
  return Object.assign(row, { state, why, tookMs, startedAt: null });
}
