/**
 * Many tasks in one call.
 *
 * They are submitted item by item, in a sequence in which dependencies come first, and one bad item never fails the
 * others. Items that do not name each other are all submitted at one reading of the clock. An item is read like a task
 * of its own; only its refusal names the field by its path in the batch.
 */

import { isRecord, sentence, type TaskId } from "../../core/base/index.ts";
import { batchOrder } from "../../core/task/index.ts";
import { countAhead } from "../../core/turn/index.ts";
import type { BatchAnswer, BatchBody, BatchItem, BatchTask, Submitted } from "../../protocol/index.ts";
import { Checked } from "../../protocol/schema/index.ts";
import { batchBody } from "../../protocol/shapes/index.ts";
import { readBody } from "../writer/call-options.ts";
import { badInput, DroverError, faultOfReading, refused } from "../writer/drover-error.ts";
import { answerFor, decideNow, lookForArtifact, type SubmitParts, submitRead, takeIn, turnAway } from "./submit.ts";
import { type ItemReader, itemReader, type ReadTask, type TaskInput } from "./task-body.ts";

/** As on the wire; an instant in an item may be whole milliseconds. */
export type BatchInput = Omit<BatchBody, "tasks"> & {
  /** At most scheduler.maxBatch; items may need each other by id. */
  readonly tasks: readonly (Omit<TaskInput, "agentId"> & { readonly agentId?: string })[];
};

/** An item that the server has found bad, and why. It is refused by these words, and so is what needs it. */
class RefusedItem {
  readonly id: unknown;
  readonly error: string;

  constructor(id: unknown, error: string) {
    this.id = id;
    this.error = error;
  }
}
/** To the compiler it is still an item, so it can stand among the others. */
export const refusedItem = (item: unknown, error: string): BatchTask =>
  new RefusedItem(isRecord(item) ? item.id : null, error) as unknown as BatchTask;

export async function submitAll(parts: SubmitParts, given: BatchInput): Promise<BatchAnswer> {
  async function lookForItem(item: ReadTask, index: number): Promise<ReadTask | null> {
    try {
      return await lookForArtifact(parts, item);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      answers[index] = refusedAt(error, index);
      return null;
    }
  }

  const { maxBatch } = parts.writer.state.config.scheduler;
  const batch = readBody(batchBody, given);
  // Holes are items too, and bad ones.
  const list: readonly unknown[] = Array.from(batch.tasks);
  const readOne = itemReader(batch, given instanceof Checked);
  if (list.length > maxBatch) throw refused({ type: "batch-too-large", submitted: list.length, max: maxBatch });
  const answers: BatchItem[] = list.map(() => REJECTED);
  let read = list.map((item, index) => {
    const one = item instanceof RefusedItem ? item : readItem(readOne, batch.agentId, item);
    if (!(one instanceof DroverError || one instanceof RefusedItem)) return one;
    answers[index] = one instanceof RefusedItem ? { state: "rejected", error: one.error } : refusedAt(one, index);
    return null;
  });
  if (read.some((item) => item !== null && item.submission.artifact !== null))
    read = await Promise.all(read.map((item, index) => (item === null ? null : lookForItem(item, index))));
  if (read.some(namesOthers)) placeDependent(parts, list, read, answers);
  else submitIndependent(parts, read, answers);
  let accepted = 0;
  for (const { state } of answers) if (state !== "rejected") accepted++;
  return { tasks: answers, submitted: list.length, accepted, rejected: list.length - accepted };
}

