/**
 * With which word one node lets another in: that it knows the secret of their journal, for whom it asks, and when.
 *
 * Whoever can read the journal has the whole history anyhow, so the secret that lies there is the right to read a
 * replica, also for a node that is new and of which no log tells yet. A token is good for one node, in its present
 * process, and for a minute. Its time is that of the node that is to let it in, which says what time it has there to
 * whoever asks who it is (node-word.ts): the clocks of two machines need not agree, and no clock that is set matters.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { isRecord } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";
import type { NodeWord } from "./node-word.ts";

const MARK = "node.";
const GOOD_FOR_MS = 60_000;
const FORM = /^node\.([A-Za-z0-9_-]{1,2000})\.([0-9a-f]{64})$/;
const MOMENT = /^([0-9a-f]{16})-(\d{1,15})$/;

/** Lets in a node that has said who it is by `from`, at the one that has given that word. */
export function nodeToken(
  secret: string,
  from: string,
  { node: to, moment }: Pick<NodeWord, "node" | "moment">,
): string {
  const text = Buffer.from(JSON.stringify({ from, to, moment }), "utf8").toString("base64url");
  return `${MARK}${text}.${sealOf(secret, text).toString("hex")}`;
}

/** What a node has to know to let others in. */
export type NodeDoor = {
  /** What time it is here: a token for this node names it. */
  moment(): string;
  /** Whether a token lets a node of the same journal in, here and now. */
  isOpenedBy(token: string): boolean;
};

export function createNodeDoor(own: {
  readonly secret: string;
  readonly self: string;
  readonly clock: Pick<Clock, "elapsed">;
}): NodeDoor {
  const { secret, self, clock } = own;
  const process = randomBytes(8).toString("hex");
  const begunAt = clock.elapsed();
  const passed = (): number => Math.trunc(clock.elapsed() - begunAt);

  function isNow(moment: unknown): boolean {
    const [, of, at] = typeof moment === "string" ? (MOMENT.exec(moment) ?? []) : [];
    const ageMs = passed() - Number(at);
    return of === process && ageMs >= 0 && ageMs <= GOOD_FOR_MS;
  }
  return {
    moment: () => `${process}-${passed()}`,
    isOpenedBy(token) {
      const [, text = "", given = ""] = FORM.exec(token) ?? [];
      if (text === "" || !timingSafeEqual(sealOf(secret, text), Buffer.from(given, "hex"))) return false;
      const claim: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
      return isRecord(claim) && claim.to === self && isNow(claim.moment);
    },
  };
}

const sealOf = (secret: string, text: string): Buffer =>
  createHmac("sha256", secret).update(`drover node 2 ${text}`).digest();
