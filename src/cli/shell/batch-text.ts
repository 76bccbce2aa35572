/**
 * Tasks as text: one JSON object a line, or one array of them. What is wrong is named by its line.
 */
import type { BatchTask } from "../../protocol/index.ts";
import { usageProblem } from "./problem.ts";

export type BatchText = {
  readonly tasks: readonly BatchTask[];
  /** Where an item stands: `tasks.jsonl:3`. */
  placeOf(index: number): string;
};

/** The most that scheduler.maxBatch can be. */
const TASKS_MAX = 10_000;
const HINT = `a task is an object such as {"action": "build"}: one a line, or all in an array`;

/** `from` is what the text is called. What a field must be is for the server to say. */
export function readBatch(text: string, from: string): BatchText {
  const isArray = /^\s*\[/.test(text);
  const items = isArray
    ? (parsed(text, from) as unknown[]).map((task, index) => ({ task, place: `${from}, item ${index + 1}` }))
    : text.split("\n").flatMap((line, at) => {
        const place = `${from}:${at + 1}`;
        return line.trim() === "" ? [] : [{ task: parsed(line, place), place }];
      });
  if (items.length === 0) throw usageProblem(`--batch: ${from} has no task`, HINT);
  if (items.length > TASKS_MAX)
    throw usageProblem(`--batch: ${from} has ${items.length} tasks, and a batch at most ${TASKS_MAX}`);
  for (const { task, place } of items)
    if (typeof task !== "object" || task === null || Array.isArray(task))
      throw usageProblem(`--batch: ${place} is no object`, HINT);
  return { tasks: items.map(({ task }) => task as BatchTask), placeOf: (index) => items[index]?.place ?? from };
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw usageProblem(`--batch: ${place} is not JSON: ${(error as SyntaxError).message}`, HINT);
  }
}
