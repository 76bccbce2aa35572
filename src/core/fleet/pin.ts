/**
 * Whom a task waits for under the affinity strategy: one worker, or any worker of a zone.
 *
 * A pin is one text in events, snapshots and shapes. A worker's is its id; a zone's begins with a word and a blank,
 * which no id has, so the two are never taken for each other.
 */
import type { Pin, WorkerId, ZonePin } from "../base/brand.ts";
import type { ReadonlyFleet, ReadonlyState, ReadonlyWorker } from "../model/read-only.ts";

const ZONE = "zone ";

export const zonePin = (zone: string): ZonePin => `${ZONE}${zone}` as ZonePin;

/** The zone that is waited for; null if it is one worker. */
export const zoneOf = (pin: Pin): string | null => (pin.startsWith(ZONE) ? pin.slice(ZONE.length) : null);

/** The worker that is waited for, if it is here; undefined for a zone too. */
export const workerOf = (fleet: ReadonlyFleet, pin: Pin): ReadonlyWorker | undefined => fleet.byId.get(pin as WorkerId);

export const isMeantBy = (pin: Pin, worker: ReadonlyWorker): boolean =>
  pin === worker.id || (worker.zone !== null && pin === zonePin(worker.zone));

/** Whether no worker is left to wait for. */
export function isStray(state: ReadonlyState, pin: Pin): boolean {
  const isThere = ({ status }: ReadonlyWorker): boolean => status === "ready" || status === "overloaded";
  if (zoneOf(pin) !== null) return !state.fleet.order.some((worker) => isMeantBy(pin, worker) && isThere(worker));
  const worker = workerOf(state.fleet, pin);
  return worker === undefined || !isThere(worker);
}
