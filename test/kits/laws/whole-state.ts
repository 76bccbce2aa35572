/**
 * The whole of a state, facts and indices alike, as lines that can be compared.
 *
 * A snapshot holds facts; what is worked out from them (queues, shapes, trees, tables, timers) it leaves out. Here
 * every object that can be reached is written down once, in the order it is met, then by its number.
 */
import assert from "node:assert/strict";
import { Names } from "../../../src/core/collections/names.ts";
import { NumberTable } from "../../../src/core/collections/number-table.ts";
import { TaskTable } from "../../../src/core/collections/task-table.ts";
import type { State } from "../../../src/core/model/state.ts";

/** What a table was asked for last: it finds the same again, only sooner. */
const MEMOS: ReadonlySet<string> = new Set(["lastId", "lastKey", "last"]);
const hasMemo = (value: object): boolean => [Names, NumberTable, TaskTable].some((kind) => value instanceof kind);

export function linesOfState(state: State): string[] {
  const numbers = new Map<object, number>();
  const lines: string[] = [];
  const write = (name: string, value: unknown): void => {
    if (typeof value === "function") return;
    if (typeof value !== "object" || value === null) {
      lines.push(`${name} = ${Object.is(value, -0) ? "-0" : String(value)}`);
      return;
    }
    const known = numbers.get(value);
    lines.push(`${name} -> ${known ?? `new ${numbers.size}`}`);
    if (known !== undefined) return;
    numbers.set(value, numbers.size);
    if (value instanceof Map) for (const [key, held] of value) write(`of ${String(key)}`, held);
    else if (value instanceof Set) for (const held of value) write("has", held);
    for (const [key, held] of Object.entries(value)) {
      if (!hasMemo(value) || !MEMOS.has(key)) write(key, held);
    }
  };
  write("state", state);
  return lines;
}

/**
 * Asks one thing after the other, and sees that the state looks the same after all, down to the last index. To write a
 * state down takes longer than all that is asked, so it is not done in between.
 */
export function leaveNoMark(state: State, askings: Readonly<Record<string, () => void>>): void {
  const before = linesOfState(state);
  for (const ask of Object.values(askings)) ask();
  const after = linesOfState(state);
  const at = before.findIndex((line, index) => line !== after[index]);
  const isSame = at < 0 && before.length === after.length;
  const mark = `"${before[at]}" became "${after[at < 0 ? before.length : at]}"`;
  assert.ok(isSame, `one of these left a mark: ${Object.keys(askings).join(", ")}; ${mark}`);
}
