/**
 * One wait for any of many permits, so that a fleet of calls that queue at a gate holds one connection.
 *
 * It says which of them wait no more, and nothing else: what became of each is the answer to asking for it, with all
 * the rights and refusals of that call. So whatever a caller names, it learns no more here than there. The ticket of
 * each is kept in line meanwhile. As with tasks (server/wait-any.ts) the answer is held back a moment where there are
 * many, and a wait counts by the number of its permits.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { DroverError } from "../../engine/base/index.ts";
import { createSharedSlots, holderOf, ServerRefusal } from "../../http/index.ts";
import { WAIT_MS_DEFAULT } from "../../protocol/index.ts";
import type { OwnPermits } from "../access/permit-scope.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { untilOver } from "./tasks.ts";

const HELD_BACK_MS_EACH = 0.01;
/** Permits that are waited for so, counted for each who waits. */
const WAITED_MAX = 200_000;

type WaitPermitsOptions = { readonly waitedMax?: number; readonly rest?: (ms: number) => Promise<unknown> };

export function waitPermitsHandler(
  deps: Deps,
  own: Pick<OwnPermits, "check">,
  { waitedMax = WAITED_MAX, rest = elapse }: WaitPermitsOptions = {},
): Handlers<"waitPermits"> {
  const { permits } = deps.drover;
  const waited = createSharedSlots(waitedMax);

  async function firstOf(ids: readonly string[], timeoutMs: number, exchange: Exchange): Promise<void> {
    const giveBack = waited.take(holderOf(exchange.caller, exchange.request), { slots: ids.length });
    if (giveBack === null)
      throw new ServerRefusal("overloaded", `${waited.count()} permits are waited for already; try again later`);
    const decided = async (signal: AbortSignal): Promise<true> => {
      await permits.firstDecided(ids, { signal });
      return true;
    };
    try {
      const isDecided = (await untilOver(deps, exchange, timeoutMs, decided)) === true;
      const heldBackMs = Math.floor(ids.length * HELD_BACK_MS_EACH);
      if (isDecided && heldBackMs > 0) await rest(heldBackMs);
    } finally {
      giveBack();
    }
  }

  return {
    async waitPermits({ body: { ids: given, timeoutMs = WAIT_MS_DEFAULT, session } }, exchange) {
      const ids = [...new Set(given)];
      const isInLine = (id: string): boolean => permits.isWaiting(id) && isOwn(own, exchange, id, session);
      if (timeoutMs > 0 && ids.every(isInLine)) await firstOf(ids, timeoutMs, exchange);
      return { ids: ids.filter((id) => !isInLine(id)) };
    },
  };
}

function isOwn(own: Pick<OwnPermits, "check">, { caller }: Exchange, id: string, session: string | undefined): boolean {
  try {
    own.check(caller, id, session);
    return true;
  } catch (error) {
    if (error instanceof DroverError && error.code === "not_found") return false;
    throw error;
  }
}
