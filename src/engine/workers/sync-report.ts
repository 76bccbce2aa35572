/**
 * What a sync reports, turned into commands: which attempts the worker runs, what it offers, and that it is back.
 *
 * Naming an attempt makes it running. One that was running and is no longer named is queued again at once; so is one
 * that the worker has room for, that its answers have named for several leases, and that it still does not name.
 */

import type { WorkerId } from "../../core/base/index.ts";
import type { Attempt, Command, Task, Worker, WorkerSettings } from "../../core/model/index.ts";
import type { AttemptRef, RunningReport, SyncBody } from "../../protocol/index.ts";
import { countTokens } from "../permits/local-permits.ts";
import { blank } from "../tasks/handler-outcome.ts";
import { accepted } from "../writer/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import { keyOf } from "./sync-answer.ts";
import type { SyncPolls } from "./sync-polls.ts";

/** How many leases an attempt may stay unnamed by a worker that names what it runs. */
const LEASES_UNNAMED_MAX = 3;

const must = (writer: Writer, command: Command): unknown => accepted(writer.execute(command));

type Parts = { readonly writer: Writer; readonly polls: SyncPolls; readonly progress: Map<string, unknown> };

/** The attempts that the worker says it runs. Answers those that it runs and does not hold. */
export function applyRunning(parts: Parts, worker: Worker, running: readonly RunningReport[]): AttemptRef[] {
  const { writer, polls, progress } = parts;
  const named = new Set<Attempt>();
  const stray: AttemptRef[] = [];
  for (const { taskId, attempt: number, ...more } of running) {
    const attempt = writer.state.tasks.get(taskId as Task["id"])?.attempt ?? null;
    if (attempt === null || attempt.number !== number || attempt.worker.id !== worker.id) {
      stray.push({ taskId, attempt: number });
      continue;
    }
    named.add(attempt);
    const task = attempt.task.id;
    if (attempt.state === "assigned") must(writer, { type: "start-attempt", task, attempt: number });
    if (more.progress !== undefined) progress.set(taskId, more.progress);
    if (more.usage !== undefined)
      must(writer, { type: "report-usage", task, attempt: number, tokens: countTokens(more.usage) });
  }
  const hasRoom = named.size < worker.offered;
  for (const attempt of [...worker.attempts]) {
    if (named.has(attempt)) continue;
    if (attempt.state === "assigned" && !(hasRoom && isDeclined(parts, attempt))) continue;
    // One that must stop may have been taken back before it was ever named.
    if (attempt.startedAt < 0 && attempt.state === "stopping" && !polls.wasNotified(worker.id, keyOf(attempt)))
      continue;
    must(writer, { type: "lose-attempt", task: attempt.task.id, attempt: attempt.number });
  }
  return stray;
}

/** Attempts that never reached the worker, whatever its syncs have named: they are queued again at no cost. */
export function returnUnbegun(writer: Writer, worker: Worker, unbegun: readonly AttemptRef[]): void {
  for (const { taskId, attempt: number } of unbegun) {
    const attempt = writer.state.tasks.get(taskId as Task["id"])?.attempt;
    if (attempt?.number !== number || attempt.worker !== worker) continue;
    must(writer, { type: "return-attempt", task: attempt.task.id, attempt: number });
  }
}

/** Its answers have said it again and again, it has room, names what it runs, and does not name this. */
function isDeclined({ writer, polls }: Parts, attempt: Attempt): boolean {
  const forMs = polls.notifiedForMs(attempt.worker.id, keyOf(attempt));
  return forMs !== null && forMs >= writer.state.config.workers.lease * LEASES_UNNAMED_MAX;
}

/** A worker need not say that it runs something; its time is over all the same, counted from its assignment. */
export function endOverdue(writer: Writer, worker: Worker): void {
  if (worker.attempts.size > worker.offered) return;
  for (const { state, task, number, assignedAt } of [...worker.attempts]) {
    const { timeoutMs } = task.requirements;
    if (state !== "assigned" || timeoutMs === null) continue;
    if (writer.now() < assignedAt + timeoutMs + writer.state.config.workers.lease) continue;
    const report = { ...blank({ task: task.id, attempt: number, tokens: null }), outcome: "failed" as const };
    must(writer, { type: "finish-attempt", report: { ...report, error: `timed out after ${timeoutMs} ms` } });
  }
}

/** What it offers now. */
export function applyOffer(writer: Writer, worker: Worker, sync: SyncBody): void {
  const { want, capabilities, resources, note } = sync;
  const slots = want === undefined ? worker.offered : Math.min(worker.offered, worker.attempts.size + want);
  const room = { cpu: resources?.cpuMillicores ?? null, memory: resources?.memoryBytes ?? null };
  const settings: WorkerSettings = {
    ...settingsOf(worker),
    slots: Math.max(1, slots),
    status: statusFor(worker, sync, slots),
    note: note === undefined || note === "" ? null : note.toWellFormed(),
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(resources === undefined ? {} : room),
  };
  must(writer, { type: "change-worker", worker: worker.id, settings });
}

/** A worker that drains goes on draining until it joins again; one that wants nothing and has nothing has no slot. */
function statusFor({ status }: Worker, sync: SyncBody, slots: number): WorkerSettings["status"] {
  if (status === "draining") return "draining";
  if (slots === 0) return "overloaded";
  return sync.status ?? "ready";
}

/** It was given up and is there after all: the same worker, without the attempts it held. */
export function comeBack(writer: Writer, worker: Worker, drained: ReadonlySet<WorkerId>): void {
  const { id, kind, session, target, takes } = worker;
  const status = drained.has(id) ? "draining" : "ready";
  const settings: WorkerSettings = { ...settingsOf(worker), slots: worker.offered, status };
  must(writer, { type: "join-worker", worker: id, kind, session, settings, target, takes });
}

export function settingsOf(worker: Worker): WorkerSettings {
  const { slots, capabilities, cpu, memory, zone, status, note } = worker;
  const orNull = (room: number): number | null => (room === Number.POSITIVE_INFINITY ? null : room);
  const shown = status === "unreachable" ? "ready" : status;
  return { slots, capabilities, cpu: orNull(cpu), memory: orNull(memory), zone, status: shown, note };
}
