/**
 * The calls about groups. A token that is scoped to projects or an agent sees the part of a group that is its own, as
 * if
 * that were all of it; a group without such a part is not found.
 */
import type { GroupCalls } from "../../protocol/calls/index.ts";
import { WAIT_MS_DEFAULT } from "../../protocol/index.ts";
import { ownFilter } from "../access/token-scope.ts";
import type { Deps, Handlers } from "./handler.ts";
import { untilOver } from "./tasks.ts";

export function groupHandlers(deps: Deps): Handlers<keyof GroupCalls> {
  const { drover } = deps;
  return {
    group: ({ params }, { caller }) => drover.group(params.id, ownFilter(caller, {})),
    waitGroup: async ({ params, query }, exchange) => {
      const own = ownFilter(exchange.caller, {});
      const view = await drover.group(params.id, own);
      const waitMs = query.timeoutMs ?? WAIT_MS_DEFAULT;
      if (view.endedAt !== undefined || waitMs === 0) return view;
      const waited = await untilOver(deps, exchange, waitMs, (signal) =>
        drover.waitGroup(params.id, { ...own, signal }),
      );
      return waited ?? drover.group(params.id, own);
    },
    cancelGroup: ({ params, body }, { caller }) => drover.cancelGroup(params.id, { ...ownFilter(caller, {}), ...body }),
    retryGroup: ({ params }, { caller }) => drover.retryGroup(params.id, ownFilter(caller, {})),
  };
}
