/**
 * Sets of shape numbers that are usually small and sometimes large.
 *
 * A lock that one task needs concerns one shape; a type may concern ten thousand. A bit set is as long as its
 * highest number, so one per lock would grow with the square of the locks. A few numbers are kept as a list,
 * and become a bit set when there are many.
 */
import { type BitSet, bitSet, bitsOf, type ReadonlyBitSet, setAll, setBit } from "./bit-set.ts";

const FEW_MAX = 32;

export type ShapeSet = { few: number[]; bits: BitSet | null };
type ReadonlyShapeSet = { readonly few: readonly number[]; readonly bits: ReadonlyBitSet | null };

export const shapeSet = (): ShapeSet => ({ few: [], bits: null });

export function addShape(set: ShapeSet, id: number): void {
  if (set.bits === null && set.few.length < FEW_MAX) {
    set.few.push(id);
    return;
  }
  if (set.bits === null) {
    set.bits = bitSet();
    for (const one of set.few) setBit(set.bits, one, true);
    set.few = [];
  }
  setBit(set.bits, id, true);
}

export function dropShape(set: ShapeSet, id: number): void {
  if (set.bits === null) set.few = set.few.filter((one) => one !== id);
  else setBit(set.bits, id, false);
}

/** The numbers in the set; ascending only once there are many. */
export const shapesIn = (set: ReadonlyShapeSet): Iterable<number> => (set.bits === null ? set.few : bitsOf(set.bits));

/** Puts every number into a bit set, or takes it out. */
export function markAll(target: BitSet, set: ShapeSet, on: boolean): void {
  if (set.bits === null) for (const id of set.few) setBit(target, id, on);
  else setAll(target, set.bits, on);
}
