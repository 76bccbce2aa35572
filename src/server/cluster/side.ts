/**
 * What a server has to know as a node of a cluster when a call comes in: whether to answer it, or to send it on. And
 * all that goes from this node to others.
 */
import type { IncomingMessage } from "node:http";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { ServerRefusal, tokenIn } from "../../http/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { FORWARD_SEAL_HEADER, FORWARDED_HEADER } from "../../protocol/wire/index.ts";
import type { Clock } from "../../std/index.ts";
import { createAsking } from "./asking.ts";
import { createDoors } from "./doors.ts";
import { createElsewhere, type Elsewhere } from "./elsewhere.ts";
import { startFileCopies } from "./file-copies.ts";
import { createForwarding, type Forwarding } from "./forward.ts";
import { createForwardRoom, type ForwardLimits } from "./forward-room.ts";
import { askWordBy } from "./node-word.ts";
import { watchOwnAddress } from "./own-address.ts";
import { createPeers } from "./peers.ts";

export type ClusterSide = Forwarding &
  Elsewhere &
  Pick<DroverNode, "word"> & {
    /** Whether this node does not decide: it follows, or its lead is not sure. */
    follows(): boolean;
    /**
     * Whether the leader may know a caller that is refused here: the token of an attempt that has just begun. It says
     * so itself, and nothing of the request is read before.
     */
    knowsBetter(request: IncomingMessage, refusal: unknown): boolean;
    /** Looks whether this node, which listens there, is at the address that it tells the others. */
    checkAddress(listensAt: string): void;
    /** Whether another node of this cluster has sent it on, and has looked at the size of its body. */
    isSentOn(request: IncomingMessage): boolean;
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
  const peers = createPeers(deps.clock);
  const askWord = askWordBy(node, peers, deps.clock);
  const doors = createDoors({ ...deps, askWord });
  const copies = startFileCopies({ ...deps, doors });
  const asking = createAsking({ ...deps, silenceMs: limits.silenceMs });
  const room = createForwardRoom(limits);
  const parts = { ...deps, doors, asking, copies, room };
  let address: { stop(): void } | null = null;
  // A leader that hung may have been followed by another, and what it knows is old.
  const follows = (): boolean => !node.life().leads();
  return {
    ...createForwarding(parts),
    ...createElsewhere(parts),
    word: node.word,
    follows,
    knowsBetter({ headers }, refusal) {
      if (!(refusal instanceof ServerRefusal) || refusal.code !== "unauthorized") return false;
      const isOfAttempt = ATTEMPT_TOKEN_FORM.test(tokenIn(headers.authorization) ?? "");
      return isOfAttempt && follows() && headers[FORWARDED_HEADER] === undefined;
    },
    isSentOn({ headers }) {
      const { authorization, "content-length": length, [FORWARD_SEAL_HEADER]: seal } = headers;
      return seal !== undefined && node.isForwarded({ authorization, length }, seal);
    },
    checkAddress(listensAt) {
      address ??= watchOwnAddress({ ...deps, askWord, listensAt });
    },
    async stop() {
      address?.stop();
      peers.close();
      asking.stop();
      doors.stop();
      await copies.stop();
    },
  };
}
