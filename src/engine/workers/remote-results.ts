/**
 * What a worker over the wire says of how its attempts ended.
 *
 * Only the worker that holds an attempt has a say, and only in the attempt that is live. A result that is sent again
 * because its answer was lost is known again and counts once: by what the state or, where the task's record is gone,
 * the log has of its end; or, where the task goes on, by what this process remembers of the last reports. Which task
 * of its id a report means, it says (`taskSeq`): one that is forgotten cannot end a later one.
 */
import { hash } from "node:crypto";
import { cutError, type Seq, type TaskId, taskId, type WorkerId } from "../../core/base/index.ts";
import type { Attempt, AttemptReport, Event, Tombstone } from "../../core/model/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import { type Log, LogFailure } from "../../log/index.ts";
import type { ResultAnswer, ResultReport } from "../../protocol/index.ts";
import { LastOnes, RESULT_BYTES_MAX } from "../../std/index.ts";
import { type Payload, payloadOf } from "../base/canonical-json.ts";
import { countTokens, detailsOf } from "../base/charged-tokens.ts";
import { DroverError } from "../base/drover-error.ts";
import type { FileRoom, FilesFault } from "../files/files.ts";
import { reportOf } from "../tasks/handler-outcome.ts";
import type { Writer } from "../writer/writer.ts";

const REMEMBERED_MAX = 50_000;

/** A result that Drover cannot keep: its task has failed for good. */
type BadResult = "result_too_large" | "bad_result" | "bad_files";
type Code = "duplicate" | "not_found" | "not_held" | "stale_attempt" | "conflict" | "files_missing" | BadResult;

export type RemoteResults = {
  /** Takes a result that a worker reports. */
  take(worker: WorkerId, given: ResultReport): ResultAnswer;
  /** The same answers; one that seems to come too late may be the end of its task, as the log has it. */
  knownAgain(given: readonly ResultReport[], answers: readonly ResultAnswer[]): Promise<readonly ResultAnswer[]>;
};

export function createRemoteResults(
  writer: Writer,
  files: Pick<FileRoom, "faultOf">,
  log: Pick<Log, "readRecord">,
  /** What was missing where an end was not taken. */
  missing: WeakMap<Attempt, string>,
): RemoteResults {
  /** Digests of the last reports that counted and made no task done, by the number of its own event, and attempt. */
  const counted = new LastOnes<number | string, string>(REMEMBERED_MAX);

  function take(worker: WorkerId, given: ResultReport): ResultAnswer {
    const { attempt: number, taskSeq } = given;
    const id = taskId(given.taskId);
    const fault = given.files === undefined ? null : files.faultOf(given.files);
    // The answer of a push worker is its last word: it cannot put what is missing and report again.
    const isFinal = fault !== null && (!fault.isMissing || writer.state.fleet.byId.get(worker)?.kind === "push");
    const read = readPlain(id, given) ?? readReport(id, given, isFinal ? fault : null);
    const task = writer.state.tasks.get(id);
    const known = task ?? writer.state.tombstones.get(id);
    // What it was given was an earlier task of the same id, which is forgotten.
    if (known === undefined || (taskSeq ?? known.seq) !== known.seq) return answerTo(given, false, "not_found");
    const live = task?.attempt ?? null;
    if (live === null || live.number !== number) {
      const isRepeated = counted.get(keyOf(known.seq, number)) === read.digest || isEndOf(writer, id, read.report);
      return isRepeated ? answerTo(given, true, "duplicate") : answerTo(given, false, "stale_attempt");
    }
    if (live.worker.id !== worker) return answerTo(given, false, "not_held");
    // The attempt is not over by this: its worker does not name it any more, and it is queued again.
    if (fault !== null && !isFinal) {
      missing.set(live, `${fault.why}, or is gone with the node that had it`);
      return answerTo(given, false, "files_missing");
    }
    const decided = writer.execute({ type: "finish-attempt", report: read.report }, read.text);
    if (!decided.ok) return answerTo(given, false, "stale_attempt");
    // A task that was cancelled, or ran out of time, is over: what came of it all the same does not count.
    // One that waits for its children is parked by it.
    const isDone = read.report.outcome === "done";
    if (isDone && task?.phase !== "done" && task?.phase !== "parked") return answerTo(given, false, "conflict");
    // What is done is known again by its end; one that waits for its children may end otherwise.
    if (!isDone || task?.phase === "parked") counted.set(keyOf(live.task.seq, number), read.digest);
    return answerTo(given, true, read.bad);
  }

  /** One at a time: nobody else waits behind ten thousand reads. */
  async function knownAgain(given: readonly ResultReport[], answers: readonly ResultAnswer[]) {
    const { tombstones } = writer.state;
    const stones = answers.map(({ taskId: name, code }) => code === "stale_attempt" && tombstones.get(taskId(name)));
    const known = [...answers];
    // What was decided just now is in the log once it is durable.
    await writer.settled();
    for (const [index, answer] of answers.entries()) {
      const stone = stones[index] || null;
      const end = stone === null ? null : await buriedEnd(log, stone);
      if (stone === null || end === null) continue;
      const { report } = readReport(stone.id, given[index] as ResultReport, null);
      if (isSameEnd(end, report)) known[index] = { ...answer, accepted: true, code: "duplicate" };
    }
    return known;
  }

  return { take, knownAgain };
}

function answerTo({ taskId: name, attempt, taskSeq }: ResultReport, accepted: boolean, code?: Code): ResultAnswer {
  const answer = taskSeq === undefined ? { taskId: name, attempt } : { taskId: name, attempt, taskSeq };
  return code === undefined ? { ...answer, accepted } : { ...answer, accepted, code };
}

