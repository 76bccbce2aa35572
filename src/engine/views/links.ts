/**
 * What a task is tied to: what it waits for, and what waits for it, one step in each direction.
 */
import type { TaskId } from "../../core/base/index.ts";
import { items } from "../../core/collections/index.ts";
import type { State, Task } from "../../core/model/index.ts";
import { LINKS_MAX, type TaskLink, type TaskLinks } from "../../protocol/index.ts";
import { refused } from "../base/drover-error.ts";

/** A task that is forgotten in full ended long ago and is left out; `isSeen` says which others are. */
export function linksOf(state: State, id: TaskId, isSeen: (id: TaskId) => boolean): TaskLinks {
  const { tasks, tombstones, children } = state;
  const task = tasks.get(id);
  const stone = tombstones.get(id);
  if (task === undefined && stone === undefined) throw refused({ type: "task-unknown", task: id });
  const linked = (kind: TaskLink["kind"], other: TaskId): TaskLink[] => {
    const found = tasks.get(other) ?? tombstones.get(other);
    return found === undefined || !isSeen(other) ? [] : [{ taskId: other, state: found.phase, kind }];
  };
  const parent = task?.links?.parent ?? stone?.parent ?? null;
  const below = children.get(id);
  const born: readonly Task[] = below === undefined ? [] : [...items(below)];
  // A child that waits for its parent stands among its dependents too.
  const isBorn = new Set(born);
  const waiting = (task?.links?.dependents ?? []).filter((one) => !isBorn.has(one));
  const up = [
    ...(parent === null ? [] : linked("parent", parent)),
    ...(task?.links?.needs ?? []).flatMap((other) => linked("need", other)),
  ];
  const down = [
    ...born.flatMap((one) => linked("child", one.id)),
    ...waiting.flatMap((one) => linked("dependent", one.id)),
  ];
  const omitted = Math.max(0, up.length - LINKS_MAX) + Math.max(0, down.length - LINKS_MAX);
  return {
    taskId: id,
    up: up.slice(0, LINKS_MAX),
    down: down.slice(0, LINKS_MAX),
    ...(omitted === 0 ? {} : { omitted }),
  };
}
