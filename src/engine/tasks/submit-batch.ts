/**
 * Many tasks in one call.
 *
 * They are placed item by item, in an order in which dependencies come first, and one bad item never fails the
 * others. Items that do not name each other are all placed at one reading of the clock. An item is read like a task of
 * its own; only where it is answered that it was refused is the field named by its place in the batch, once for all.
 */

import { isRecord, name, sentence, type TaskId, text } from "../../core/base/index.ts";
import { batchOrder } from "../../core/task/index.ts";
import { countAhead } from "../../core/turn/index.ts";
import type { BatchAnswer, BatchBody, BatchItem, Submitted } from "../../protocol/index.ts";
import { badInput, DroverError, faultOfReading, reading, refused } from "../writer/drover-error.ts";
import { answerFor, decideNow, lookForArtifact, type PlacingParts, place, takeIn, turnAway } from "./submit.ts";
import { type ItemReader, itemReader, type ReadTask, type TaskInput } from "./task-body.ts";

const SHARED = { agentId: name(), project: name(), callbackUrl: text(1, 2048) };

/** As on the wire; an instant in an item may be whole milliseconds. */
export type BatchInput = Omit<BatchBody, "tasks"> & {
  readonly tasks: readonly (Omit<TaskInput, "agentId"> & { readonly agentId?: string })[];
};

export async function placeBatch(parts: PlacingParts, batch: BatchInput): Promise<BatchAnswer> {
  async function lookForItem(item: ReadTask, index: number): Promise<ReadTask | null> {
    try {
      return await lookForArtifact(parts, item);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      answers[index] = refusedItem(error, index);
      return null;
    }
  }

  const { maxBatch } = parts.writer.state.config.scheduler;
  const { list, readOne } = reading(batch, "", () => ({ list: readBatch(batch), readOne: itemReader(batch) }));
  if (list.length > maxBatch) throw refused({ type: "batch-too-large", submitted: list.length, max: maxBatch });
  const answers: BatchItem[] = list.map(() => REJECTED);
  let read = list.map((item, index) => {
    const one = readItem(readOne, batch.agentId, item);
    if (!(one instanceof DroverError)) return one;
    answers[index] = refusedItem(one, index);
    return null;
  });
  if (read.some((item) => item !== null && item.submission.artifact !== null))
    read = await Promise.all(read.map((item, index) => (item === null ? null : lookForItem(item, index))));
  if (read.some(isTied)) placeTied(parts, list, read, answers);
  else placeUntied(parts, read, answers);
  let accepted = 0;
  for (const { state } of answers) if (state !== "rejected") accepted++;
  return { tasks: answers, submitted: list.length, accepted, rejected: list.length - accepted };
}

/** Places items that do not name each other, all at the same time of the clock. */
function placeUntied(parts: PlacingParts, read: readonly (ReadTask | null)[], answers: BatchItem[]): void {
  const { state, sureNow } = parts.writer;
  const at = sureNow();
  for (let index = 0; index < read.length; index++) {
    const item = read[index] ?? null;
    if (item === null) continue;
    const decided = decideNow(parts, item, at);
    if (!decided.ok) {
      answers[index] = refusedItem(turnAway(parts, item, decided.failure), index);
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

const isTied = (item: ReadTask | null): boolean =>
  item !== null && (item.submission.parent !== null || item.submission.needs.length > 0);

/** Places items that may name each other: dependencies first, and none whose dependency was turned away. */
function placeTied(
  parts: PlacingParts,
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
    const answer = placeUnless(turnedAway, parts, item);
    if (answer instanceof DroverError) turnedAway.add(item.submission.id);
    answers[index] = answer instanceof DroverError ? refusedItem(answer, index) : itemAnswer(answer);
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

/** The id a bad item would have had, as far as can be told. */
function idOfItem(item: unknown): unknown {
  try {
    return isRecord(item) ? (item.id ?? null) : null;
  } catch {
    return null;
  }
}

/** An item whose dependency was turned away in the same batch is not placed either, and says so. */
function placeUnless(turnedAway: ReadonlySet<unknown>, parts: PlacingParts, item: ReadTask): Submitted | DroverError {
  const { parent, needs } = item.submission;
  const dependency = [parent, ...needs].find((id) => id !== null && turnedAway.has(id)) ?? null;
  if (dependency === null) return place(parts, item);
  return refused({ type: "dependency-refused", field: dependency === parent ? "parent" : "needs", dependency });
}

function itemAnswer({ taskId, state, position }: Submitted): BatchItem {
  return { taskId, state, ...(position === undefined ? {} : { position }) };
}

/** What is wrong with an item, where it is the item that stands there: `tasks[1].action is …`. */
function refusedItem({ refusal, message, details: { taskId } }: DroverError, index: number): BatchItem {
  const error =
    refusal !== null && "field" in refusal
      ? sentence({ ...refusal, field: placeInBatch(refusal.field, index) })
      : message;
  return { state: "rejected", error, ...(typeof taskId === "string" ? { taskId } : {}) };
}

const placeInBatch = (field: string, index: number): string =>
  field === "(body)" ? `tasks[${index}]` : `tasks[${index}].${field}`;

function readBatch(batch: unknown): readonly unknown[] {
  if (!isRecord(batch)) throw badInput("(body)", batch, "an object with agentId and tasks");
  const known = [...Object.keys(SHARED), "tasks"];
  const stranger = Object.keys(batch).find((key) => !known.includes(key));
  if (stranger !== undefined) throw refused({ type: "unknown-field", field: stranger, known });
  for (const [field, reader] of Object.entries(SHARED)) {
    if (batch[field] === undefined && field !== "agentId") continue;
    const read = reader(batch[field], field);
    if (!read.ok) throw refused(read.failure);
  }
  if (!Array.isArray(batch.tasks) || batch.tasks.length === 0)
    throw badInput("tasks", batch.tasks, "a list of at least one task");
  // Holes are items too, and bad ones.
  return Array.from(batch.tasks);
}
