/**
 * Tasks are submitted: decided, applied, and answered; one, or many in one call.
 *
 * What is turned away for want of room is remembered for a while though it never enters the log. The items of a batch
 * are submitted one by one, in a sequence in which dependencies come first, and one bad item never fails the others.
 * Items that do not name each other are all submitted at one reading of the clock. An item is read like a task of its
 * own; only its refusal names the field by its path in the batch.
 */
import { type Instant, isRecord, type Refusal, sentence, type TaskId } from "../../core/base/index.ts";
import { batchOrder, isThrottling } from "../../core/lifecycle/index.ts";
import { type Decided, type Decision, hasEnded, type State, type Task, type Warning } from "../../core/model/index.ts";
import { countAhead } from "../../core/turn/index.ts";
import type { BatchAnswer, BatchBody, BatchItem, BatchTask, Submitted } from "../../protocol/index.ts";
import { Checked } from "../../protocol/schema/index.ts";
import { batchBody } from "../../protocol/shapes/index.ts";
import { isoTime } from "../../std/index.ts";
import { readBody } from "../base/call-options.ts";
import { badInput, DroverError, faultOfReading, refused } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import { type ArtifactSource, askWhetherThere } from "./artifacts.ts";
import type { TaskSources } from "./read-tasks.ts";
import type { RejectedCounter } from "./rejected.ts";
import { type ItemReader, itemReader, type ReadTask, type TaskInput } from "./task-body.ts";

export type SubmitParts = TaskSources & {
  readonly writer: Writer;
  readonly artifacts: ArtifactSource;
  readonly rejections: RejectedCounter;
};

/** Whether the input artifact is there already is part of what is decided. */
export async function lookForArtifact({ artifacts }: SubmitParts, read: ReadTask): Promise<ReadTask> {
  const { artifact } = read.submission;
  if (artifact === null) return read;
  artifacts.check(artifact);
  if (!(await askWhetherThere(artifacts.exists, artifact))) return read;
  return { ...read, submission: { ...read.submission, artifactReady: true } };
}
/** Decides a submit now; the answer may leave when it is durable. What found no room is kept unless told otherwise. */
export function submitRead(
  parts: SubmitParts,
  read: ReadTask,
  isKept = true,
  origin: Origin = ALONE,
): Submitted | DroverError {
  const decided = decideNow(parts, read, origin);
  if (!decided.ok) return isKept ? turnAway(parts, read, decided.failure) : refused(decided.failure);
  const { id, warnings } = decided.value;
  return answerFor(parts, id as TaskId, takeIn(parts, read, decided.value), warnings);
}

/** What a task is submitted with: its group, and the attempt of its parent that submits it. */
type Origin = { readonly group: string | null; readonly ofRunning: number | null };
const ALONE: Origin = { group: null, ofRunning: null };

const decideNow = (
  { writer }: SubmitParts,
  { submission, text }: ReadTask,
  { group, ofRunning }: Origin,
  at?: Instant,
): Decided => writer.execute({ type: "submit-task", submission, group, ofRunning }, text, at);

/** The task that a submit was decided to be; the body of a new one is kept at hand. */
function takeIn(
  { writer, bodies }: SubmitParts,
  { text, plain, shown }: ReadTask,
  { id, repeated }: Decision,
): Task | undefined {
  const task = writer.state.tasks.get(id as TaskId);
  if (task !== undefined && repeated !== true && !hasEnded(task)) bodies.keep(task.seq, text, plain, shown);
  return task;
}

/** What found no room is remembered for a while, under an id to ask by. */
function turnAway(
  { writer, rejected, rejections }: SubmitParts,
  { submission, text }: ReadTask,
  failure: Refusal,
): DroverError {
  if (!isForWantOfRoom(failure)) return refused(failure);
  const turnedAway = rejected.add({ submission, text, error: sentence(failure) }, writer.now());
  rejections.count(submission.agent);
  return refused(failure, { taskId: turnedAway });
}

const isForWantOfRoom = (refusal: Refusal): boolean =>
  refusal.type === "queue-full" || refusal.type === "backpressure" || refusal.type === "no-workers";

export function answerFor(
  { writer }: SubmitParts,
  id: TaskId,
  task: Task | undefined,
  warnings: readonly Warning[] = [],
): Submitted {
  const { state } = writer;
  const throttles = isThrottling(state);
  if (task !== undefined && task.group !== null && !throttles && warnings.length === 0) {
    const position = countAhead(state, task, state.at) + 1;
    return { taskId: id, state: task.phase, position, createdAt: isoTime(task.createdAt) };
  }
  const stone = state.tombstones.get(id);
  return {
    taskId: id,
    state: task?.phase ?? stone?.phase ?? "done",
    ...(task === undefined || task.group === null ? {} : { position: countAhead(state, task, state.at) + 1 }),
    createdAt: isoTime(task?.createdAt ?? stone?.createdAt ?? writer.now()),
    ...(throttles ? { throttle: true } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

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

/** `ofRunning`: the attempt of the parent of all of them that submits them. */
export async function submitAll(
  parts: SubmitParts,
  given: BatchInput,
  ofRunning: number | null = null,
): Promise<BatchAnswer> {
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
  const { state } = parts.writer;
  // No other batch has this number: every group has a task, and that an event of its own.
  const group = `${OWN_GROUP}${state.seq + 1}`;
  const origin = { group, ofRunning };
  if (read.some(namesOthers)) placeDependent(parts, list, read, answers, origin);
  else submitIndependent(parts, read, answers, origin);
  let accepted = 0;
  for (const { state } of answers) if (state !== "rejected") accepted++;
  const groupId = state.groups.has(group) ? group : groupOfKnown(state, answers);
  return {
    ...(groupId === null ? {} : { groupId }),
    tasks: answers,
    submitted: list.length,
    accepted,
    rejected: list.length - accepted,
  };
}

/** What the ids of groups begin with that Drover makes. */
const OWN_GROUP = "grp_";

/** The same batch once more is the same tasks, and so the same group. */
function groupOfKnown({ tasks }: State, answers: readonly BatchItem[]): string | null {
  for (const { taskId } of answers) {
    const group = taskId === undefined ? null : (tasks.get(taskId as TaskId)?.extra?.group ?? null);
    if (group !== null) return group.group.id;
  }
  return null;
}

/** Places items that do not name each other, all at the same time of the clock. */
function submitIndependent(
  parts: SubmitParts,
  read: readonly (ReadTask | null)[],
  answers: BatchItem[],
  origin: Origin,
): void {
  const { state, sureNow } = parts.writer;
  const at = sureNow();
  for (let index = 0; index < read.length; index++) {
    const item = read[index] ?? null;
    if (item === null) continue;
    const decided = decideNow(parts, item, origin, at);
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
  origin: Origin,
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
    const answer = submitUnless(turnedAway, parts, item, origin);
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
function submitUnless(
  turnedAway: ReadonlySet<unknown>,
  parts: SubmitParts,
  item: ReadTask,
  origin: Origin,
): Submitted | DroverError {
  const { parent, needs } = item.submission;
  const dependency = [parent, ...needs].find((id) => id !== null && turnedAway.has(id)) ?? null;
  if (dependency === null) return submitRead(parts, item, true, origin);
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
