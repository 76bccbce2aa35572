/**
 * How much may be stored: what a project stores in a minute, and how far the log may grow.
 *
 * Bodies, results and events of a project are added up as they are stored. A project that has stored
 * `bytesPerMinute` in the last minute may add no more work until part of it has passed: so nobody fills a disk
 * by submitting and cancelling. When the log has reached `log.maxBytes` nobody adds work until old events are pruned,
 * and its last tenth is kept for projects that have stored less than a hundredth of it. Reports and ends are booked and
 * never refused: a result that was turned away would be lost for good.
 *
 * It is judged here and not in the core, between deciding and applying: what is refused was never stored, so a replay
 * needs no knowledge of it. What this process has booked is forgotten when it ends; how large the log is, is asked of
 * the log itself from time to time.
 */
import type { ProjectId, TaskId } from "../core/brand.ts";
import type { Command } from "../core/commands.ts";
import type { ProjectSettings } from "../core/config.ts";
import { settingsFor } from "../core/config-change.ts";
import type { Refusal } from "../core/refusal.ts";
import { isKeptForOthers, keptOf } from "../core/reserve.ts";
import type { State } from "../core/state.ts";
import { RollingSum } from "../core/window.ts";
import type { Log } from "../log/log.ts";

const MINUTE_MS = 60_000;
/** A second of the minute is one bucket; a thirtieth of `log.retain` another. */
const [SECONDS, DAYS] = [60, 30];
/** What the events of a task, a call or a change take, beside bodies and results: about so much. */
const TASK_BYTES = 192;
const CALL_BYTES = 384;
const CHANGE_BYTES = 96;
/** The log is asked for its size again when so much was added, and not more often than this while it is full. */
const LOOK_AGAIN_PART = 1000;
const LOOK_AGAIN_MS = 1000;

export type StorageGuard = {
  /** Books what a command stores. Where it adds work and there is no room: why not, and nothing is booked. */
  weigh(command: Command, at: number): Refusal | null;
  /** The same for what is stored for a project by another way. */
  add(project: ProjectId, bytes: number, at: number): Refusal | null;
  /** Asks the log for its size. */
  measure(): Promise<void>;
};

export function createStorageGuard({ state, log }: { readonly state: State; readonly log: Log }): StorageGuard {
  const minutes = new Map<ProjectId, RollingSum>();
  /** What each has stored while the log keeps it, as far as this process knows. Only if the log is bounded. */
  const held = new Map<ProjectId, RollingSum>();
  const size = { known: 0, since: 0, lookedAt: Number.NEGATIVE_INFINITY, isLooking: false };

  const settingsOf = (project: ProjectId): ProjectSettings =>
    state.projects.get(project)?.settings ?? settingsFor(state.config, project)[0];

  async function measure(): Promise<void> {
    if (size.isLooking || state.config.log.maxBytes === null) return;
    size.isLooking = true;
    const { since } = size;
    try {
      size.known = await log.bytes();
      size.since -= since;
    } catch {
      // A log that cannot be read says so to everybody else.
    } finally {
      size.isLooking = false;
    }
  }

  function lookAgain(at: number, max: number): void {
    if (size.since <= max / LOOK_AGAIN_PART && at - size.lookedAt < LOOK_AGAIN_MS) return;
    size.lookedAt = at;
    void measure();
  }

  /** What it has stored in the last minute; null where nobody asks. */
  function minuteOf(project: ProjectId): RollingSum | null {
    if (settingsOf(project).bytesPerMinute === null) return null;
    const known = minutes.get(project);
    if (known !== undefined) return known;
    const minute = new RollingSum(MINUTE_MS, SECONDS);
    minutes.set(project, minute);
    return minute;
  }

  function refusalOfMinute(project: ProjectId, minute: RollingSum | null, bytes: number, at: number): Refusal | null {
    const stored = minute?.total(at) ?? 0;
    // Whoever has stored nothing may store one body, however large.
    if (minute === null || stored === 0) return null;
    const max = settingsOf(project).bytesPerMinute ?? Number.POSITIVE_INFINITY;
    if (stored + bytes <= max) return null;
    const freeAt = minute.belowAt(Math.max(1, max - bytes + 1), at) ?? at + MINUTE_MS;
    return { type: "bytes-per-minute", project, stored, max, retryAfterMs: freeAt - at };
  }

  function refusalOfLog(project: ProjectId, bytes: number, at: number): Refusal | null {
    const max = state.config.log.maxBytes;
    if (max === null) return null;
    lookAgain(at, max);
    const used = size.known + size.since;
    if (used + bytes > max) return { type: "log-full", bytes: used, max };
    const mine = held.get(project)?.total(at) ?? 0;
    return isKeptForOthers(max, used, mine) ? { type: "log-full", bytes: used, max, project, kept: keptOf(max) } : null;
  }

  function book(project: ProjectId, minute: RollingSum | null, bytes: number, at: number): void {
    minute?.add(bytes, at);
    const { maxBytes, retain } = state.config.log;
    if (maxBytes === null) return;
    size.since += bytes;
    const sum = held.get(project) ?? new RollingSum(retain, DAYS);
    sum.add(bytes, at);
    held.set(project, sum);
  }

  function add(project: ProjectId, bytes: number, at: number): Refusal | null {
    const minute = minuteOf(project);
    const full = refusalOfMinute(project, minute, bytes, at) ?? refusalOfLog(project, bytes, at);
    if (full === null) book(project, minute, bytes, at);
    return full;
  }

  const projectOf = (task: TaskId): ProjectId | null => state.tasks.get(task)?.project.id ?? null;
  function ofTask(task: TaskId, bytes: number, at: number, isRefusable: boolean): Refusal | null {
    const project = projectOf(task);
    if (project === null) return null;
    if (isRefusable) return add(project, bytes, at);
    book(project, minuteOf(project), bytes, at);
    return null;
  }

  function weigh(command: Command, at: number): Refusal | null {
    switch (command.type) {
      case "submit-task":
        return add(command.submission.project, command.submission.bodySize + TASK_BYTES, at);
      case "finish-attempt": {
        const { task, resultSize, error } = command.report;
        return ofTask(task, resultSize + (error?.length ?? 0), at, false);
      }
      case "cancel-task":
        return ofTask(command.task, CHANGE_BYTES + (command.reason?.length ?? 0), at, false);
      case "retry-task":
      case "patch-task":
        return ofTask(command.task, CHANGE_BYTES, at, true);
      case "ask-permit":
        // A call of a task that runs is part of what was let in already.
        return command.task === null
          ? add(command.project, CALL_BYTES, at)
          : ofTask(command.task, CALL_BYTES, at, false);
      default:
        return null;
    }
  }

  return { weigh, add, measure };
}
