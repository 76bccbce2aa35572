/**
 * Assignments that the connection passes on to the handlers as they came.
 *
 * To read them, and to write them again for another thread, would cost more than all else that is done for a short
 * task. So a brief answer begins with the names of its assignments, and ends with the assignments themselves: the names
 * are read here, and the rest by the handlers. Only where some are not to be begun at once are they read after all.
 */
import type { Assignment, NamedAssignment, SyncAnswer } from "../../protocol/index.ts";
import { type Handed, keyOf } from "./messages.ts";

/** An answer; with `given`, all of its assignments as JSON, only their names were read. */
export type HeardSync = Omit<SyncAnswer, "assignments" | "named"> & {
  readonly assignments: readonly (Assignment | NamedAssignment)[];
  readonly given?: string;
};

const FIRST = '{"named":[';
const LAST = ',"assignments":';

/**
 * Reads an answer as JSON but for assignments behind their names. In a text of JSON these marks would have backslashes,
 * so they are found where they are fields, and no field before them is called so.
 */
export function parseNames(text: string): unknown {
  // Who stands between may write it anew, with blanks or in another sequence: then all of it is read.
  const at = text.startsWith(FIRST) && text.endsWith("]}") ? text.indexOf(LAST) : -1;
  if (at < 0) return JSON.parse(text);
  const { named, ...said } = JSON.parse(`${text.slice(0, at)}}`) as Pick<SyncAnswer, "named">;
  return { ...said, assignments: named, given: text.slice(at + LAST.length, -1) };
}

/** They are read after all, each in the place of its name. */
export function readGiven(taken: Iterable<{ readonly key: string; awaits: Handed | null }>, given: string): void {
  const byKey = new Map((JSON.parse(given) as readonly Handed[]).map((handed) => [keyOf(handed), handed]));
  for (const one of taken) one.awaits = byKey.get(one.key) ?? one.awaits;
}

/** Whether an assignment, read or not, needs not to be named first. */
export function mayBeginAtOnce({ awaits }: { readonly awaits: Handed | null }): boolean {
  const { onLoss, task } = awaits as Handed & Pick<NamedAssignment, "onLoss">;
  return onLoss !== "fail" && task?.onLoss !== "fail";
}
