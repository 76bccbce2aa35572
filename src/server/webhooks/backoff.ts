/**
 * How long a webhook rests before it is tried again.
 *
 * One second, then three times as long after every failure, up to a quarter of an hour: eight tries span about
 * twenty minutes, which outlasts a deployment. Up to a quarter is added, by the delivery and the try, so that what
 * failed together does not come back together. A receiver that asks for more time gets it, up to an hour.
 */
import { fnv1a } from "../../core/fleet/index.ts";

const FIRST_MS = 1000;
const GROWTH = 3;
const REST_MS_MAX = 15 * 60_000;
const ASKED_MS_MAX = 60 * 60_000;
const SPREAD = 4;

export function restAfterTry(deliveryId: string, tries: number, askedMs: number = 0): number {
  const restMs = Math.min(REST_MS_MAX, FIRST_MS * GROWTH ** Math.min(tries - 1, 20));
  const spreadMs = fnv1a(`${deliveryId}#${tries}`) % (restMs / SPREAD);
  return Math.max(restMs + Math.floor(spreadMs), Math.min(askedMs, ASKED_MS_MAX));
}
