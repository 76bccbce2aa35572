/**
 * What callers do with tasks: submit, cancel, run again, read, wait.
 *
 * Bodies are read once, at the edge. `submit.ts` submits them.
 */
import {
  ERROR_LENGTH_MAX,
  flag,
  type Instant,
  isRecord,
  name,
  orNull,
  readSection,
  type TaskId,
  taskId,
  text,
} from "../../core/base/index.ts";
import { priority as priorityReader } from "../../core/config/index.ts";
import { type Command, hasEnded } from "../../core/model/index.ts";
import type {
  AnyParams,
  BatchAnswer,
  Cancelled,
  CancelledMany,
  SharedCalls,
  Submitted,
  TaskPage,
  TaskState,
  TaskView,
} from "../../protocol/index.ts";
import { type Clock, inSlices } from "../../std/index.ts";
import { abortSignal, readOptions } from "../base/call-options.ts";
import { accepted, badInput, DroverError, isStop, reading, refused } from "../base/drover-error.ts";
import type { EndWatch } from "./await-end.ts";
import { type ChildApi, createChildApi } from "./children.ts";
import { createGroupApi, type GroupApi } from "./groups.ts";
import {
  candidates,
  type Matcher,
  matcher,
  type PageFilter,
  readPage,
  readTask,
  type TaskFilter,
} from "./read-tasks.ts";
import { answerFor, type BatchInput, lookForArtifact, type SubmitParts, submitAll, submitRead } from "./submit.ts";
import { instantField, readTaskBody, type TaskInput } from "./task-body.ts";

const CANCELLED_AT_ONCE_MAX = 10_000;
const AWAITED_MAX = 1000;

export type TaskApi = Pick<SharedCalls, "approve" | "cancel" | "retry" | "task" | "wait"> &
  GroupApi &
  ChildApi & {
    /** Submits a task; answers when it is durable. The same id and body again is the same task. */
    submit<Params extends object = AnyParams>(task: TaskInput<Params>): Promise<Submitted>;
    /** Submits many tasks at once. A bad item never fails the others; items may need each other by id. */
    submitBatch(batch: BatchInput): Promise<BatchAnswer>;
    /** Pages through tasks, in the order of submission or the other way round. */
    tasks(query?: PageFilter): Promise<TaskPage>;
    /** Cancels every live task the filter names, or all of them, at most 10 000 at once. */
    cancelWhere(filter: TaskFilter | { readonly all: true }): Promise<CancelledMany>;
    /** Changes the priority or deadline of a task; answers how it stands then. */
    patch(
      task: string,
      change: {
        /** Its new priority. */
        priority?: TaskInput["priority"];
        /** Its new deadline; null takes it away. */
        deadline?: string | number | null;
      },
    ): Promise<Submitted>;
    /** Resolves with its final state when the task has ended; cheaper than `wait`, since it reads no body. */
    ended(
      task: string,
      options?: {
        /** Stops the waiting. */
        signal?: AbortSignal;
      },
    ): Promise<TaskState>;
    /** Resolves with the first of these tasks that has ended; each of them must be known. */
    firstEnded(
      tasks: readonly string[],
      options?: {
        /** Stops the waiting. */
        signal?: AbortSignal;
      },
    ): Promise<string>;
    /** The id of a task, checked. */
    idOf(task: unknown): TaskId;
  };
/** For who tells many answers together: what is decided now may be told when it is durable. */
export type EarlyCalls = {
  /** Submits a task: the answer, or why not. Null if its artifact is to be looked for first: it is not decided. */
  submit(task: TaskInput): Submitted | DroverError | null;
  /** Resolves when all that was decided so far is durable. */
  settled(): Promise<void>;
};
/** For those who submit by themselves, and try again: decided now, durable later; the answer, or why not. */
type SubmitNow = (body: unknown) => Submitted | DroverError;

const SIGNAL = { signal: abortSignal };
const readName = name();

type TaskApiParts = SubmitParts & { readonly ends: EndWatch; readonly clock: Clock };

