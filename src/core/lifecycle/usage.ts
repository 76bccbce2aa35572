/**
 * What attempts say they used, in detail: kept by attempt, summed up for their task, its group and its project, and
 * booked by day.
 *
 * Shares and budgets go by tokens alone (turn/budget.ts); these sums are for people. The records of tasks go, and the
 * log may be pruned; what was used is to be known for longer. So it is booked in rows, by day, project, agent and type,
 * and by day, project, agent and label, at most so many of each kind: the row that began first goes first, and its day
 * is remembered, so that what is left of that day is not taken for all of it.
 */
import type { Instant } from "../base/brand.ts";
import type { UsageTotals } from "../model/events.ts";
import type { Ledger, LedgerPart, LedgerRow } from "../model/ledger.ts";
import type { Attempt, State, Task } from "../model/state.ts";
import { extraOf } from "./labels.ts";

/** Of how many attempts of a task it is kept: the last ones. */
const ATTEMPTS_MAX = 100;

type Noted = UsageTotals & { readonly at: Instant; readonly attempt: number };

export function noteDetails(state: State, task: Task, event: Noted): void {
  const extra = extraOf(task);
  const { attempt, inputTokens, outputTokens, cachedTokens, cost } = event;
  const usage = { inputTokens, outputTokens, cachedTokens, cost };
  const said = { attempt, worker: task.lastWorker ?? "", usage };
  extra.attempts = [...(extra.attempts ?? []), said].slice(-ATTEMPTS_MAX);
  extra.usage = summed(extra.usage, event);
  task.project.usage = summed(task.project.usage, event);
  bookUsage(state, task, event);
  if (extra.group !== null) extra.group.usage = summed(extra.group.usage, event);
  if (task.attempt !== null) task.attempt.permitUsage = null;
}

/** An attempt that ends without a word of its worker used what its permits said at least. */
export function noteUnsaid(state: State, { task, number, permitUsage }: Attempt, at: Instant): void {
  if (permitUsage !== null) noteDetails(state, task, { at, attempt: number, ...permitUsage });
}

/**
 * What an attempt used, by its worker's word and by its permits: as in the budget, the larger counts and never both.
 * What only one of them knows, a cost say, is taken from it.
 */
export function usedInDetail(said: UsageTotals | null, permits: UsageTotals | null): UsageTotals | null {
  if (said === null || permits === null) return said ?? permits;
  const { inputTokens, outputTokens } = tokensIn(permits) > tokensIn(said) ? permits : said;
  const cost =
    said.cost === null || permits.cost === null ? (said.cost ?? permits.cost) : Math.max(said.cost, permits.cost);
  return { inputTokens, outputTokens, cachedTokens: Math.max(said.cachedTokens, permits.cachedTokens), cost };
}

const tokensIn = ({ inputTokens, outputTokens }: UsageTotals): number => inputTokens + outputTokens;

const DAY_MS = 86_400_000;
export const LEDGER_ROWS_MAX = 10_000;

const emptyPart = (): LedgerPart => ({ rows: new Map(), goneDay: -1 });
export const emptyLedger = (): Ledger => ({ types: emptyPart(), labels: emptyPart() });

/** The day of an instant, in days since 1970, and its beginning. */
export const dayOf = (at: number): number => Math.floor(at / DAY_MS);
export const beginOfDay = (day: number): number => day * DAY_MS;

function bookUsage({ ledger }: State, task: Task, event: Noted): void {
  const { project, agent, requirements, extra } = task;
  const where = { day: dayOf(event.at), project: project.id, agent: agent.id };
  book(ledger.types, { ...where, of: requirements.type }, event);
  for (const { text } of extra?.labels ?? []) book(ledger.labels, { ...where, of: text }, event);
}

type Where = Pick<LedgerRow, "day" | "project" | "agent" | "of">;

function book(part: LedgerPart, where: Where, used: UsageTotals): void {
  const row = part.rows.get(keyOf(where));
  if (row === undefined) return putRow(part, { ...where, attempts: 1, usage: summed(null, used) });
  row.attempts++;
  row.usage = summed(row.usage, used);
}

/** Adds a row that is not there yet. */
export function putRow(part: LedgerPart, row: LedgerRow): void {
  part.rows.set(keyOf(row), row);
  if (part.rows.size <= LEDGER_ROWS_MAX) return;
  const [first] = part.rows;
  if (first === undefined) return;
  part.rows.delete(first[0]);
  part.goneDay = Math.max(part.goneDay, first[1].day);
}

/** A label may hold anything, and comes last; names have no line ends. */
const keyOf = ({ day, project, agent, of }: Where): string => `${day}\n${project}\n${agent}\n${of}`;

/** Absent costs count as nothing, unless all are absent. */
export function summed(before: UsageTotals | null, more: UsageTotals): UsageTotals {
  return {
    inputTokens: (before?.inputTokens ?? 0) + more.inputTokens,
    outputTokens: (before?.outputTokens ?? 0) + more.outputTokens,
    cachedTokens: (before?.cachedTokens ?? 0) + more.cachedTokens,
    cost: more.cost === null ? (before?.cost ?? null) : (before?.cost ?? 0) + more.cost,
  };
}
