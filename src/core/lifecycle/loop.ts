/**
 * Loops: a task that runs again until its work is good, so often at most.
 *
 * A worker says of a round that it was not enough, with a note for the next. The task goes back to the queue as its
 * next iteration, with the age it has and the penalty of a retry, and waits for the worker that has its files for as
 * long as affinity waits. A round is no failure: own failures, losses, the deadline and what is spent count over all
 * rounds. What a loop has done follows from the log alone.
 */
import type { Instant, Pin } from "../base/brand.ts";
import { cutError } from "../base/error-text.ts";
import { neededBy } from "../fleet/placement.ts";
import { offers } from "../fleet/shape.ts";
import type { AttemptReport } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { Round } from "../model/extra.ts";
import type { ReadonlyAttempt, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { Attempt } from "../model/state.ts";
import { usedBy } from "../turn/budget.ts";
import { failed } from "./loss.ts";

/** What is kept of the note of a round that is not the last. */
const OLD_NOTE_MAX = 200;

/** A round was not enough. Without a loop that is a mistake which another attempt would make again. */
export function endRound(state: ReadonlyState, attempt: ReadonlyAttempt, report: AttemptReport, now: Instant): Event[] {
  const { task, number } = attempt;
  const { tokens } = report;
  const loop = task.extra?.loop ?? null;
  if (loop === null) return [failed(attempt, tokens, "its worker answered again, and it has no loop", now)];
  const note = cutNote(report.note ?? null);
  const pin = pinToLast(state, task);
  const ended: Event = { kind: "round-ended", at: now, task: task.id, attempt: number, tokens, note, pin };
  const rounds = loop.rounds.length + 1;
  if (rounds < loop.max) return [ended];
  const said = `the loop ended after ${rounds === 1 ? "1 round" : `${rounds} rounds`}`;
  const reason = cutError(note === null ? said : `${said}: ${note}`);
  const end = { attempt: null, tokens: null, reason, expired: false, stopBy: null };
  return [ended, { kind: "task-failed", at: now, task: task.id, ...end }];
}

const cutNote = (note: string | null): string | null => (note === null || note === "" ? null : cutError(note));

/** The worker that ran it last has its files and its session: it is waited for under any strategy. */
export function pinToLast(state: ReadonlyState, task: ReadonlyTask): Pin | null {
  if (task.lastWorker === null || state.config.scheduler.placement.affinityWait === 0) return null;
  const worker = state.fleet.byId.get(task.lastWorker);
  return worker !== undefined && offers(worker, neededBy(state, task)) ? worker.id : null;
}

/** Of an attempt that has settled. */
export function noteRound(attempt: Attempt, outcome: Round["outcome"], note: string | null): void {
  const { task, number, known } = attempt;
  const loop = task.extra?.loop ?? null;
  if (loop === null) return;
  const before = loop.rounds.at(-1);
  if (before !== undefined) before.note = clipped(before.note);
  const iteration = task.iteration + task.ownFailures;
  const said = task.extra?.attempts?.at(-1);
  const usage = said?.attempt === number ? said.usage : null;
  loop.rounds.push({ iteration, attempt: number, outcome, note, tokens: known ? usedBy(attempt) : null, usage });
}

const clipped = (note: string | null): string | null =>
  note === null || note.length <= OLD_NOTE_MAX ? note : `${note.slice(0, OLD_NOTE_MAX - 1).toWellFormed()}…`;
