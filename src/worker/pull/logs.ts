/**
 * The logs of a pull worker, handed in when the server asks for one.
 *
 * Somebody waits at the server, but not for long: so a log is read and handed in on the side, a few at a time, and if
 * that fails nothing is lost, for the server asks again as long as somebody waits. What was handed in is not read a
 * second time for an answer that was already on its way. A read that does not end, as on a share that is gone, is given
 * up after as long as anybody waits, and what has waited here that long is dropped: the next ones get their turn.
 */
import { errorText } from "../../core/base/index.ts";
import { LOG_BYTES_MAX, LOG_ERROR_MAX, type LogBody, type LogStatus, type WantedLog } from "../../protocol/index.ts";
import { type Clock, realClock, ringAfter } from "../../std/index.ts";
import type { WantedLogs } from "./messages.ts";

/** The end of what an attempt wrote. */
export type LogEnd = {
  /** The last lines. */
  readonly text: string;
  /** Whether there was more before. */
  readonly truncated: boolean;
};
/** Which log, and how much of its end. */
export type LogWish = Omit<WantedLog, "id">;
/** What a worker says of the logs it keeps. */
export type WorkerLogs = {
  /** A name for where they lie, the same after a restart. */
  readonly place: string;
  /** The last lines of what an attempt wrote, running or not; null if there is no such log. */
  read(wish: LogWish): Promise<LogEnd | null> | LogEnd | null;
};
type LogService = { want(wanted: WantedLogs): void };

const AT_ONCE_MAX = 4;
const WAITING_MAX = 64;
const DONE_MAX = 256;
/** No reader at the server waits longer. */
export const READ_MS = 5000;
/** Of reads that were given up and have not ended; with so many, none is begun. */
export const STUCK_MAX = 32;
/** These need no warning: the server has given up waiting, or is away and will ask again. */
const WORTH_A_WARNING: ReadonlySet<unknown> = new Set(["bad_request", "too_large", "forbidden", "unauthorized"]);

export function createLogService(deps: {
  readonly logs: WorkerLogs;
  readonly handIn: (workerId: string, body: LogBody) => Promise<LogStatus>;
  readonly warn: (message: string) => void;
  readonly clock?: Pick<Clock, "elapsed" | "ringAt">;
}): LogService {
  const { logs, handIn, warn, clock = realClock } = deps;
  const waiting = new Map<string, { readonly since: number; readonly work: () => Promise<void> }>();
  const underWay = new Set<string>();
  const done = new Set<string>();

  let open = 0;

  async function read(wish: LogWish): Promise<LogEnd | null> {
    if (open >= STUCK_MAX + AT_ONCE_MAX) throw new Error(`${open} reads of other logs have not ended`);
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(new Error(`reading it has taken more than ${READ_MS} ms`));
    const stopAlarm = ringAfter(clock, READ_MS, giveUp);
    open++;
    const reading = (async () => logs.read(wish))().finally(() => open--);
    try {
      return await Promise.race([reading, late.promise]);
    } finally {
      stopAlarm();
    }
  }

  async function serve(workerId: string, session: string, { id, ...wish }: WantedLog): Promise<void> {
    try {
      await handIn(workerId, { session, id, ...(await endOf(read, wish)) });
      done.add(id);
      for (const oldest of done) if (done.size > DONE_MAX) done.delete(oldest);
    } catch (error) {
      if (WORTH_A_WARNING.has((error as { code?: unknown }).code))
        warn(`the log of task ${wish.taskId}, attempt ${wish.attempt}, was not taken: ${errorText(error)}`);
    }
  }

  function next(): void {
    for (const [id, { since, work }] of waiting) {
      if (underWay.size >= AT_ONCE_MAX) return;
      waiting.delete(id);
      if (clock.elapsed() - since >= READ_MS) continue;
      underWay.add(id);
      void work().finally(() => {
        underWay.delete(id);
        next();
      });
    }
  }

  return {
    want({ workerId, session, logs: wanted }) {
      for (const one of wanted) {
        if (done.has(one.id) || underWay.has(one.id) || waiting.has(one.id) || waiting.size >= WAITING_MAX) continue;
        waiting.set(one.id, { since: clock.elapsed(), work: () => serve(workerId, session, one) });
      }
      next();
    },
  };
}

async function endOf(
  read: (wish: LogWish) => Promise<LogEnd | null>,
  wish: LogWish,
): Promise<Pick<LogBody, "text" | "truncated" | "error">> {
  try {
    const found = await read(wish);
    return found === null ? { text: null } : withinBytes(found, Math.min(wish.bytes, LOG_BYTES_MAX));
  } catch (error) {
    return { text: null, error: shortError(errorText(error), wish.bytes) };
  }
}

/** Its beginning, which says most; of a server that takes small bodies only, as much as it takes. */
function shortError(message: string, bytesMax: number): string {
  let error = message.slice(0, LOG_ERROR_MAX).toWellFormed();
  while (error !== "" && jsonBytes(error) > bytesMax)
    error = error.slice(0, -Math.ceil(error.length / 20)).toWellFormed();
  return error;
}

/** As much of its end as the server takes, from the beginning of a line where that is possible. */
export function withinBytes({ text, truncated }: LogEnd, bytesMax: number): LogEnd {
  const whole = text.toWellFormed();
  if (jsonBytes(whole) <= bytesMax) return { text: whole, truncated };
  // A character is at most six bytes of JSON, so this many always fit; as long as more do, more are shown.
  let [fits, tooMany] = [Math.max(0, Math.floor((bytesMax - 2) / 6)), Math.min(whole.length, bytesMax)];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (jsonBytes(lastOf(whole, middle)) <= bytesMax) fits = middle;
    else tooMany = middle;
  }
  const end = lastOf(whole, fits);
  const beginsLine = whole[whole.length - end.length - 1] === "\n";
  const line = beginsLine ? 0 : end.indexOf("\n") + 1;
  return { text: line < end.length ? end.slice(line) : end, truncated: true };
}

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));
/** The last so many, without half a character at its beginning. */
function lastOf(text: string, count: number): string {
  if (count === 0) return "";
  const end = text.slice(-count);
  return end.isWellFormed() ? end : end.slice(1);
}
