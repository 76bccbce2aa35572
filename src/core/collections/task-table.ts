/**
 * Tasks by their ids, and what belongs to them.
 *
 * The ids that Drover gives out, `tsk_` and the number of the event that submitted the task, are numbers in disguise:
 * tasks that stand next to each other in the log lie next to each other here (number-table.ts). The ids that callers
 * choose are kept in a Map. What is put in in the order of submission comes out in that order; of what is put in
 * otherwise, such as tombstones, the order says nothing. Nothing may be put in or taken out while it is walked over.
 */
import type { TaskId } from "../base/brand.ts";
import { NumberTable } from "./number-table.ts";

const PREFIX = "tsk_";
const PREFIX_LENGTH = PREFIX.length;
const T = 116;
const S = 115;
const K = 107;
const UNDERSCORE = 95;
const ZERO = 48;
const NINE = 57;

export type ReadonlyTaskTable<Value extends { readonly seq: number }> = Pick<
  TaskTable<Value>,
  "size" | "get" | "has" | "values" | "each"
>;

export class TaskTable<Value extends { readonly seq: number }> {
  private readonly own = new NumberTable<Value>();
  private readonly named = new Map<string, Value>();
  /** What was found last, and by which id: a task is looked up to decide, and again to apply that. */
  private lastId: TaskId | null = null;
  private last: Value | undefined = undefined;

  get size(): number {
    return this.own.size + this.named.size;
  }

  get(id: TaskId): Value | undefined {
    if (id !== this.lastId) {
      const number = numberIn(id);
      this.last = number < 0 ? this.named.get(id) : this.own.get(number);
      this.lastId = id;
    }
    return this.last;
  }

  has(id: TaskId): boolean {
    return this.get(id) !== undefined;
  }

  set(id: TaskId, value: Value): void {
    const number = numberIn(id);
    if (number < 0) this.named.set(id, value);
    else this.own.set(number, value);
    this.lastId = id;
    this.last = value;
  }

  delete(id: TaskId): boolean {
    const number = numberIn(id);
    this.lastId = null;
    this.last = undefined;
    return number < 0 ? this.named.delete(id) : this.own.take(number) !== undefined;
  }

  *values(): Generator<Value> {
    const named = this.named.values();
    let next = named.next();
    for (const value of this.own.values()) {
      for (; next.done !== true && next.value.seq < value.seq; next = named.next()) yield next.value;
      yield value;
    }
    for (; next.done !== true; next = named.next()) yield next.value;
  }

  /** The same values in the same order, each given to `visit`. */
  each(visit: (value: Value) => void): void {
    const named = this.named.values();
    let next = named.next();
    this.own.each((value) => {
      for (; next.done !== true && next.value.seq < value.seq; next = named.next()) visit(next.value);
      visit(value);
    });
    for (; next.done !== true; next = named.next()) visit(next.value);
  }
}

/** The id that Drover gives the task which the event with this number submits. */
export const ownId = (number: number): TaskId => `${PREFIX}${number}` as TaskId;

/** The number in an id that Drover gave out, or -1: the same number has no second spelling. */
export function numberIn(id: string): number {
  const { length } = id;
  // Letter by letter: this is asked a dozen times for every task.
  if (length <= PREFIX_LENGTH || id.charCodeAt(0) !== T || id.charCodeAt(1) !== S || id.charCodeAt(2) !== K) return -1;
  if (id.charCodeAt(3) !== UNDERSCORE || id.charCodeAt(PREFIX_LENGTH) === ZERO) return -1;
  let number = 0;
  for (let index = PREFIX_LENGTH; index < length; index++) {
    const code = id.charCodeAt(index);
    if (code < ZERO || code > NINE) return -1;
    number = number * 10 + (code - ZERO);
  }
  return number <= Number.MAX_SAFE_INTEGER ? number : -1;
}