/** Places items that do not name each other, all at the same time of the clock. */
function submitIndependent(parts: SubmitParts, read: readonly (ReadTask | null)[], answers: BatchItem[]): void {
  const { state, sureNow } = parts.writer;
  const at = sureNow();
  for (let index = 0; index < read.length; index++) {
    const item = read[index] ?? null;
    if (item === null) continue;
    const decided = decideNow(parts, item, at);
    if (!decided.ok) {
      answers[index] = refusedAt(turnAway(parts, item, decided.failure), index);
      continue;
    }
    const id = decided.value.id as TaskId;
    const task = takeIn(parts, item, decided.value);
    answers[index] =
      task === undefined || task.group === null
        ? itemAnswer(answerFor(parts, id, task))
        : { taskId: id, state: task.phase, position: countAhead(state, task, at) + 1 };
  }
}

const REJECTED: BatchItem = { state: "rejected" };

const namesOthers = (item: ReadTask | null): boolean =>
  item !== null && (item.submission.parent !== null || item.submission.needs.length > 0);

/** Places items that may name each other: dependencies first, and none whose dependency was turned away. */
function placeDependent(
  parts: SubmitParts,
  list: readonly unknown[],
  read: readonly (ReadTask | null)[],
  answers: BatchItem[],
): void {
  const { order, refused: circular } = batchOrder(
    read.map((item) => ({
      id: item?.submission.id ?? null,
      parent: item?.submission.parent ?? null,
      needs: item?.submission.needs ?? [],
    })),
  );
  for (const [index, refusal] of circular) answers[index] = { state: "rejected", error: sentence(refusal) };
  const turnedAway = new Set(list.filter((_, index) => read[index] === null).map(idOfItem));
  for (const index of order) {
    const item = read[index];
    if (item === null || item === undefined) continue;
    const answer = submitUnless(turnedAway, parts, item);
    if (answer instanceof DroverError) turnedAway.add(item.submission.id);
    answers[index] = answer instanceof DroverError ? refusedAt(answer, index) : itemAnswer(answer);
  }
}

/** One item of a batch as a task of its own, or what is wrong with it. */
function readItem(readOne: ItemReader, batchAgent: string, item: unknown): ReadTask | DroverError {
  try {
    if (!isRecord(item)) return badInput("(body)", item, "an object");
    const { agentId = batchAgent } = item;
    if (agentId !== batchAgent) return badInput("agentId", agentId, `absent or ${batchAgent}, the agent of the batch`);
    return readOne(item);
  } catch (thrown) {
    const fault = faultOfReading(thrown, item, "");
    if (fault instanceof DroverError) return fault;
    // Only what belongs to the item can have thrown, though it does not throw again: it spoils this item and no other.
    return badInput("(body)", item, "plain data, and may not throw when it is read");
  }
}

/** The id a bad item would have had, as far as it can be read. */
function idOfItem(item: unknown): unknown {
  try {
    return isRecord(item) || item instanceof RefusedItem ? (item.id ?? null) : null;
  } catch {
    return null;
  }
}

/** An item whose dependency was turned away in the same batch is not submitted either, and says so. */
function submitUnless(turnedAway: ReadonlySet<unknown>, parts: SubmitParts, item: ReadTask): Submitted | DroverError {
  const { parent, needs } = item.submission;
  const dependency = [parent, ...needs].find((id) => id !== null && turnedAway.has(id)) ?? null;
  if (dependency === null) return submitRead(parts, item);
  return refused({ type: "dependency-refused", field: dependency === parent ? "parent" : "needs", dependency });
}

function itemAnswer({ taskId, state, position }: Submitted): BatchItem {
  return { taskId, state, ...(position === undefined ? {} : { position }) };
}

/** What is wrong with an item, where it is the item that stands there: `tasks[1].action is …`. */
function refusedAt({ refusal, message, details: { taskId } }: DroverError, index: number): BatchItem {
  const error =
    refusal !== null && "field" in refusal
      ? sentence({ ...refusal, field: pathInBatch(refusal.field, index) })
      : message;
  return { state: "rejected", error, ...(typeof taskId === "string" ? { taskId } : {}) };
}

const pathInBatch = (field: string, index: number): string =>
  field === "(body)" ? `tasks[${index}]` : `tasks[${index}].${field}`;
