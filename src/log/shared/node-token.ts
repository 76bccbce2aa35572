/**
 * With which word one node lets another in: that it knows the secret of their journal, for whom it asks, and when.
 *
 * Whoever can read the journal has the whole history anyhow, so the secret that lies there is the right to read a
 * replica, also for a node that is new and of which no log tells yet. A token is good for one node and for some
 * minutes; the clocks of nodes differ by less.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { isRecord } from "../../core/base/index.ts";

const MARK = "node.";
const GOOD_FOR_MS = 300_000;
const FORM = /^node\.([A-Za-z0-9_-]{1,2000})\.([0-9a-f]{64})$/;

type Claim = {
  readonly from: string;
  readonly to: string;
  /** When it was made, by the date of who made it. */
  readonly at: number;
};

export function nodeToken(secret: string, claim: Claim): string {
  const text = Buffer.from(JSON.stringify(claim), "utf8").toString("base64url");
  return `${MARK}${text}.${sealOf(secret, text).toString("hex")}`;
}

/** Whether a token lets a node of the same journal in, here and now. */
export function isNodeToken(token: string, own: { secret: string; self: string; now: number }): boolean {
  const [, text = "", given = ""] = FORM.exec(token) ?? [];
  if (text === "" || !timingSafeEqual(sealOf(own.secret, text), Buffer.from(given, "hex"))) return false;
  const claim: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  return isRecord(claim) && claim.to === own.self && Math.abs(own.now - Number(claim.at)) <= GOOD_FOR_MS;
}

const sealOf = (secret: string, text: string): Buffer =>
  createHmac("sha256", secret).update(`drover node 1 ${text}`).digest();
