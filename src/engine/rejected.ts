/**
 * Tasks that were turned away for want of room.
 *
 * They never enter the log, but for their number: a full system must not fill its disk with refusals. The last
 * thousand are kept in memory for `resultTtl`, so that a caller who asks what became of one gets an answer.
 */
import { isoTime, type TaskView } from "./task-view.ts";

const KEPT_MAX = 1000;

export type RejectedRing = {
  add(
    view: { readonly id: string | null; readonly agentId: string; readonly project: string; readonly error: string },
    at: number,
  ): string;
  find(id: string, now: number, ttl: number): TaskView | null;
};

export function createRejectedRing(): RejectedRing {
  const kept = new Map<string, { readonly view: TaskView; readonly at: number }>();
  let named = 0;
  return {
    add({ id, agentId, project, error }, at) {
      const taskId = id ?? `rej_${++named}`;
      kept.delete(taskId);
      kept.set(taskId, {
        view: { taskId, state: "rejected", attempt: 0, agentId, project, error, completedAt: isoTime(at) },
        at,
      });
      const [oldest] = kept.keys();
      if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
      return taskId;
    },
    find(id, now, ttl) {
      const entry = kept.get(id);
      return entry === undefined || entry.at + ttl <= now ? null : entry.view;
    },
  };
}