/** Nearly all are of a first attempt. */
const keyOf = (seq: number, attempt: number): number | string => (attempt === 1 ? seq : `${seq} ${attempt}`);

type Read = {
  readonly report: AttemptReport;
  readonly text?: string;
  readonly digest: string;
  readonly bad?: BadResult;
};

/** That it is done, and nothing beside its result: nearly all reports are so. */
function readPlain(task: TaskId, given: ResultReport): Read | null {
  const { attempt, outcome, result, taskSeq } = given;
  const plain = 3 + (result === undefined ? 0 : 1) + (taskSeq === undefined ? 0 : 1);
  if (outcome !== "done" || Object.keys(given).length !== plain) return null;
  const payload = payloadIn(result);
  if (payload === undefined) return { report: reportOf({ task, attempt, tokens: null }, "done"), digest: "done " };
  if (payload instanceof DroverError || payload.size > RESULT_BYTES_MAX) return null;
  const { text, size, hash: resultHash } = payload;
  const report = reportOf({ task, attempt, tokens: null }, "done", null, resultHash, size);
  return { report, digest: `done ${resultHash}`, text };
}

function readReport(task: TaskId, given: ResultReport, fault: FilesFault | null): Read {
  const { attempt, outcome, error = null, retryAfterMs, rateLimited = false, permanent = false, usage } = given;
  const note = given.note?.toWellFormed() ?? null;
  const question = given.question?.toWellFormed() ?? null;
  const { timeoutMs = null } = given;
  const tokens = usage === undefined ? null : countTokens(usage);
  const details = usage === undefined ? null : detailsOf(usage);
  const shownError = error?.toWellFormed() ?? null;
  const rest = retryAfterMs === undefined ? null : Math.ceil(retryAfterMs);
  const told = { error: shownError, retryAfterMs: rest, rateLimited, permanent, note, question, timeoutMs };
  const plain = { ...reportOf({ task, attempt, tokens, usage: details }, outcome), ...told };
  const payload = outcome === "done" ? payloadIn(given.result) : undefined;
  // Another attempt would not mend it: the worker has the result and Drover will not take it. To refuse the sync
  // instead would keep out all else that the worker has to say, and the worker would say it again for ever.
  const unkept = (bad: BadResult, why: string, permanent = true): Read => ({
    report: { ...plain, outcome: "failed", error: why, permanent },
    digest: `${bad} ${why}`,
    bad,
  });
  if (fault !== null) return unkept("bad_files", fault.why, !fault.isMissing);
  if (payload instanceof DroverError) return unkept("bad_result", payload.message);
  if (payload !== undefined && payload.size > RESULT_BYTES_MAX) {
    const most = `at most ${RESULT_BYTES_MAX} are kept; write more to an artifact`;
    return unkept("result_too_large", `its result is ${payload.size} bytes, and ${most}`);
  }
  const resultHash = payload?.hash ?? null;
  const words = shownError ?? note ?? question ?? "";
  const digest = `${outcome} ${resultHash ?? (words === "" ? "" : hash("sha256", words, "hex"))}`;
  const left = given.files === undefined ? {} : { files: given.files };
  const report = { ...plain, resultHash, resultSize: payload?.size ?? 0, ...left };
  return { report, digest, ...(payload === undefined ? {} : { text: payload.text }) };
}

/** The result as it is kept, or what is wrong with it. */
function payloadIn(result: unknown): Payload | DroverError | undefined {
  if (result === undefined) return undefined;
  try {
    return payloadOf(result, "result");
  } catch (error) {
    if (error instanceof DroverError) return error;
    throw error;
  }
}

/** Whether the log has just this as the end of the task. */
function isEndOf({ state }: Writer, id: TaskId, report: AttemptReport): boolean {
  const task = state.tasks.get(id);
  const answer = task?.extra?.wait?.answer ?? null;
  // It waits for its children, and has answered.
  if (answer !== null && answer.attempt === report.attempt)
    return report.outcome === "done" && answer.resultHash === report.resultHash;
  if (task?.end == null) return false;
  const { resultHash, error } = task.end;
  return isSameEnd({ phase: task.phase, attempt: task.attempts, resultHash, error }, report);
}

type KnownEnd = {
  readonly phase: string;
  readonly attempt: number | null;
  readonly resultHash: string | null;
  readonly error: string | null;
};

function isSameEnd(end: KnownEnd, { outcome, attempt, resultHash, error }: AttemptReport): boolean {
  if (end.phase !== outcome || end.attempt !== attempt) return false;
  if (outcome === "done") return end.resultHash === resultHash;
  return (outcome === "failed" || outcome === "skipped") && error !== null && end.error === cutError(error);
}

/** How a task ended whose record is gone; null if the log has it no more, or no attempt ended it. */
async function buriedEnd(log: Pick<Log, "readRecord">, { phase, endSeq }: Tombstone): Promise<KnownEnd | null> {
  const event = await eventAt(log, endSeq as Seq);
  if (event?.kind === "task-done") return { phase, attempt: event.attempt, resultHash: event.resultHash, error: null };
  if (event?.kind !== "task-failed" && event?.kind !== "task-skipped") return null;
  return { phase, attempt: event.attempt, resultHash: null, error: event.reason };
}

/** Null if it is pruned or damaged: a worker that says again what cannot be read must not be kept from all else. */
async function eventAt(log: Pick<Log, "readRecord">, seq: Seq): Promise<Event | null> {
  try {
    const record = await log.readRecord(seq);
    return record === null || record.bytes.length === 0 ? null : decodeEvent(record.bytes, seq).event;
  } catch (error) {
    if (error instanceof LogFailure && error.code === "corrupt") return null;
    throw error;
  }
}
