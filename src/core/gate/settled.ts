/**
 * Which permits were settled lately.
 *
 * An id that was settled is not granted again for as long as a permit lasts: a repeat of its ask that comes late, or to
 * the next leader, would hold a place at the gate for nobody. A call that met a 429 may come back under its id.
 */
import type { PermitId } from "../base/brand.ts";
import { type Fifo, fifo, peek, push, shift } from "../collections/fifo.ts";

/** A permit whose call is over: until when that is known, and whether it may be asked for again before. */
export type SettledPermit = { readonly id: PermitId; readonly until: number; readonly mayReturn: boolean };
/** Those that are known, the first that was settled first; and by their ids. */
export type SettledPermits = {
  /** The first that was settled first. */
  readonly order: Fifo<SettledPermit>;
  /** The last of each id. */
  readonly byId: Map<PermitId, SettledPermit>;
};

/** Beyond so many the first go before their time. */
const SETTLED_MAX = 100_000;

export const noneSettled = (): SettledPermits => ({ order: fifo(), byId: new Map() });

/** Those whose time is over make room for it. */
export function noteSettled({ order, byId }: SettledPermits, permit: SettledPermit, now: number): void {
  for (let first = peek(order); first !== undefined; first = peek(order)) {
    if (first.until > now && order.length < SETTLED_MAX) break;
    shift(order);
    if (byId.get(first.id) === first) byId.delete(first.id);
  }
  push(order, permit);
  byId.set(permit.id, permit);
}

/** The permit if its call is over, not longer ago than a permit lasts. */
export function settledOf(
  { byId }: { readonly byId: ReadonlyMap<PermitId, SettledPermit> },
  permit: PermitId,
  now: number,
): SettledPermit | undefined {
  const found = byId.get(permit);
  return found !== undefined && found.until > now ? found : undefined;
}
