/**
 * What callers do with tasks: submit, cancel, run again, read, wait.
 *
 * Bodies are read once, at the door; what is turned away for want of room is remembered for a while though it
 * never enters the log. A batch is submitted item by item in an order in which dependencies come first,
 * and one bad item never fails the others.
 */

import { isThrottling } from "../core/admission.ts";
import { type Instant, type TaskId, taskId } from "../core/brand.ts";
import type { Decided, Warning } from "../core/commands.ts";
import { priority as priorityReader } from "../core/config.ts";
import { batchOrder } from "../core/dependency.ts";
import { countAhead } from "../core/queue.ts";
import { type Refusal, sentence } from "../core/refusal.ts";
import { isRecord, name, orNull, readSection, text } from "../core/shape-of-input.ts";
import { hasEnded, type Task } from "../core/state.ts";
import { type ArtifactExists, askWhetherThere } from "./artifact-watch.ts";
import { abortSignal, readOptions } from "./call-options.ts";
import { badInput, DroverError, isStop, refused } from "./drover-error.ts";
import type { EndWatch } from "./end-watch.ts";
import { type ItemReader, instantField, itemReader, type ReadTask, readTaskBody, type TaskBody } from "./task-body.ts";
import { matcher, readPage, readTask, type TaskFilter, type TaskPage, type TaskSources } from "./task-reading.ts";
import { isoTime, type TaskState, type TaskView } from "./task-view.ts";

const CANCELLED_AT_ONCE_MAX = 10_000;

export type Submitted = {
  readonly taskId: string;
  readonly state: TaskState;
  readonly position?: number;
  readonly createdAt: string;
  readonly throttle?: true;
  readonly warnings?: readonly Warning[];
};
export type BatchBody = {
  readonly agentId: string;
  readonly project?: string;
  readonly callbackUrl?: string;
  readonly tasks: readonly Omit<TaskBody, "agentId">[];
};
export type BatchItem = {
  readonly taskId?: string;
  readonly state: TaskState;
  readonly position?: number;
  readonly error?: string;
};
export type BatchAnswer = {
  readonly tasks: readonly BatchItem[];
  readonly submitted: number;
  readonly accepted: number;
  readonly rejected: number;
};
export type TaskDesk = {
  submit(body: TaskBody): Promise<Submitted>;
  submitBatch(batch: BatchBody): Promise<BatchAnswer>;
  cancel(task: string, options?: { reason?: string }): Promise<void>;
  /** Cancels every live task the filter names, or all of them, at most 10 000 at once; answers how many. */
  cancelWhere(filter: TaskFilter | { readonly all: true }): Promise<number>;
  retry(task: string): Promise<Submitted>;
  patch(
    task: string,
    change: { priority?: TaskBody["priority"]; deadline?: string | number | null },
  ): Promise<Submitted>;
  task(task: string): Promise<TaskView>;
  tasks(filter?: TaskFilter & { limit?: number; cursor?: string }): Promise<TaskPage>;
  /** Resolves with its final state when the task has ended; cheaper than `wait`, since it reads no body. */
  ended(task: string, options?: { signal?: AbortSignal }): Promise<TaskState>;
  /** Resolves with the task when it has ended. */
  wait(task: string, options?: { signal?: AbortSignal }): Promise<TaskView>;
  idOf(task: unknown): TaskId;
};
/** For those who submit by themselves, and try again: decided now, durable later; the answer, or why not. */
export type Placer = { place(body: unknown): Submitted | DroverError };

const SIGNAL = { signal: abortSignal };
const readName = name();

export type TaskDeskParts = TaskSources & { readonly ends: EndWatch; readonly exists: ArtifactExists };

