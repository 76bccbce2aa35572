/**
 * How a receiver knows that a webhook came from this server, unchanged and not long ago.
 *
 * With `webhooks.secret` set, every webhook carries
 *
 *     X-Drover-Signature: t=1769860800,v1=<hex of HMAC-SHA-256 with the secret over "1769860800." + body>
 *
 * The instant is inside what is signed, so a webhook that somebody recorded cannot be played again later. To verify:
 * take the body's bytes as they came (not parsed and written again), compute the same, compare in constant time, and
 * refuse an instant more than five minutes off. `verifySignature` does exactly that. Several `v1=` may stand in
 * one header while a secret is being replaced; one that fits is enough. Since webhooks arrive at least once, a receiver
 * also remembers `X-Drover-Delivery` for as long as it would accept the instant.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE_SECONDS = 300;
const SIGNATURES_MAX = 10;

export type SignatureCheck = {
  readonly secret: string;
  /** The value of X-Drover-Signature as it came. */
  readonly header: string | null | undefined;
  /** The body as it came; text is taken as UTF-8. */
  readonly body: string | Uint8Array;
  /** In milliseconds since 1970. */
  readonly now?: number;
  readonly toleranceSeconds?: number;
};

export function signatureOf(secret: string, body: string | Uint8Array, now: number): string {
  const seconds = String(Math.floor(now / 1000));
  return `t=${seconds},v1=${digestOf(secret, seconds, body).toString("hex")}`;
}

export function verifySignature({ secret, header, body, ...limits }: SignatureCheck): boolean {
  const { now = Date.now(), toleranceSeconds = TOLERANCE_SECONDS } = limits;
  if (typeof header !== "string" || secret === "") return false;
  const parts = header.split(",").map((part) => part.trim());
  const [seconds, ...others] = parts.filter((part) => part.startsWith("t=")).map((part) => part.slice(2));
  if (seconds === undefined || others.length > 0 || !/^\d{1,15}$/.test(seconds)) return false;
  if (!(Math.abs(now / 1000 - Number(seconds)) <= toleranceSeconds)) return false;
  const expected = digestOf(secret, seconds, body);
  const given = parts.filter((part) => /^v1=[0-9a-f]{64}$/.test(part)).slice(0, SIGNATURES_MAX);
  // Every one is compared, so that the time this takes does not tell which came close.
  return given.map((part) => timingSafeEqual(Buffer.from(part.slice(3), "hex"), expected)).includes(true);
}

const digestOf = (secret: string, seconds: string, body: string | Uint8Array): Buffer =>
  createHmac("sha256", secret).update(`${seconds}.`).update(body).digest();
