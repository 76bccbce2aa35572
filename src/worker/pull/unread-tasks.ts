/**
 * Tasks that the connection passes on to the handlers as they came.
 *
 * To read them, and to write them again for another thread, would cost more than all else that is done for a short
 * task. So a lean answer begins with the names of its assignments, and ends with their tasks: the names are read here,
 * and the rest by the handlers. Only where some are not to be begun at once are the tasks read after all.
 */
import { isRecord } from "../../core/base/index.ts";
import type { Assignment, LeanTask, NamedAssignment, SyncAnswer } from "../../protocol/index.ts";
import { type Handed, keyOf, type Unread } from "./messages.ts";

/** An answer; with `unread`, only the names of its assignments were read. */
export type HeardSync = Omit<SyncAnswer, "assignments" | "named" | "tasks"> & {
  readonly assignments: readonly (Assignment | NamedAssignment)[];
  readonly unread?: Unread;
};

const NAMED = '{"named":';
const BEHIND_NAMES = ',"cancel":[';
const TASKS = ',"assignments":[],"tasks":';

/**
 * Reads an answer as JSON but for tasks behind their names. In a text of JSON these marks would have backslashes,
 * so they are found where they are fields, and no field before them is called so.
 */
export function parseNames(text: string): unknown {
  // Who stands between may write it anew, with blanks or in another sequence: then all of it is read.
  const behind = text.startsWith(NAMED) && text.endsWith("]}") ? text.indexOf(BEHIND_NAMES) : -1;
  const at = behind < 0 ? -1 : text.indexOf(TASKS, behind);
  const answer = at < 0 ? null : parseHead(text.slice(0, at));
  if (answer === null) return inFull(JSON.parse(text));
  answer.assignments = answer.named;
  answer.unread = { named: text.slice(NAMED.length, behind), tasks: text.slice(at + TASKS.length, -1) };
  return answer;
}

/** Null if it was cut somewhere else: the marks may be fields of a task in an answer that is not lean. */
function parseHead(head: string): { named: unknown; assignments: unknown; unread?: Unread } | null {
  try {
    return JSON.parse(`${head}}`);
  } catch {
    return null;
  }
}

/** A lean answer that was read whole is one like any other. */
function inFull(answer: unknown): unknown {
  const { named, tasks } = (answer ?? {}) as Partial<SyncAnswer>;
  if (!Array.isArray(named) || !Array.isArray(tasks)) return answer;
  return { ...(answer as object), assignments: together(named, tasks) };
}

/** Each name with its task; throws if there is not one for each. */
export function together(named: readonly NamedAssignment[], tasks: readonly LeanTask[]): Handed[] {
  if (named.length !== tasks.length || !tasks.every(isRecord)) throw new SyntaxError("not every name has its task");
  return named.map(({ taskId, attempt, taskSeq, goesOn }, index) => {
    const handed = handedOf(taskId, attempt, taskSeq, tasks[index] ?? {});
    return goesOn === true ? { ...handed, goesOn } : handed;
  });
}

const handedOf = (taskId: string, attempt: number, taskSeq: number | undefined, task: LeanTask): Handed =>
  taskSeq === undefined ? { taskId, attempt, task } : { taskId, attempt, taskSeq, task };

/** What was passed on, read. */
export const readUnread = ({ named, tasks }: Unread): Handed[] => together(JSON.parse(named), JSON.parse(tasks));

/** They are read after all, each in the place of its name; answers why if they cannot be. */
export function readInPlace(
  taken: Iterable<{ readonly key: string; awaits: Handed | null }>,
  unread: Unread,
): string | null {
  try {
    const byKey = new Map(readUnread(unread).map((handed) => [keyOf(handed), handed]));
    for (const one of taken) one.awaits = byKey.get(one.key) ?? one.awaits;
    return null;
  } catch (error) {
    if (error instanceof SyntaxError) return error.message;
    throw error;
  }
}

/** Whether an assignment, read or not, needs not to be named first. */
export function mayBeginAtOnce({ awaits }: { readonly awaits: Handed | null }): boolean {
  const { onLoss, task } = awaits as Handed & Pick<NamedAssignment, "onLoss">;
  return onLoss !== "fail" && task?.onLoss !== "fail";
}
