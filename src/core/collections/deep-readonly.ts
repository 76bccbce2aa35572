/**
 * A value of any depth that may be read and not written, for the compiler alone.
 *
 * A `readonly` field still lets a list or a map inside it be changed, so every collection is replaced by the interface
 * of what reads it. At run time nothing changes.
 */
import type { AttemptSet, ReadonlyAttemptSet } from "./attempt-set.ts";
import type { ReadonlyNumbers } from "./bit-set.ts";
import type { ReadonlySlotMap, SlotMap } from "./slot-map.ts";
import type { ReadonlySortedList, SortedList } from "./sorted-list.ts";
import type { ReadonlyTaskTable, TaskTable } from "./task-table.ts";

/** A sum over a window of time (gate/usage-window.ts), without what changes it. */
type ReadonlySum = {
  readonly windowMs: number;
  total(now: number): number;
  nextExpiry(now: number): number | null;
  belowAt(limit: number, now: number): number;
  facts(): unknown;
};

type Plain = string | number | boolean | null | undefined | ((...args: never[]) => unknown);

export type DeepReadonly<Value> = Value extends Plain
  ? Value
  : Value extends Map<infer Key, infer Item>
    ? ReadonlyMap<Key, DeepReadonly<Item>>
    : Value extends Set<infer Item>
      ? ReadonlySet<DeepReadonly<Item>>
      : Value extends Float64Array | Int32Array | Uint32Array
        ? ReadonlyNumbers
        : Value extends readonly (infer Item)[]
          ? readonly DeepReadonly<Item>[]
          : Value extends SortedList<infer Item>
            ? ReadonlySortedList<DeepReadonly<Item>>
            : Value extends ReadonlySum
              ? Readonly<Pick<Value, keyof ReadonlySum>>
              : Value extends SlotMap<infer Item>
                ? ReadonlySlotMap<DeepReadonly<Item>>
                : Value extends TaskTable<infer Item>
                  ? ReadonlyTaskTable<DeepReadonly<Item>>
                  : Value extends AttemptSet<infer Item>
                    ? ReadonlyAttemptSet<DeepReadonly<Item>>
                    : ReadonlyFields<Value>;
/** It has a name, so that an editor shows a field as what it is of and not with all that it holds. */
type ReadonlyFields<Value> = { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };
