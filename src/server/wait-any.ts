/**
 * One wait for any of many tasks, so that whoever waits for a thousand of them holds one connection.
 *
 * Each is answered as a wait for it alone would be: read when it has ended, or refused where it is not there or not the
 * caller's. Whoever waits for many asks again for those that are left, and asking costs by the number of them; so the
 * answer is held back a moment for others that end just after the first, the longer the more there are. Whoever waits
 * for few is answered at once. A wait counts by the number of its tasks: no token takes all the room there is.
 */
import type { TaskId } from "../core/base/index.ts";
import { hasEnded } from "../core/model/index.ts";
import { asText, createSharedSlots, holderOf, isScoped, ServerRefusal } from "../http/index.ts";
import { type BulkItem, WAIT_MS_DEFAULT } from "../protocol/index.ts";
import { checkTask } from "./access/token-scope.ts";
import { type BulkParts, refusalOf } from "./bulk.ts";
import type { Deps, Exchange, Handlers } from "./handlers/handler.ts";
import { untilOver } from "./handlers/tasks.ts";

/** Characters: what would take an answer beyond this is left for the next time. */
const ANSWER_MAX = 1024 * 1024;
/** Of the tasks that are waited for; in whole milliseconds, since no timer takes less. */
const HELD_BACK_MS_EACH = 0.01;
/** Tasks that are waited for so, counted for each who waits: all of them may be left in the turn in which one ends. */
const WAITED_MAX = 200_000;
type Parts = Pick<BulkParts, "problemOf" | "onBug">;
type WaitAnyParts = Parts & { readonly rest: (ms: number) => Promise<unknown>; readonly waitedMax?: number };

export function waitAnyHandler(deps: Deps, parts: WaitAnyParts): Handlers<"waitAny"> {
  const { drover } = deps;
  const waited = createSharedSlots(parts.waitedMax ?? WAITED_MAX);
  const isOver = (id: string): boolean => {
    const task = drover.state.tasks.get(id as TaskId);
    return task === undefined || hasEnded(task);
  };
  async function firstOf(own: readonly string[], timeoutMs: number, exchange: Exchange): Promise<string | null> {
    const giveBack = waited.take(holderOf(exchange.caller, exchange.request), { slots: own.length });
    if (giveBack === null)
      throw new ServerRefusal("overloaded", `${waited.count()} tasks are waited for already; try again later`);
    try {
      return await untilOver(deps, exchange, timeoutMs, (signal) => drover.firstEnded(own, { signal }));
    } finally {
      giveBack();
    }
  }
  return {
    async waitAny({ body: { ids: given, timeoutMs = WAIT_MS_DEFAULT } }, exchange) {
      const { own, refused } = await sorted(deps, parts, [...new Set(given)], exchange);
      if (refused.size === 0 && timeoutMs > 0 && !own.some(isOver)) {
        const first = await firstOf(own, timeoutMs, exchange);
        const heldBackMs = Math.floor(own.length * HELD_BACK_MS_EACH);
        if (first !== null && heldBackMs > 0) await parts.rest(heldBackMs);
      }
      const texts = [...refused].map(([id, item]) => JSON.stringify({ id, ...item }));
      let size = 0;
      for (const id of own) {
        if (!isOver(id)) continue;
        const text = JSON.stringify({ id, ...(await endOf(deps, parts, id)) });
        size += text.length;
        if (size > ANSWER_MAX && texts.length > 0) break;
        texts.push(text);
      }
      return asText(`{"answers":[${texts.join(",")}]}`);
    },
  };
}

/** Those the caller may wait for, and why not the others. */
async function sorted(
  { drover }: Deps,
  parts: Parts,
  ids: readonly string[],
  { caller }: Exchange,
): Promise<{ readonly own: readonly string[]; readonly refused: ReadonlyMap<string, BulkItem> }> {
  const refused = new Map<string, BulkItem>();
  if (!isScoped(caller)) return { own: ids, refused };
  for (const id of ids)
    try {
      await checkTask(drover, caller, id);
    } catch (error) {
      refused.set(id, refusalOf(parts, error, "waitAny"));
    }
  return { own: ids.filter((id) => !refused.has(id)), refused };
}

async function endOf({ drover }: Deps, parts: Parts, id: string): Promise<BulkItem> {
  try {
    return { status: 200, body: await drover.task(id) };
  } catch (error) {
    return refusalOf(parts, error, "waitAny");
  }
}
