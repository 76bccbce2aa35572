/**
 * What a task is tied to: what it waits for, and what waits for it, one step in each direction.
 *
 * Of one whose record has expired the state knows its parent alone. What it needed still stands in its body, as far as
 * the log has it; who needed it stands in theirs, and is not looked for: there may be a million of them.
 */
import type { TaskId } from "../../core/base/index.ts";
import { items } from "../../core/collections/index.ts";
import type { State } from "../../core/model/index.ts";
import { LINKS_MAX, type LinksQuery, type TaskLink, type TaskLinks } from "../../protocol/index.ts";
import { DroverError, refused } from "../base/drover-error.ts";
import type { TaskApi } from "../tasks/task-api.ts";

/** The links of a task, with what is read from the log where its record has expired. */
export async function readLinks(
  drover: { readonly state: State } & Pick<TaskApi, "task">,
  id: TaskId,
  isSeen: (id: TaskId) => boolean,
  query: LinksQuery = {},
): Promise<TaskLinks> {
  const needs = drover.state.tombstones.has(id) ? await neededBy(drover, id) : [];
  return linksOf(drover.state, id, isSeen, query, needs);
}

async function neededBy(drover: Pick<TaskApi, "task">, id: TaskId): Promise<readonly TaskId[]> {
  try {
    const { needs = [] } = await drover.task(id);
    return [...new Set(Array.isArray(needs) ? needs : Object.values(needs))] as TaskId[];
  } catch (error) {
    if (error instanceof DroverError && error.code === "damaged") return [];
    throw error;
  }
}

type Linked = readonly [kind: TaskLink["kind"], id: TaskId];

/**
 * A task that is forgotten in full ended long ago and is left out; `isSeen` says which others are. Of ten thousand that
 * wait for one task a part is listed, and the others are only counted.
 */
export function linksOf(
  state: State,
  id: TaskId,
  isSeen: (id: TaskId) => boolean,
  { limit = LINKS_MAX, upSkip = 0, downSkip = 0 }: LinksQuery = {},
  needsOnceKnown: readonly TaskId[] = [],
): TaskLinks {
  const { tasks, tombstones, children } = state;
  const task = tasks.get(id);
  const stone = tombstones.get(id);
  if (task === undefined && stone === undefined) throw refused({ type: "task-unknown", task: id });
  function* above(): Generator<Linked> {
    const parent = task?.links?.parent ?? stone?.parent ?? null;
    if (parent !== null) yield ["parent", parent];
    for (const other of task === undefined ? needsOnceKnown : (task.links?.needs ?? [])) yield ["need", other];
  }
  function* below(): Generator<Linked> {
    const born = children.get(id);
    if (born !== undefined) for (const one of items(born)) yield ["child", one.id];
    // A child that waits for its parent stands among its dependents too.
    for (const one of task?.links?.dependents ?? []) if (one.links?.parent !== id) yield ["dependent", one.id];
  }
  function listed(all: Iterable<Linked>, skip: number): { list: TaskLink[]; total: number } {
    const list: TaskLink[] = [];
    let total = 0;
    for (const [kind, other] of all) {
      const found = tasks.get(other) ?? tombstones.get(other);
      if (found === undefined || !isSeen(other)) continue;
      if (total >= skip && list.length < limit) list.push({ taskId: other, state: found.phase, kind });
      total++;
    }
    return { list, total };
  }
  const behind = ({ total }: { total: number }, skip: number): number => Math.max(0, total - skip - limit);
  const [up, down] = [listed(above(), upSkip), listed(below(), downSkip)];
  const omitted = behind(up, upSkip) + behind(down, downSkip);
  const totals = { upTotal: up.total, downTotal: down.total };
  return { taskId: id, up: up.list, down: down.list, ...totals, ...(omitted === 0 ? {} : { omitted }) };
}
