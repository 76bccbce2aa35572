/**
 * What a worker token may speak of: its own session.
 *
 * All workers of a fleet may have the same token, and its ids, tasks and permits can be guessed or seen. What only the
 * worker itself knows is the session that joining gave it. So a worker token says it in every report: syncs, logs,
 * permits, its leave. An admin need not: an admin may send any worker away.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { State } from "../../core/model/index.ts";
import { badInput } from "../../engine/writer/index.ts";
import { type Caller, forbidden } from "../../http/index.ts";
/** Throws if a worker token does not say as whom it speaks. */
export function checkSaid({ role }: Caller, session: string | undefined): void {
  if (role === "worker" && session === undefined)
    throw badInput("session", undefined, "the session that joining gave, since a worker token speaks for its own only");
}

/** The session that runs an attempt, null if none does. */
export function sessionOf(state: State, task: string | undefined, attempt: number | undefined): string | null {
  const running = task === undefined ? null : (state.tasks.get(task as TaskId)?.attempt ?? null);
  return running === null || running.number !== attempt ? null : running.worker.session;
}

/** Throws unless a call that a worker token asks for is of an attempt that its session runs; or of no task. */
export function checkCall(
  state: State,
  caller: Caller,
  { taskId, attempt, session }: { taskId?: string; attempt?: number; session?: string },
): void {
  checkSaid(caller, session);
  if (caller.role !== "worker") return;
  if (taskId !== undefined && sessionOf(state, taskId, attempt) !== session)
    throw forbidden(`attempt ${attempt} of ${taskId} does not run under this session`, { field: "session" });
  if (taskId === undefined && !isJoined(state, session))
    throw forbidden("no worker has joined under this session", { field: "session" });
}

const isJoined = (state: State, session: string | undefined): boolean =>
  state.fleet.order.some((worker) => worker.session === session);
