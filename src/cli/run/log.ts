/**
 * The log of a plan: what it has of the plan's tasks, and how it is brought in line with them.
 *
 * Before anything starts the log is made to hold what the plan says: what is new is submitted, what ended badly is
 * tried again, what is no part of this run is cancelled. All of it may be repeated, so a run that dies in the middle
 * of it loses nothing. Like session.ts, this file knows the engine, because a plan's log is opened without a
 * server.
 */

import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Drover, DroverError, LogFailure, openSqliteLog, type TaskBody } from "../../engine/index.ts";
import { recover } from "../../engine/writer/index.ts";
import { hasEnded, IF_REASON, type Known, type Matched, type Matching } from "../../plan/index.ts";
import { present } from "../../std/index.ts";

import type { PlanFile } from "../plan/plan-file.ts";
import { CliProblem, EXIT } from "../shell/problem.ts";
import { newRow, type Row, type RowState } from "./state.ts";

/** What a task asks of its worker: those with a worktree have one of their own, and only they wait for a tree. */
export const IN_PLACE = "in-place";
export const IN_WORKTREE = "in-worktree";

export function* knownIn({ state }: Pick<Drover, "state">): Generator<Known> {
  for (const { id, phase } of state.tombstones.values()) yield { id, phase };
  for (const { id, phase } of state.tasks.values()) yield { id, phase };
}

export type Kept = {
  readonly ids: ReadonlySet<string>;
  /** Those of them that were skipped by their own condition, or for the sake of such a one. */
  readonly unwanted: ReadonlySet<string>;
};

/**
 * The tasks of an earlier run that stay as they are. What is done stays done, and so does what was not to be done, if
 * all it needs stays; what failed is tried again, unless --no-retry-failed. What had begun when the run before was
 * killed and must not be repeated has failed only now, when the log was opened: the person has not seen that yet, so it
 * stays, and with it what was skipped for its sake.
 */
export function keptOf(
  { state }: Drover,
  { matched }: Matching,
  { retriesFailed, openedAt }: { readonly retriesFailed: boolean; readonly openedAt: number },
): Kept {
  const [ids, bad, unwanted] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { id, phase, needs } of matched) {
    const record = state.tasks.get(id as never);
    const isUnseen = record?.requirements.onLoss === "fail" && (record.end?.at ?? 0) >= openedAt;
    const isUnwanted =
      phase === "skipped" &&
      needs.every((need) => ids.has(need)) &&
      (record?.end?.error?.startsWith(IF_REASON) === true || needs.some((need) => unwanted.has(need)));
    const staysBad =
      !retriesFailed || isUnseen || isUnwanted || (phase === "skipped" && needs.some((need) => bad.has(need)));
    if (phase === null || (isBad(phase) ? !staysBad : phase !== "done")) continue;
    ids.add(id);
    if (isUnwanted) unwanted.add(id);
    else if (isBad(phase)) bad.add(id);
  }
  return { ids, unwanted };
}

export function rowOf({ task, id, phase }: Matched, { state }: Drover, kept: Kept): Row {
  const record = state.tasks.get(id as never);
  const isKept = kept.ids.has(id);
  const isUnwanted = kept.unwanted.has(id);
  const end = record?.end ?? null;
  return newRow({
    name: task.name,
    id,
    maxAttempts: task.rules.attempts,
    maxRounds: task.rules.maxRounds ?? null,
    hasWorktree: task.work.worktree !== null,
    round: roundOf(record?.extra?.loop?.rounds.length ?? 0, phase, isKept),
    attempt: record?.attempts ?? 0,
    isBefore: isUnwanted || (isKept && phase === "done"),
    state: isKept ? (phase as RowState) : phase === "parked" ? "parked" : "waiting",
    tookMs: isKept && end !== null && record !== undefined && record.startedAt >= 0 ? end.at - record.startedAt : null,
    why: isKept ? (end?.error ?? "") : phase === "parked" ? (record?.extra?.approval?.question ?? "") : "",
    isUnwanted,
  });
}

/** The round of its loop in which it goes on; one that ended and is tried again begins anew. */
function roundOf(ended: number, phase: string | null, isKept: boolean): number {
  if (phase !== null && hasEnded(phase)) return isKept ? ended : 0;
  return ended === 0 ? 0 : ended + 1;
}

