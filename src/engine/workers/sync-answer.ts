/**
 * What the answer to a sync says: all that the worker should run and has not named yet, all that it must stop, and what
 * else concerns it. Committed events only.
 *
 * Everything an answer says has a key, under which the long polls remember it (sync-polls.ts).
 */

import type { Seq, WorkerId } from "../../core/base/index.ts";
import type { Attempt, Worker } from "../../core/model/index.ts";
import type { Assignment, AttemptRef, SyncAnswer } from "../../protocol/index.ts";
import { type BodyStore, DamagedBody, damagedReason } from "../tasks/body-store.ts";
import { blank } from "../tasks/handler-outcome.ts";
import { parseStored } from "../tasks/task-body.ts";
import { viewOf } from "../tasks/task-view.ts";
import type { Writer } from "../writer/writer.ts";
import type { SyncPolls } from "./sync-polls.ts";

/** What was said is said again after so long, if the worker goes on asking and does not act on it. */
const SAY_AGAIN_MS = 1000;
const DRAIN = "drain";

type Parts = {
  readonly writer: Writer;
  readonly bodies: BodyStore;
  readonly polls: SyncPolls;
  /** Tabs that were taken over, by the worker that had them. */
  readonly lostTabs: ReadonlyMap<WorkerId, ReadonlySet<string>>;
};

export function hasChanges({ writer, polls, lostTabs }: Parts, id: WorkerId, stray: readonly AttemptRef[]): boolean {
  const worker = writer.state.fleet.byId.get(id);
  if (worker === undefined) return true;
  const keys = keysFor(worker, dueFor(writer, worker), stray);
  if (keys.some((key) => !polls.wasNotified(id, key, SAY_AGAIN_MS))) return true;
  return [...(lostTabs.get(id) ?? [])].some((tab) => !polls.wasNotified(id, lossOf(tab)));
}

export async function answerFor(
  parts: Parts,
  worker: Worker,
  stray: readonly AttemptRef[],
  leaseUntil: string,
): Promise<Pick<SyncAnswer, "assignments" | "cancel" | "lost" | "drain">> {
  const due = dueFor(parts.writer, worker);
  const lost = [...(parts.lostTabs.get(worker.id) ?? [])];
  parts.polls.markNotified(worker.id, [...keysFor(worker, due, stray), ...lost.map(lossOf)]);
  const given = due.filter(({ state }) => state === "assigned");
  const assignments = await Promise.all(given.map((attempt) => assignmentOf(parts, attempt, leaseUntil)));
  const stopping = due.filter(({ state }) => state === "stopping").map(nameOf);
  return {
    assignments: assignments.filter((assignment) => assignment !== null),
    cancel: [...stopping, ...stray],
    ...(lost.length === 0 ? {} : { lost }),
    ...(worker.status === "draining" ? { drain: true as const } : {}),
  };
}

/** The attempts it should know of: those it has not named, and those it must stop. */
function dueFor(writer: Writer, worker: Worker): Attempt[] {
  const committed = writer.committedSeq();
  return [...worker.attempts].filter(({ state, task }) => state !== "running" && task.lastSeq <= committed);
}

/** Null if its body is damaged: the task has failed then. */
async function assignmentOf(
  { writer, bodies }: Parts,
  attempt: Attempt,
  leaseUntil: string,
): Promise<Assignment | null> {
  const { task, number } = attempt;
  const text = await soundText(bodies, task.seq as Seq);
  if (text !== null) {
    const { position: _, ...view } = viewOf(writer.state, task, parseStored(text), writer.now());
    return { ...nameOf(attempt), task: view, leaseUntil };
  }
  const report = { ...blank({ task: task.id, attempt: number, tokens: 0 }), error: damagedReason(task.seq) };
  writer.execute({ type: "finish-attempt", report: { ...report, outcome: "failed", permanent: true } });
  return null;
}

/** The text of a body; null if it is damaged. */
async function soundText(bodies: BodyStore, seq: Seq): Promise<string | null> {
  try {
    return await bodies.read(seq);
  } catch (error) {
    if (error instanceof DamagedBody) return null;
    throw error;
  }
}

const lossOf = (tab: string): string => `${tab} lost`;
const nameOf = ({ task, number }: Attempt): AttemptRef => ({ taskId: task.id, attempt: number });
export const keyOf = ({ task, number, state }: Attempt): string => `${task.id}#${number} ${state}`;

const keysFor = (worker: Worker, due: readonly Attempt[], stray: readonly AttemptRef[]): string[] => [
  ...due.map(keyOf),
  ...stray.map(({ taskId, attempt }) => `${taskId}#${attempt} stray`),
  ...(worker.status === "draining" ? [DRAIN] : []),
];
