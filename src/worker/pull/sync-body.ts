/**
 * One sync as a body that the server will take: what runs, what has ended, within a size.
 *
 * A body has a limit, and results may be large. What does not fit waits for the next sync, and until then its attempt
 * is still named as running: one that is neither running nor reported would be given to another worker. Results and
 * progress are JSON text where they come from, and go into the body as they are.
 */
import type { AttemptRef, FileRef } from "../../protocol/index.ts";
import type { Report, Update } from "./messages.ts";
import { DONE } from "./outcome.ts";

/** The server takes 1 MiB unless it is told otherwise; the rest is for session, status and braces. */
const BODY_BYTES_MAX = 900 * 1024;
const UPDATE_BYTES_MAX = 128 * 1024;
/** What a report costs beside its result and its error. */
const FRAME_BYTES = 256;

export type SyncCall = {
  readonly n: number;
  readonly workerId: string;
  readonly waitMs: number;
  /** The server may hold it. */
  readonly isQuiet: boolean;
  /** The body, as JSON. */
  readonly text: string;
};
export type Ended = AttemptRef & { readonly report: Report };
export type Running = AttemptRef & { readonly update: Update | null };
type Packed<One, Over> = {
  /** Those that are named as running. */
  readonly named: readonly (One | Over)[];
  /** Those whose end is in it. */
  readonly reported: readonly Over[];
  /** Those whose update is in it. */
  readonly told: readonly One[];
  /** All this, as fields of an object; empty where there is nothing of the kind, but for `running`. */
  readonly running: string;
  readonly unbegun: string;
  readonly results: string;
};

/** At most `resultsMax` results and, if that is one, no update: for finding out what the server will not take. */
export function packBody<One extends Running, Over extends Ended>(
  running: readonly One[],
  ended: readonly Over[],
  unbegun: readonly AttemptRef[],
  resultsMax: number,
): Packed<One, Over> {
  let room = BODY_BYTES_MAX;
  for (const one of running) room -= nameBytes(one);
  for (const one of ended) room -= nameBytes(one);
  for (const one of unbegun) room -= nameBytes(one);
  const told = resultsMax === 1 ? [] : within(running.filter(hasUpdate), UPDATE_BYTES_MAX, updateBytes);
  for (const one of told) room -= updateBytes(one);
  const fitting = within(ended.slice(0, resultsMax), room, reportBytes);
  // One always goes, or nothing ever would.
  const reported = fitting.length === 0 ? ended.slice(0, 1) : fitting;
  const waiting = ended.slice(reported.length);
  const withUpdate = new Set<Running>(told);
  const said = running.map((one) => runningText(one, withUpdate.has(one) ? one.update : null));
  const left = waiting.map((one) => runningText(one, null));
  return {
    named: [...running, ...waiting],
    reported,
    told,
    running: `"running":[${[...said, ...left].join()}]`,
    unbegun: unbegun.length === 0 ? "" : `"unbegun":[${unbegun.map((one) => runningText(one, null)).join()}]`,
    results: reported.length === 0 ? "" : `"results":[${reported.map(resultText).join()}]`,
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
const nameBytes = ({ taskId }: AttemptRef): number => Buffer.byteLength(taskId) + 71;
const updateBytes = ({ update }: Pick<Running, "update">): number => Buffer.byteLength(update?.progress ?? "") + 100;
function reportBytes({ report }: Ended): number {
  if (isPlain(report)) return FRAME_BYTES + (report.result === undefined ? 0 : Buffer.byteLength(report.result));
  const { result = "", error = "", files = [] } = report;
  // Text may double when it is quoted.
  const bytes = Buffer.byteLength(result) + 2 * Buffer.byteLength(error) + FRAME_BYTES;
  return files.reduce((sum, file) => sum + fileBytes(file), bytes);
}
const fileBytes = ({ path }: FileRef): number => 2 * Buffer.byteLength(path) + FRAME_BYTES;

/** That it is done, and nothing beside its result: nearly all reports are so. */
const isPlain = (report: Report): boolean =>
  report === DONE ||
  (report.outcome === "done" && Object.keys(report).length === (report.result === undefined ? 1 : 2));

function nameText({ taskId, attempt, taskSeq }: AttemptRef): string {
  const name = `"taskId":${JSON.stringify(taskId)},"attempt":${attempt}`;
  return taskSeq === undefined ? name : `${name},"taskSeq":${taskSeq}`;
}

function runningText(one: AttemptRef, update: Update | null): string {
  if (update === null) return `{${nameText(one)}}`;
  const { progress, usage } = update;
  const shown = progress === undefined ? "" : `,"progress":${progress}`;
  return `{${nameText(one)}${shown}${usage === undefined ? "" : `,"usage":${JSON.stringify(usage)}`}}`;
}

function resultText(one: Ended): string {
  const { report } = one;
  return `{${nameText(one)},${saidBeside(report)}${report.result === undefined ? "" : `,"result":${report.result}`}}`;
}

function saidBeside(report: Report): string {
  if (isPlain(report)) return '"outcome":"done"';
  const { result: _, ...rest } = report;
  return JSON.stringify(rest).slice(1, -1);
}
