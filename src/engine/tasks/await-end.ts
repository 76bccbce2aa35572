/**
 * Who waits for a task to end.
 *
 * One promise per task, shared by all who wait for it and resolved when the end is durable. Waiting does not poll and
 * does not keep the task from expiring. A caller that gives up leaves the others waiting. Who waits for any of many
 * tasks has one promise for all of them.
 */
import type { EndPhase, Event } from "../../core/model/index.ts";
import { DroverError } from "../base/drover-error.ts";
import type { Applied } from "../writer/group-commit.ts";

const WAITERS_MAX = 1_000_000;
type EndKind = Extract<Event["kind"], "task-done" | "task-failed" | "task-cancelled" | "task-skipped">;
/** The events with which a task ends, and what it is from then on. */
const ENDS: Readonly<Record<EndKind, EndPhase>> = {
  "task-done": "done",
  "task-failed": "failed",
  "task-cancelled": "cancelled",
  "task-skipped": "skipped",
};

export function isEnd(event: Event): event is Extract<Event, { kind: EndKind }> {
  const { kind } = event;
  return kind === "task-done" || kind === "task-failed" || kind === "task-cancelled" || kind === "task-skipped";
}

export type EndWatch = {
  /** Resolves with its final state when the task ends, rejects when the signal fires or the engine stops. */
  wait(task: string, signal: AbortSignal | undefined): Promise<EndPhase>;
  /** Resolves with the first of these tasks that ends; the same otherwise. */
  first(tasks: readonly string[], signal: AbortSignal | undefined): Promise<string>;
  /** Whether no caller waits. */
  isIdle(): boolean;
  onCommitted(batch: readonly Applied[]): void;
  stop(error: Error): void;
};

/** All who wait for one task. */
type Waiting = PromiseWithResolvers<EndPhase> & { count: number };
/** One who waits for any of many. */
type Watch = { readonly over: (task: string) => void; readonly fail: (error: unknown) => void };

export function createEndWatch(max: number = WAITERS_MAX): EndWatch {
  const waiting = new Map<string, Waiting>();
  const watched = new Map<string, Set<Watch>>();
  let count = 0;
  let stopped: Error | null = null;

  function checkRoom(more: number, signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (stopped !== null) throw stopped;
    if (count + more > max)
      throw new DroverError("overloaded", `${max} callers wait for tasks already; try again later`);
  }

  function join(task: string): Waiting {
    const known = waiting.get(task);
    if (known !== undefined) return known;
    const first: Waiting = { ...Promise.withResolvers<EndPhase>(), count: 0 };
    waiting.set(task, first);
    return first;
  }

  function unlessAborted(task: string, others: Waiting, signal: AbortSignal): Promise<EndPhase> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (waiting.get(task) !== others) return; // It has ended in this very moment.
        count--;
        if (--others.count === 0) waiting.delete(task);
        reject(signal.reason);
      };
      const stay = (): void => signal.removeEventListener("abort", giveUp);
      others.promise.then(resolve, reject).finally(stay);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  function enter(tasks: readonly string[], watch: Watch): void {
    count += tasks.length;
    for (const task of tasks) {
      const others = watched.get(task);
      if (others === undefined) watched.set(task, new Set([watch]));
      else others.add(watch);
    }
  }

  function leave(tasks: readonly string[], watch: Watch): void {
    count -= tasks.length;
    for (const task of tasks) {
      const others = watched.get(task);
      if (others?.delete(watch) === true && others.size === 0) watched.delete(task);
    }
  }

  return {
    wait(task, signal) {
      checkRoom(1, signal);
      const others = join(task);
      others.count++;
      count++;
      return signal === undefined ? others.promise : unlessAborted(task, others, signal);
    },
    first(tasks, signal) {
      checkRoom(tasks.length, signal);
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const giveUp = (): void => watch.fail(signal?.reason);
      const part = (): void => {
        leave(tasks, watch);
        signal?.removeEventListener("abort", giveUp);
      };
      const watch: Watch = {
        over(task) {
          part();
          resolve(task);
        },
        fail(error) {
          part();
          reject(error);
        },
      };
      enter(tasks, watch);
      signal?.addEventListener("abort", giveUp, { once: true });
      return promise;
    },
    isIdle: () => waiting.size === 0 && watched.size === 0,
    onCommitted(batch) {
      if (waiting.size === 0 && watched.size === 0) return;
      for (const { event } of batch) {
        if (!isEnd(event)) continue;
        for (const { over } of watched.get(event.task) ?? []) over(event.task);
        const ended = waiting.get(event.task);
        if (ended === undefined) continue;
        waiting.delete(event.task);
        count -= ended.count;
        ended.resolve(ENDS[event.kind]);
      }
    },
    stop(error) {
      stopped = error;
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
      for (const { fail } of new Set([...watched.values()].flatMap((watches) => [...watches]))) fail(error);
      count = 0;
    },
  };
}
