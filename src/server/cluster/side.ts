/**
 * What a server has to know as a node of a cluster when a call comes in: whether to answer it, or to send it on.
 */
import type { IncomingMessage } from "node:http";
import type { DroverNode } from "../../engine/node/index.ts";
import { ServerRefusal, tokenIn } from "../../http/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { FORWARDED_HEADER } from "../../protocol/wire/index.ts";
import type { Forwarding } from "./forward.ts";

export type ClusterSide = Pick<Forwarding, "pass" | "elsewhere"> & {
  /** Whether another node decides, as far as is known. */
  follows(): boolean;
  /**
   * Whether the leader may know a caller that is refused here: the token of an attempt that has just begun. It says so
   * itself, and nothing of the request is read before.
   */
  knowsBetter(request: IncomingMessage, refusal: unknown): boolean;
};

export function clusterSide({ life }: Pick<DroverNode, "life">, { pass, elsewhere }: Forwarding): ClusterSide {
  const follows = (): boolean => life().role === "follower";
  return {
    pass,
    elsewhere,
    follows,
    knowsBetter({ headers }, refusal) {
      if (!(refusal instanceof ServerRefusal) || refusal.code !== "unauthorized") return false;
      const isOfAttempt = ATTEMPT_TOKEN_FORM.test(tokenIn(headers.authorization) ?? "");
      return isOfAttempt && follows() && headers[FORWARDED_HEADER] === undefined;
    },
  };
}
