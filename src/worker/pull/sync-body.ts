/**
 * One sync as a body that the server will take: what runs, what has ended, within a size.
 *
 * A body has a limit, and results may be large. What does not fit waits for the next sync, and until then its attempt
 * is still named as running: one that is neither running nor reported would be given to another worker.
 */
import type { AttemptRef, FileRef, ResultReport, RunningReport } from "../../protocol/index.ts";
import type { Report, Update } from "./messages.ts";

/** The server takes 1 MiB unless it is told otherwise; the rest is for session, status and braces. */
const BODY_BYTES_MAX = 900 * 1024;
const UPDATE_BYTES_MAX = 128 * 1024;
/** What a report costs beside its result and its error. */
const FRAME_BYTES = 256;

export type Ended = AttemptRef & { readonly report: Report };
export type Running = AttemptRef & { readonly update: Update | null };
type Packed<One> = {
  readonly running: readonly RunningReport[];
  readonly results: readonly ResultReport[];
  /** Whose update is in it. */
  readonly told: readonly One[];
};

/** At most `resultsMax` results and, if that is one, no update: for finding out what the server will not take. */
export function packBody<One extends Running>(
  running: readonly One[],
  ended: readonly Ended[],
  resultsMax: number,
): Packed<One> {
  const names = running.length + ended.length;
  let room = BODY_BYTES_MAX - [...running, ...ended].reduce((sum, { taskId }) => sum + nameBytes(taskId), 0);
  const told = resultsMax === 1 ? [] : within(running.filter(hasUpdate), UPDATE_BYTES_MAX, updateBytes);
  room -= told.reduce((sum, { update }) => sum + updateBytes({ update }), 0) + names;
  const fitting = within(ended.slice(0, resultsMax), room, reportBytes);
  // One always goes, or nothing ever would.
  const reported = fitting.length === 0 ? ended.slice(0, 1) : fitting;
  const waiting = ended.slice(reported.length);
  const withUpdate = new Set<Running>(told);
  return {
    running: [...running.map((one) => runningJson(one, withUpdate.has(one))), ...waiting.map(nameOf)],
    results: reported.map(resultJson),
    told,
  };
}

function within<Item>(items: readonly Item[], bytesMax: number, bytesOf: (item: Item) => number): readonly Item[] {
  let bytes = 0;
  const end = items.findIndex((item) => {
    bytes += bytesOf(item);
    return bytes > bytesMax;
  });
  return end < 0 ? items : items.slice(0, end);
}

const hasUpdate = ({ update }: Running): boolean => update !== null;
const nameOf = ({ taskId, attempt }: AttemptRef): AttemptRef => ({ taskId, attempt });
const nameBytes = (taskId: string): number => Buffer.byteLength(taskId) + 40;
const updateBytes = ({ update }: Pick<Running, "update">): number => Buffer.byteLength(update?.progress ?? "") + 100;
const reportBytes = ({ report: { result = "", error = "", files = [] } }: Ended): number =>
  // Text may double when it is quoted.
  Buffer.byteLength(result) + 2 * Buffer.byteLength(error) + FRAME_BYTES + sum(files.map(fileBytes));
const fileBytes = ({ path }: FileRef): number => 2 * Buffer.byteLength(path) + FRAME_BYTES;
const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);

function runningJson({ taskId, attempt, update }: Running, isTold: boolean): RunningReport {
  if (!isTold || update === null) return { taskId, attempt };
  const { progress, ...usage } = update;
  return {
    taskId,
    attempt,
    ...usage,
    ...(progress === undefined ? {} : { progress: JSON.parse(progress) as unknown }),
  };
}

function resultJson({ taskId, attempt, report }: Ended): ResultReport {
  const { result, ...rest } = report;
  return { taskId, attempt, ...rest, ...(result === undefined ? {} : { result: JSON.parse(result) as unknown }) };
}
