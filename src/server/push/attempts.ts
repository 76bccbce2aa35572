/**
 * The attempts one push worker has in hand: posted, waiting for a slot, or with a broken connection.
 *
 * An attempt is posted once, and not before the log has it as running: it is named first, and posted when the sync that
 * named it was answered. So the reader of a log after a crash knows what may have been posted. One that waits for a
 * slot is not named. What was named and not posted is taken back while it can still be told from the rest.
 *
 * There is no limit of time here: the task's timeout and deadline are the engine's, which says `cancel` when they are
 * over, and then the connection is cut. Answers become results (response.ts), kept until the engine has confirmed
 * them.
 *
 * A connection that could not be made reached no worker: the task goes back to the queue. One that broke later leaves
 * open whether the worker acted. If the worker turns out to be there, it broke off this one request, and the attempt
 * has failed; for good, if its task must not be repeated. If it is not, the attempt is no longer named, and is lost to
 * the engine like that of any worker that was lost.
 */
import type { PushTarget } from "../../core/model/index.ts";
import { ExchangeFailure } from "../../http/index.ts";
import type { Assignment, AttemptRef, ResultReport, SyncAnswer } from "../../protocol/index.ts";
import { present, readRetryAfter } from "../../std/index.ts";
import { type Health, type PushWorld, pushRequest } from "./request.ts";
import { ANSWER_BYTES_MAX, outcomeOf, type PushOutcome } from "./response.ts";

/** What has happened: the worker answered, cannot be reached or broke off, or there is a result to report. */
export type PushNews = "answer" | "doubt" | "result";
type Named = AttemptRef;
type Entry = Named & {
  readonly task: Assignment["task"];
  readonly token: string | undefined;
  readonly controller: AbortController;
  state: "waiting" | "named" | "posted" | "broken";
  isCancelled: boolean;
  breach: string;
};
export type PushAttempts = {
  take(assignments: SyncAnswer["assignments"]): void;
  cancel(named: readonly Named[]): void;
  /** What is to be named as running: those that are posted, and those that have a slot and will be. */
  running(): Named[];
  /** Whether some of these wait for being named. */
  isNaming(): boolean;
  /** The engine has these as running: those that were not posted are. */
  post(named: readonly Named[]): void;
  /** Those that the engine has not confirmed yet. */
  results(): ResultReport[];
  confirm(answers: readonly Named[]): void;
  /** What became of those whose connection broke, now that it is known whether the worker is there. */
  judge(health: Health): void;
  /** Those that were not posted, and are not going to be. */
  takeBack(): Named[];
  /** All are stopped and forgotten: they are this worker's no more. */
  abandon(reason: string): void;
  count(): number;
};

