/**
 * Tasks by their ids, and what belongs to them.
 *
 * The ids that Drover gives out, `tsk_` and the number of the event that submitted the task, are numbers in disguise:
 * tasks that stand next to each other in the log lie next to each other here (number-table.ts). For the ids that
 * callers choose, names.ts says that number. Tables may share it, as those of tasks and of tombstones do: what is
 * handed over from one to the other keeps its name, and a name that is new is looked for once. What is put in in the
 * order of submission comes out in that order; of what is put in otherwise, such as tombstones, the order says nothing.
 * Nothing may be put in or taken out while it is walked over.
 */
import type { TaskId } from "../base/brand.ts";
import { Names } from "./names.ts";
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
  "size" | "get" | "has" | "values" | "each" | "expect"
>;

export class TaskTable<Value extends { readonly seq: number }> {
  private readonly own = new NumberTable<Value>();
  /** What has an id that a caller chose, by the number of its event. */
  private readonly named = new NumberTable<Value>();
  private readonly names: Names;
  /** What was found last, and by which id: a task is looked up to decide, and again to apply that. */
  private lastId: TaskId | null = null;
  private last: Value | undefined = undefined;

  /** `names`: what tables share of which no two have the same id at once. */
  constructor(names: Names = new Names()) {
    this.names = names;
  }

  get size(): number {
    return this.own.size + this.named.size;
  }

  get(id: TaskId): Value | undefined {
    if (id !== this.lastId) {
      const number = numberIn(id);
      this.last = number < 0 ? this.findNamed(id) : this.own.get(number);
      this.lastId = id;
    }
    return this.last;
  }

  has(id: TaskId): boolean {
    return this.get(id) !== undefined;
  }

  /** What lies here under this id is looked for next, and the caller has it at hand. It changes nothing. */
  expect(id: TaskId, value: Value): void {
    this.lastId = id;
    this.last = value;
  }

  set(id: TaskId, value: Value): void {
    const number = numberIn(id);
    if (number < 0) this.setNamed(id, value);
    else this.own.set(number, value);
    this.lastId = id;
    this.last = value;
  }

  delete(id: TaskId): boolean {
    const number = numberIn(id);
    this.lastId = null;
    this.last = undefined;
    return (number < 0 ? this.takeNamed(id) : this.own.take(number)) !== undefined;
  }

  /** The same for what lies here under this id. */
  drop(id: TaskId, { seq }: Value): void {
    const number = numberIn(id);
    if (number >= 0) this.own.take(number);
    else {
      this.named.take(seq);
      this.names.delete(id);
    }
    this.lastId = null;
    this.last = undefined;
  }

  /** What lies here goes, and another value of the same event takes its id, in a table that shares its numbers. */
  handOver<Other extends { readonly seq: number }>(id: TaskId, to: TaskTable<Other>, value: Other): void {
    const number = numberIn(id);
    if (number < 0) {
      this.named.take(value.seq);
      to.named.set(value.seq, value);
    } else {
      this.own.take(number);
      to.own.set(number, value);
    }
    this.lastId = to.lastId = null;
    this.last = to.last = undefined;
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

  private findNamed(id: TaskId): Value | undefined {
    const number = this.names.get(id);
    return number === undefined ? undefined : this.named.get(number);
  }

  private setNamed(id: TaskId, value: Value): void {
    // To decide on a new task it was looked for, and is known not to be there.
    const before = this.get(id)?.seq;
    if (before !== value.seq) {
      if (before !== undefined) this.named.take(before);
      this.names.set(id, value.seq);
    }
    this.named.set(value.seq, value);
  }

  private takeNamed(id: TaskId): Value | undefined {
    const number = this.names.get(id);
    const value = number === undefined ? undefined : this.named.take(number);
    // It may be the name of what lies in another table.
    if (value !== undefined) this.names.delete(id);
    return value;
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
