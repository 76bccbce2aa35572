/**
 * What a server has to know as a node of a cluster when a call comes in: whether to answer it, or to send it on. And
 * all that goes from this node to others.
 */
import type { IncomingMessage } from "node:http";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { ServerRefusal, tokenIn } from "../../http/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { FORWARDED_HEADER } from "../../protocol/wire/index.ts";
import type { Clock } from "../../std/index.ts";
import { createAsking } from "./asking.ts";
import { createElsewhere, type Elsewhere } from "./elsewhere.ts";
import { startFileCopies } from "./file-copies.ts";
import { createForwarding, type Forwarding } from "./forward.ts";
import { createForwardRoom, type ForwardLimits } from "./forward-room.ts";

export type ClusterSide = Forwarding &
  Elsewhere & {
    /** Whether this node does not decide: it follows, or its lead is not sure. */
    follows(): boolean;
    /**
     * Whether the leader may know a caller that is refused here: the token of an attempt that has just begun. It says
     * so itself, and nothing of the request is read before.
     */
    knowsBetter(request: IncomingMessage, refusal: unknown): boolean;
    /** What is under way is answered 503, and its connections end. */
    stop(): Promise<void>;
  };
export type SideDeps = {
  readonly node: DroverNode;
  readonly drover: Drover;
  readonly clock: Clock;
  /** `silenceMs`: a caller that takes nothing of its answer for so long is gone. */
  readonly limits: ForwardLimits & { readonly silenceMs: number };
  readonly onWarning: (message: string) => void;
};

export function startClusterSide(deps: SideDeps): ClusterSide {
  const { node, limits } = deps;
  const copies = startFileCopies(deps);
  const asking = createAsking({ ...deps, silenceMs: limits.silenceMs });
  const room = createForwardRoom(limits);
  const parts = { ...deps, asking, copies, room };
  // A leader that hung may have been followed by another, and what it knows is old.
  const follows = (): boolean => !node.life().leads();
  return {
    ...createForwarding(parts),
    ...createElsewhere(parts),
    follows,
    knowsBetter({ headers }, refusal) {
      if (!(refusal instanceof ServerRefusal) || refusal.code !== "unauthorized") return false;
      const isOfAttempt = ATTEMPT_TOKEN_FORM.test(tokenIn(headers.authorization) ?? "");
      return isOfAttempt && follows() && headers[FORWARDED_HEADER] === undefined;
    },
    async stop() {
      asking.stop();
      await copies.stop();
    },
  };
}
