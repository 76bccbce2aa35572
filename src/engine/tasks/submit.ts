/**
 * One task is submitted: decided, applied, and answered.
 *
 * What is turned away for want of room is remembered for a while though it never enters the log.
 */

import { type Instant, type Refusal, sentence, type TaskId } from "../../core/base/index.ts";
import { type Decided, type Decision, hasEnded, type Task, type Warning } from "../../core/model/index.ts";
import { isThrottling } from "../../core/task/index.ts";
import { countAhead } from "../../core/turn/index.ts";
import type { Submitted } from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import { type DroverError, refused } from "../writer/drover-error.ts";
import type { ArtifactSource } from "./artifact-source.ts";
import { askWhetherThere } from "./artifact-watch.ts";
import type { TaskSources } from "./read-tasks.ts";
import type { RejectedCounts } from "./rejected-counts.ts";
import type { ReadTask } from "./task-body.ts";

export type SubmitParts = TaskSources & { readonly artifacts: ArtifactSource; readonly rejections: RejectedCounts };

/** Whether the input artifact is there already is part of what is decided. */
export async function lookForArtifact({ artifacts }: SubmitParts, read: ReadTask): Promise<ReadTask> {
  const { artifact } = read.submission;
  if (artifact === null) return read;
  artifacts.check(artifact);
  if (!(await askWhetherThere(artifacts.exists, artifact))) return read;
  return { ...read, submission: { ...read.submission, artifactReady: true } };
}
/** Decides a submit now; the answer may leave when it is durable. What found no room is kept unless told otherwise. */
export function submitRead(parts: SubmitParts, read: ReadTask, isKept = true): Submitted | DroverError {
  const decided = decideNow(parts, read);
  if (!decided.ok) return isKept ? turnAway(parts, read, decided.failure) : refused(decided.failure);
  const { id, warnings } = decided.value;
  return answerFor(parts, id as TaskId, takeIn(parts, read, decided.value), warnings);
}

export const decideNow = ({ writer }: SubmitParts, { submission, text }: ReadTask, at?: Instant): Decided =>
  writer.execute({ type: "submit-task", submission }, text, at);

/** The task that a submit was decided to be; the body of a new one is kept at hand. */
export function takeIn(
  { writer, bodies }: SubmitParts,
  { text, plain }: ReadTask,
  { id, repeated }: Decision,
): Task | undefined {
  const task = writer.state.tasks.get(id as TaskId);
  if (task !== undefined && repeated !== true && !hasEnded(task)) bodies.keep(task.seq, text, plain);
  return task;
}

/** What found no room is remembered for a while, under an id to ask by. */
export function turnAway(
  { writer, rejected, rejections }: SubmitParts,
  { submission, text }: ReadTask,
  failure: Refusal,
): DroverError {
  if (!isForWantOfRoom(failure)) return refused(failure);
  const turnedAway = rejected.add({ submission, text, error: sentence(failure) }, writer.now());
  rejections.count(submission.agent);
  return refused(failure, { taskId: turnedAway });
}

const isForWantOfRoom = (refusal: Refusal): boolean =>
  refusal.type === "queue-full" || refusal.type === "backpressure" || refusal.type === "no-workers";

export function answerFor(
  { writer }: SubmitParts,
  id: TaskId,
  task: Task | undefined,
  warnings: readonly Warning[] = [],
): Submitted {
  const { state } = writer;
  const throttles = isThrottling(state);
  if (task !== undefined && task.group !== null && !throttles && warnings.length === 0) {
    const position = countAhead(state, task, state.at) + 1;
    return { taskId: id, state: task.phase, position, createdAt: isoTime(task.createdAt) };
  }
  const stone = state.tombstones.get(id);
  return {
    taskId: id,
    state: task?.phase ?? stone?.phase ?? "done",
    ...(task === undefined || task.group === null ? {} : { position: countAhead(state, task, state.at) + 1 }),
    createdAt: isoTime(task?.createdAt ?? stone?.createdAt ?? writer.now()),
    ...(throttles ? { throttle: true } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}