/** Ended by itself, and not well. What was cancelled was only no part of an earlier run. */
const isBad = (phase: string): boolean => phase === "failed" || phase === "skipped";

/** Makes the log hold what the plan says, before anything starts. */
export async function bringInLine(
  drover: Drover,
  { matched, strays }: Matching,
  { plan, observer }: { readonly plan: PlanFile; readonly observer: { noted(text: string): void } },
  kept: Kept,
): Promise<void> {
  await drover.resume();
  // Those that wait for others first, or the end of one would be the end of the next before we come to it.
  for (const id of strays.toReversed()) await drover.cancel(id, { reason: "it is no part of this run" });
  const asked = matched.map(async (one) => {
    // That no worker is here yet is how it should be: nothing starts before all of it is in the log.
    if (one.phase === null)
      return ((await drover.submit(bodyOf(one, plan))).warnings ?? []).filter(({ type }) => type !== "no-workers");
    if (one.phase === "cancelled" || (isBad(one.phase) && !kept.ids.has(one.id))) await drover.retry(one.id);
    return [];
  });
  for (const [index, warnings] of (await Promise.all(asked)).entries())
    for (const warning of warnings)
      observer.noted(`${matched[index]?.task.name}: ${warningText(warning as Record<string, unknown>)}`);
}

function warningText({ type, detail, asked, given }: Record<string, unknown>): string {
  if (type === "priority-clamped") return `its priority ${asked} became ${given}, the most urgent its project allows`;
  return typeof detail === "string" ? detail : String(type);
}

/** What the engine needs to know; what the command is stays in the plan. */
function bodyOf({ task, id, needs }: Matched, plan: PlanFile): TaskBody {
  const { rules } = task;
  const { agent, project, type, priority, locks, provider, timeoutMs, attempts, tokens, maxRounds, approval, wait } =
    rules;
  return {
    id,
    agentId: agent,
    action: task.name.slice(0, 1024),
    project,
    type,
    needs,
    locks,
    params: { plan: plan.name, task: task.name },
    capabilities: [task.work.worktree === null ? IN_PLACE : IN_WORKTREE],
    maxAttempts: attempts,
    onDependencyFailure: rules.onDependencyFailure,
    ...present({ outputs: task.work.outputs, onLoss: rules.onLoss, estimatedTokens: tokens }),
    ...present({ priority, provider, timeoutMs, approval, wait }),
    ...(maxRounds === undefined ? {} : { loop: { ...present({ until: task.work.until }), max: maxRounds } }),
  };
}

/** What the log of an earlier run has, without touching it. */
export async function knownBefore(data: string): Promise<Known[]> {
  if (!existsSync(data)) return [];
  const log = await openSqliteLog({ directory: data, readOnly: true });
  try {
    const { state } = await recover(log);
    return [...knownIn({ state })];
  } finally {
    await log.close();
  }
}

/** Whether another process has this log open. One that cannot be read at all is in use by none. */
export async function isInUse(data: string): Promise<boolean> {
  try {
    const log = await openSqliteLog({ directory: data });
    await log.close();
    return false;
  } catch (error) {
    return error instanceof LogFailure && error.code === "locked";
  }
}

/** Whether a log could be there: the nearest thing above it, or it itself, is a directory. */
function isPlaceForLog(data: string): boolean {
  let at = data;
  while (!existsSync(at) && at !== dirname(at)) at = dirname(at);
  return statSync(at, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** What went wrong with the log, for people; null if it was something else. */
export function logProblem(error: unknown, data: string): CliProblem | null {
  if (error === null || (error instanceof LogFailure && error.code === "locked")) {
    const message = `this plan is running already: its log ${data} is in use by another process`;
    const hint = "wait for it, or stop it; another plan needs another name: (or --data)";
    return new CliProblem({ message, code: "locked", exit: EXIT.broken, hint, retryable: true });
  }
  if (!(error instanceof LogFailure) && !(error instanceof DroverError)) return null;
  const hint = isPlaceForLog(data)
    ? "what was done is in the log; see that it can be written, then run the same command again"
    : "nothing has run; --data names the directory of the log, and it is made if it is missing";
  return new CliProblem({ message: `${data}: ${error.message}`, code: error.code, exit: EXIT.broken, hint });
}