export function createTaskApi(parts: TaskApiParts): {
  readonly api: TaskApi;
  readonly submitNow: SubmitNow;
  readonly early: EarlyCalls;
} {
  const { writer } = parts;
  const { state } = writer;

  /** Not an async function, which would cost as much again as all it does here. */
  function submit(body: TaskInput): Promise<Submitted> {
    try {
      const given = readTaskBody(body);
      // Without an artifact nothing is awaited before it is decided: what a program asks in order happens in order.
      if (given.submission.artifact === null) return whenSettled(submitRead(parts, given));
      return lookForArtifact(parts, given).then((found) => whenSettled(submitRead(parts, found)));
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

  function submitEarly(body: TaskInput): Submitted | DroverError | null {
    try {
      const read = readTaskBody(body);
      return read.submission.artifact === null ? submitRead(parts, read) : null;
    } catch (error) {
      if (error instanceof DroverError && !isStop(error)) return error;
      throw error;
    }
  }

  function submitNow(body: unknown): Submitted | DroverError {
    try {
      return submitRead(parts, readTaskBody(body), false);
    } catch (error) {
      if (error instanceof DroverError && !isStop(error)) return error;
      throw error;
    }
  }

  async function submitBatch(batch: BatchInput): Promise<BatchAnswer> {
    const answer = await submitAll(parts, batch);
    await writer.settled();
    return answer;
  }

  async function cancel(task: string, options?: { reason?: string }): Promise<Cancelled> {
    const { reason = null } = readOptions<{ reason?: string }>({ reason: text(0, 1024) }, options);
    const id = idOf(task);
    checkLetIn(id);
    await writer.run({ type: "cancel-task", task: id, reason });
    return { status: "cancelled", taskId: id };
  }

  /** One that was turned away has ended before it began. */
  function checkLetIn(id: TaskId): void {
    if (state.tasks.has(id) || state.tombstones.has(id) || !isRejected(id)) return;
    throw refused({ type: "task-ended", task: id, state: "rejected" });
  }

  const isRejected = (id: TaskId): boolean =>
    parts.rejected.find(id, writer.now(), state.config.scheduler.resultTtl) !== null;

  async function cancelWhere(filter: TaskFilter | { readonly all: true }): Promise<CancelledMany> {
    const wanted = reading(filter, "", () => matcher(isAll(filter) ? {} : notEmpty(filter), ["all"]));
    const found: TaskId[] = [];
    for (const task of candidates(state, wanted)) {
      if (hasEnded(task) || !wanted.matches(task)) continue;
      found.push(task.id);
      if (found.length >= CANCELLED_AT_ONCE_MAX) break;
    }
    const count = await inSlices(cancelling(found, wanted), parts.clock);
    await writer.settled();
    return { status: "cancelled", count };
  }

  /** Others have their turns in between: one of them may have ended meanwhile, or begun and be no longer meant. */
  function* cancelling(found: readonly TaskId[], wanted: Matcher): Generator<undefined, number> {
    let count = 0;
    for (const task of found) {
      const now = state.tasks.get(task);
      const isMeant = now !== undefined && !hasEnded(now) && wanted.matches(now);
      if (isMeant) writer.execute({ type: "cancel-task", task, reason: null });
      if (state.tasks.get(task)?.phase === "cancelled") count++;
      yield;
    }
    return count;
  }

  async function approve(task: string, answer?: { note?: string; deny?: boolean }): Promise<Submitted> {
    const fields = { note: text(0, ERROR_LENGTH_MAX), deny: flag };
    const { note = null, deny = false } = readOptions<{ note?: string; deny?: boolean }>(fields, answer);
    return decideOn(idOf(task), (id) => ({ type: "approve-task", task: id, note, deny }));
  }

  async function retry(task: string): Promise<Submitted> {
    return decideOn(idOf(task), (id) => ({ type: "retry-task", task: id }));
  }

  /** What a command made of a task, as of when it was decided: by the time that is durable it may have gone on. */
  async function decideOn(id: TaskId, command: (id: TaskId) => Command): Promise<Submitted> {
    checkLetIn(id);
    const decided = writer.execute(command(id));
    const answer = decided.ok ? answerFor(parts, id, state.tasks.get(id), decided.value.warnings) : null;
    await writer.settled();
    accepted(decided);
    return answer as Submitted;
  }

  async function patch(
    task: string,
    change: { priority?: TaskInput["priority"]; deadline?: string | number | null },
  ): Promise<Submitted> {
    const id = idOf(task);
    const fields = { priority: priorityReader, deadline: orNull(instantField) };
    const read = readSection<{ priority?: number; deadline?: number | null }>(fields as never, {}, change, "");
    const { priority = null, deadline: given } = accepted(read);
    const deadline = given as Instant | null | undefined;
    return decideOn(id, (task) => ({ type: "patch-task", task, priority, deadline }));
  }

  async function task(given: string): Promise<TaskView> {
    return readTask(parts, idOf(given));
  }

  const tasks = async (filter: PageFilter = {}): Promise<TaskPage> => readPage(parts, filter);
  const api = {
    ...createGroupApi(parts),
    ...createChildApi(parts),
    ...createEndApi(parts, isRejected),
    submit,
    submitBatch,
    approve,
    cancel,
    cancelWhere,
    retry,
    patch,
    task,
    tasks,
    idOf,
  } as TaskApi;
  return { api, submitNow, early: { submit: submitEarly, settled: writer.settled } };
}

/** Waiting for the end of tasks. */
function createEndApi(
  parts: TaskApiParts,
  isRejected: (id: TaskId) => boolean,
): Pick<TaskApi, "ended" | "firstEnded" | "wait"> {
  const { writer, ends } = parts;
  const { state } = writer;

  /** Not an async function: all callers that wait for a task that runs are given the same promise. */
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
    if (found === undefined && isRejected(id)) return "rejected";
    if (found === undefined) throw refused({ type: "task-unknown", task: id });
    return found.phase;
  }

  async function firstEnded(given: readonly string[], options?: { signal?: AbortSignal }): Promise<string> {
    if (!Array.isArray(given) || given.length === 0 || given.length > AWAITED_MAX)
      throw badInput("tasks", given, `a list of 1 to ${AWAITED_MAX} ids`);
    const ids = given.map(idOf);
    const { signal } = readOptions<{ signal?: AbortSignal }>(SIGNAL, options);
    const over = ids.find((id) => {
      const known = state.tasks.get(id);
      return known === undefined || hasEnded(known);
    });
    if (over === undefined) return ends.first(ids, signal);
    await endOf(over);
    return over;
  }

  async function wait(given: string, options?: { signal?: AbortSignal }): Promise<TaskView> {
    await ended(given, options);
    return readTask(parts, idOf(given));
  }

  return { ended, firstEnded, wait: wait as TaskApi["wait"] };
}

const isAll = (filter: unknown): filter is { readonly all: true } =>
  isRecord(filter) && filter.all === true && Object.keys(filter).length === 1;

/** A filter whose only field came out undefined would cancel the whole fleet: that must be asked for by name. */
function notEmpty(filter: TaskFilter): TaskFilter {
  if (isRecord(filter) && Object.values(filter).every((value) => value === undefined))
    throw badInput(
      "filter",
      filter,
      "at least one of agentId, project, state, type, label, group, parent and root; or { all: true } for every task",
    );
  return filter;
}

const idOf = (task: unknown): TaskId => taskId(accepted(readName(task, "taskId")));
