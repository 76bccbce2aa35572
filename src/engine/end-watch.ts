/**
 * Who waits for a task to end.
 *
 * A promise per waiter, resolved when the end is durable. Waiting does not poll and does not keep the task
 * from expiring.
 */
import type { Event } from "../core/events.ts";
import { DroverError } from "./drover-error.ts";
import type { Applied } from "./writer.ts";

const WAITERS_MAX = 1_000_000;
/** The events with which a task ends. */
export type EndKind = "task-done" | "task-failed" | "task-cancelled" | "task-skipped";
const ENDS: ReadonlySet<string> = new Set<EndKind>(["task-done", "task-failed", "task-cancelled", "task-skipped"]);

export const isEnd = (event: Event): event is Extract<Event, { kind: EndKind }> => ENDS.has(event.kind);

export type EndWatch = {
  /** Resolves when the task ends, rejects when the signal fires or the engine stops. */
  wait(task: string, signal: AbortSignal | undefined): Promise<void>;
  onCommitted(batch: readonly Applied[]): void;
  stop(error: Error): void;
};

type Waiter = { resolve(): void; reject(reason: unknown): void };

export function createEndWatch(max: number = WAITERS_MAX): EndWatch {
  const waiting = new Map<string, Set<Waiter>>();
  let count = 0;
  let stopped: Error | null = null;

  function finish(task: string, act: (waiter: Waiter) => void): void {
    const waiters = waiting.get(task);
    if (waiters === undefined) return;
    waiting.delete(task);
    count -= waiters.size;
    for (const waiter of waiters) act(waiter);
  }

  return {
    wait(task, signal) {
      signal?.throwIfAborted();
      if (stopped !== null) throw stopped;
      if (count >= max) throw new DroverError("limit", `${max} callers wait for tasks already; end some first`);
      return new Promise((resolve, reject) => {
        const waiters = waiting.get(task) ?? new Set();
        const giveUp = (): void => {
          if (waiters.delete(waiter)) count--;
          if (waiters.size === 0) waiting.delete(task);
          reject(signal?.reason);
        };
        const waiter: Waiter = {
          resolve: () => {
            signal?.removeEventListener("abort", giveUp);
            resolve();
          },
          reject,
        };
        waiting.set(task, waiters.add(waiter));
        count++;
        signal?.addEventListener("abort", giveUp, { once: true });
      });
    },
    onCommitted(batch) {
      if (waiting.size === 0) return;
      for (const { event } of batch) {
        if (ENDS.has(event.kind) && "task" in event && event.task !== null)
          finish(event.task, (waiter) => waiter.resolve());
      }
    },
    stop(error) {
      stopped = error;
      for (const task of [...waiting.keys()]) finish(task, (waiter) => waiter.reject(error));
    },
  };
}