export function createTaskDesk(parts: TaskDeskParts): { readonly desk: TaskDesk; readonly placer: Placer } {
  const { writer, ends } = parts;
  const { state } = writer;

  /** Not an async function, which would cost as much again as all it does here. */
  function submit(body: TaskBody): Promise<Submitted> {
    try {
      const given = readTaskBody(body);
      // Without an artifact nothing is awaited before it is decided: what a program asks in order happens in order.
      if (given.submission.artifact === null) return whenSettled(place(parts, given));
      return lookForArtifact(parts, given).then((found) => whenSettled(place(parts, found)));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  function whenSettled(answer: Submitted | DroverError): Promise<Submitted> {
    return writer.settled().then(() => {
      if (answer instanceof DroverError) throw answer;
      return answer;
    });
  }

  function placeNow(body: unknown): Submitted | DroverError {
    try {
      return place(parts, readTaskBody(body), false);
    } catch (error) {
      if (error instanceof DroverError && !isStop(error)) return error;
      throw error;
    }
  }

  async function submitBatch(batch: BatchBody): Promise<BatchAnswer> {
    const answer = await placeBatch(parts, batch);
    await writer.settled();
    return answer;
  }

  async function cancel(task: string, options?: { reason?: string }): Promise<void> {
    const { reason = null } = readOptions<{ reason?: string }>({ reason: text(0, 1024) }, options);
    await writer.run({ type: "cancel-task", task: idOf(task), reason });
  }

  async function cancelWhere(filter: TaskFilter | { readonly all: true }): Promise<number> {
    const matches = matcher(isAll(filter) ? {} : notEmpty(filter), ["all"]);
    const found: TaskId[] = [];
    for (const task of state.tasks.values()) {
      if (hasEnded(task) || !matches(task)) continue;
      found.push(task.id);
      if (found.length >= CANCELLED_AT_ONCE_MAX) break;
    }
    for (const task of found) writer.execute({ type: "cancel-task", task, reason: null });
    await writer.settled();
    return found.length;
  }

  async function retry(task: string): Promise<Submitted> {
    const id = idOf(task);
    await writer.run({ type: "retry-task", task: id });
    return answerFor(parts, id, state.tasks.get(id));
  }

  async function patch(
    task: string,
    change: { priority?: TaskBody["priority"]; deadline?: string | number | null },
  ): Promise<Submitted> {
    const id = idOf(task);
    const fields = { priority: priorityReader, deadline: orNull(instantField) };
    const read = readSection<{ priority?: number; deadline?: number | null }>(fields as never, {}, change, "");
    if (!read.ok) throw refused(read.failure);
    const { priority = null, deadline } = read.value;
    const decision = await writer.run({
      type: "patch-task",
      task: id,
      priority,
      deadline: deadline as Instant | null | undefined,
    });
    return answerFor(parts, id, state.tasks.get(id), decision.warnings);
  }

  async function task(given: string): Promise<TaskView> {
    const id = idOf(given);
    await writer.settled();
    const view = await readTask(parts, id);
    await writer.settled();
    return view;
  }

  /** Not an async function: everybody who waits for a task that runs is given the same promise. */
  function ended(given: string, options?: { signal?: AbortSignal }): Promise<TaskState> {
    try {
      const id = idOf(given);
      const signal = options === undefined ? undefined : readOptions<{ signal?: AbortSignal }>(SIGNAL, options).signal;
      const known = state.tasks.get(id);
      return known === undefined || hasEnded(known) ? endOf(id) : ends.wait(id, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async function endOf(id: TaskId): Promise<TaskState> {
    await writer.settled();
    const found = state.tasks.get(id) ?? state.tombstones.get(id);
    if (found === undefined && parts.rejected.find(id, writer.now(), state.config.scheduler.resultTtl) !== null)
      return "rejected";
    if (found === undefined) throw refused({ type: "task-unknown", task: id });
    return found.phase;
  }

  async function wait(given: string, options?: { signal?: AbortSignal }): Promise<TaskView> {
    await ended(given, options);
    return task(given);
  }

  const tasks = async (filter: TaskFilter & { limit?: number; cursor?: string } = {}): Promise<TaskPage> => {
    await writer.settled();
    const page = await readPage(parts, filter);
    await writer.settled();
    return page;
  };
  const desk = { submit, submitBatch, cancel, cancelWhere, retry, patch, task, tasks, ended, wait, idOf };
  return { desk, placer: { place: placeNow } };
}

const isAll = (filter: unknown): filter is { readonly all: true } =>
  isRecord(filter) && filter.all === true && Object.keys(filter).length === 1;

/** A filter whose only field came out undefined would cancel the whole fleet: that must be asked for by name. */
function notEmpty(filter: TaskFilter): TaskFilter {
  if (isRecord(filter) && Object.values(filter).every((value) => value === undefined))
    throw badInput(
      "filter",
      filter,
      "at least one of agentId, project, state and type; or { all: true } for every task",
    );
  return filter;
}

function idOf(task: unknown): TaskId {
  const read = readName(task, "taskId");
  if (!read.ok) throw refused(read.failure);
  return taskId(read.value);
}

/** Whether the input artifact is there already is part of what is decided. */
async function lookForArtifact({ exists }: TaskDeskParts, read: ReadTask): Promise<ReadTask> {
  const { artifact } = read.submission;
  if (artifact === null || !(await askWhetherThere(exists, artifact))) return read;
  return { ...read, submission: { ...read.submission, artifactReady: true } };
}

/** Decides a submit now; the answer may leave when it is durable. What found no room is kept unless told otherwise. */
function place(parts: TaskDeskParts, { submission, text: body }: ReadTask, isKept = true): Submitted | DroverError {
  const { writer, bodies, rejected } = parts;
  const decided: Decided = writer.execute({ type: "submit-task", submission }, body);
  if (!decided.ok) {
    const { failure } = decided;
    if (!isForWantOfRoom(failure) || !isKept) return refused(failure);
    const { id, agent: agentId, project } = submission;
    const turnedAway = rejected.add({ id, agentId, project, error: sentence(failure) }, writer.now());
    return refused(failure, { taskId: turnedAway });
  }
  const { id, repeated, warnings } = decided.value;
  const task = writer.state.tasks.get(id as TaskId);
  if (repeated !== true && task !== undefined) bodies.keep(task.seq, body);
  return answerFor(parts, id as TaskId, task, warnings);
}

const isForWantOfRoom = (refusal: Refusal): boolean =>
  refusal.type === "queue-full" || refusal.type === "backpressure" || refusal.type === "no-workers";

function answerFor(
  { writer }: TaskDeskParts,
  id: TaskId,
  task: Task | undefined,
  warnings: readonly Warning[] = [],
): Submitted {
  const { state } = writer;
  const throttles = isThrottling(state);
  if (task !== undefined && task.group !== null && !throttles && warnings.length === 0) {
    const position = countAhead(state, task, writer.now()) + 1;
    return { taskId: id, state: task.phase, position, createdAt: isoTime(task.createdAt) };
  }
  const stone = state.tombstones.get(id);
  return {
    taskId: id,
    state: task?.phase ?? stone?.phase ?? "done",
    ...(task === undefined || task.group === null ? {} : { position: countAhead(state, task, writer.now()) + 1 }),
    createdAt: isoTime(task?.createdAt ?? stone?.endedAt ?? writer.now()),
    ...(throttles ? { throttle: true } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

async function placeBatch(parts: TaskDeskParts, batch: BatchBody): Promise<BatchAnswer> {
  async function lookForItem(item: ReadTask, index: number): Promise<ReadTask | null> {
    try {
      return await lookForArtifact(parts, item);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      answers[index] = { state: "rejected", error: error.message };
      return null;
    }
  }

  const { maxBatch } = parts.writer.state.config.scheduler;
  const list = readBatch(batch);
  if (list.length > maxBatch) throw refused({ type: "batch-too-large", submitted: list.length, max: maxBatch });
  const answers: BatchItem[] = list.map(() => REJECTED);
  const readOne = itemReader(batch);
  let read = list.map((item, index) => {
    const one = readItem(readOne, item, index);
    if (!(one instanceof DroverError)) return one;
    answers[index] = { state: "rejected", error: one.message };
    return null;
  });
  if (read.some((item) => item !== null && item.submission.artifact !== null))
    read = await Promise.all(read.map((item, index) => (item === null ? null : lookForItem(item, index))));
  if (read.some(isTied)) placeTied(parts, list, read, answers);
  else for (let index = 0; index < read.length; index++) placeItem(parts, read[index] ?? null, answers, index);
  let accepted = 0;
  for (const { state } of answers) if (state !== "rejected") accepted++;
  return { tasks: answers, submitted: list.length, accepted, rejected: list.length - accepted };
}

function placeItem(parts: TaskDeskParts, item: ReadTask | null, answers: BatchItem[], index: number): void {
  if (item !== null) answers[index] = itemAnswer(place(parts, item));
}

const REJECTED: BatchItem = { state: "rejected" };

const isTied = (item: ReadTask | null): boolean =>
  item !== null && (item.submission.parent !== null || item.submission.needs.length > 0);

/** Places items that may name each other: dependencies first, and none whose dependency was turned away. */
function placeTied(
  parts: TaskDeskParts,
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
    answers[index] = itemAnswer(answer);
  }
}

/** One item of a batch as a task of its own, or what is wrong with it. */
function readItem(readOne: ItemReader, item: unknown, index: number): ReadTask | DroverError {
  if (!isRecord(item)) return badInput(`tasks[${index}]`, item, "an object");
  if ("agentId" in item) return badInput(`tasks[${index}].agentId`, item.agentId, "absent: the batch names the agent");
  try {
    return readOne(item);
  } catch (error) {
    if (error instanceof DroverError) return error;
    throw error;
  }
}

const idOfItem = (item: unknown): unknown => (isRecord(item) ? (item.id ?? null) : null);

/** An item whose dependency was turned away in the same batch is not placed either, and says so. */
function placeUnless(turnedAway: ReadonlySet<unknown>, parts: TaskDeskParts, item: ReadTask): Submitted | DroverError {
  const { parent, needs } = item.submission;
  const dependency = [parent, ...needs].find((id) => id !== null && turnedAway.has(id)) ?? null;
  if (dependency === null) return place(parts, item);
  return refused({ type: "dependency-refused", field: dependency === parent ? "parent" : "needs", dependency });
}

function itemAnswer(answer: Submitted | DroverError): BatchItem {
  if (answer instanceof DroverError) {
    const { taskId } = answer.details;
    return { state: "rejected", error: answer.message, ...(typeof taskId === "string" ? { taskId } : {}) };
  }
  const { taskId, state, position } = answer;
  return { taskId, state, ...(position === undefined ? {} : { position }) };
}

function readBatch(batch: unknown): readonly unknown[] {
  if (!isRecord(batch)) throw badInput("(body)", batch, "an object with agentId and tasks");
  const known = ["agentId", "project", "callbackUrl", "tasks"];
  const stranger = Object.keys(batch).find((key) => !known.includes(key));
  if (stranger !== undefined) throw refused({ type: "unknown-field", field: stranger, known });
  for (const field of ["agentId", ...(batch.project === undefined ? [] : ["project"])]) {
    const read = readName(batch[field], field);
    if (!read.ok) throw refused(read.failure);
  }
  if (!Array.isArray(batch.tasks) || batch.tasks.length === 0)
    throw badInput("tasks", batch.tasks, "a list of at least one task");
  return batch.tasks;
}