export function createPushAttempts(deps: {
  readonly target: PushTarget;
  readonly slots: number;
  readonly world: PushWorld;
  readonly onNews: (news: PushNews) => void;
}): PushAttempts {
  const { target, slots, onNews } = deps;
  const { clock, exchange, version, onProblem } = deps.world;
  const held = new Map<string, Entry>();
  const results = new Map<string, ResultReport>();
  /** Requests under way, also of what was dropped meanwhile. */
  let posting = 0;

  function takeOne(given: Assignment): void {
    const { task, token } = given;
    const known = held.get(given.taskId);
    if (isSame(known, given) || results.has(keyOf(given))) return;
    if (known !== undefined) drop(known, "another attempt of its task counts now");
    const controller = new AbortController();
    const unposted = { state: "waiting", isCancelled: false, breach: "" } as const;
    held.set(given.taskId, { ...nameOf(given), task, token, controller, ...unposted });
  }

  const count = (state: Entry["state"]): number => [...held.values()].filter((entry) => entry.state === state).length;

  function running(): Named[] {
    let free = slots - count("named") - posting;
    for (const entry of held.values()) {
      if (entry.state !== "waiting" || free-- <= 0) continue;
      entry.state = "named";
    }
    return [...held.values()].filter(({ state }) => state !== "waiting").map(nameOf);
  }

  async function post(entry: Entry): Promise<void> {
    entry.state = "posted";
    posting++;
    try {
      const { attempt, token } = entry;
      const request = pushRequest(target, entry.task, { attempt, version, ...present({ token }) });
      if (!request.ok) return finish(entry, { outcome: "failed", error: request.failure, permanent: true });
      const answer = await exchange({ ...request.value, signal: entry.controller.signal });
      const body = await answer.read(ANSWER_BYTES_MAX);
      const { "content-type": contentType = "", "retry-after": retryAfter } = answer.headers;
      const retryAfterMs = readRetryAfter(retryAfter, clock.now());
      onNews("answer");
      finish(entry, outcomeOf({ status: answer.status, contentType, retryAfterMs, ...body }));
    } catch (error) {
      breakOff(entry, error);
    } finally {
      posting--;
    }
  }

  function breakOff(entry: Entry, error: unknown): void {
    if (held.get(entry.taskId) !== entry) return;
    if (entry.isCancelled) return finish(entry, { outcome: "cancelled" });
    if (!(error instanceof ExchangeFailure)) {
      onProblem(error);
      return finish(entry, { outcome: "failed", error: `it could not be posted: ${String(error)}`, permanent: true });
    }
    if (error.reached === "none") {
      finish(entry, { outcome: "requeue", error: `its worker cannot be reached: ${error.message}`, retryAfterMs: 0 });
    } else {
      entry.state = "broken";
      entry.breach = `its worker broke off the connection: ${error.message}`;
    }
    onNews("doubt");
  }

  function finish(entry: Entry, outcome: PushOutcome | { outcome: "cancelled" }): void {
    // One that was abandoned meanwhile is somebody else's by now.
    if (held.get(entry.taskId) !== entry) return;
    held.delete(entry.taskId);
    results.set(keyOf(entry), { ...nameOf(entry), ...outcome });
    onNews("result");
  }

  function drop(entry: Entry, reason: string): void {
    held.delete(entry.taskId);
    entry.controller.abort(new Error(reason));
  }

  function cancelOne(named: Named): void {
    const entry = held.get(named.taskId);
    if (!isSame(entry, named) || entry.isCancelled) return;
    entry.isCancelled = true;
    if (entry.state === "posted") entry.controller.abort(new Error("cancelled"));
    else finish(entry, { outcome: "cancelled" });
  }

  return {
    take(assignments) {
      for (const assignment of assignments) takeOne(assignment);
    },
    cancel(named) {
      for (const one of named) cancelOne(one);
    },
    running,
    isNaming: () => count("named") > 0,
    post(named) {
      for (const one of named) {
        const entry = held.get(one.taskId);
        if (isSame(entry, one) && entry.state === "named") void post(entry);
      }
    },
    results: () => [...results.values()],
    confirm(answers) {
      for (const answer of answers) results.delete(keyOf(answer));
    },
    judge(health) {
      for (const entry of [...held.values()]) {
        if (entry.state !== "broken") continue;
        if (health === "answers") finish(entry, brokenOff(entry));
        else drop(entry, "its worker is gone");
      }
    },
    takeBack() {
      const unposted = [...held.values()].filter(({ state }) => state === "waiting" || state === "named");
      for (const entry of unposted) drop(entry, "it goes back to the queue");
      return unposted.map(nameOf);
    },
    abandon(reason) {
      results.clear();
      for (const entry of [...held.values()]) drop(entry, reason);
    },
    count: () => held.size,
  };
}

const nameOf = ({ taskId, attempt, taskSeq }: Named): Named => ({ taskId, attempt, ...present({ taskSeq }) });
/** Not if it is of another task of the same id. */
const isSame = (entry: Entry | undefined, { attempt, taskSeq = entry?.taskSeq }: Named): entry is Entry =>
  entry?.attempt === attempt && entry.taskSeq === taskSeq;

/** It may have acted before it broke off, so what must not be repeated is not tried again. */
const brokenOff = ({ task, breach }: Entry): PushOutcome =>
  task.onLoss === "fail"
    ? { outcome: "failed", error: `its outcome is unknown: ${breach}`, permanent: true }
    : { outcome: "failed", error: breach };

const keyOf = ({ taskId, attempt, taskSeq }: Named): string => `${taskId}#${attempt} ${taskSeq}`;
