/**
 * `GET /tasks/{id}/logs`: the end of what an attempt wrote, wherever that lies.
 *
 * First beside the server, where its own worker and those that share its directory write. Else the worker that ran the
 * attempt is asked (log-requests.ts). Whatever stands in the way is said with the worker's name, and what to do about
 * it.
 *
 * Logs live longer than the ids of tasks are taken. So a log that was last written before the task was submitted is of
 * another task, perhaps of another agent, and is none: neither here nor with a worker.
 */
import type { TaskId } from "../../core/base/index.ts";
import { refused } from "../../engine/base/index.ts";
import { createTurnstile, inItsTurn, isScoped, ServerRefusal } from "../../http/index.ts";
import { type LogsQuery, TAIL_LINES_DEFAULT, type TaskLogs } from "../../protocol/index.ts";
import { checkTask } from "../access/token-scope.ts";
import { createAttemptWorkers, type RanBy } from "../logs/attempt-worker.ts";
import { LOG_WAIT_MS, type LogOutcome } from "../logs/log-requests.ts";
import type { Deps, Exchange } from "./handler.ts";

/** Each may be a mebibyte. */
const READ_AT_ONCE = 8;
const LOOKS_MAX = 100;

type Place = { readonly taskId: string } & RanBy;
type Asked = Omit<Place, "since">;
type Needed = Pick<Deps, "drover" | "polls" | "logs" | "logsOf" | "hearsWorkers">;

export function createTaskLogs(deps: Needed): (id: string, query: LogsQuery, exchange: Exchange) => Promise<TaskLogs> {
  const attempts = createAttemptWorkers(deps.drover);
  const inTurn = createTurnstile(READ_AT_ONCE);
  /** For the worker of an attempt, through the log. */
  const looks = createTurnstile(1, LOOKS_MAX);

  /** What lies beside the server; without an instant, whatever task of that id has written it. */
  async function keptHere(
    taskId: string,
    attempt: number | undefined,
    { lines, since, exchange }: { lines: number; since?: number; exchange: Exchange },
  ): Promise<TaskLogs | null> {
    const asked = { tail: lines, ...(since === undefined ? {} : ageOf(since)) };
    const found = await inItsTurn(inTurn, exchange, async () => deps.logsOf(taskId, attempt, asked));
    return found === null ? null : { taskId, ...found };
  }

  async function fromFar({ taskId, since, ...ran }: Place, lines: number, signal: AbortSignal): Promise<TaskLogs> {
    const keeper = deps.hearsWorkers() ? deps.logs.keeperOf(ran.worker) : "gone";
    if (typeof keeper === "string") throw refusalFor({ taskId, ...ran }, { kind: keeper });
    const request = { taskId, attempt: ran.attempt, lines, ...ageOf(since) };
    const isAny = "anyOf" in keeper;
    const outcome = await (isAny
      ? deps.logs.askAny(keeper.anyOf, request, signal)
      : deps.logs.ask({ ...request, worker: keeper.worker }, signal));
    if (outcome.kind !== "tail")
      throw refusalFor({ taskId, attempt: ran.attempt, worker: isAny ? ran.worker : keeper.worker }, outcome);
    return { taskId, attempt: ran.attempt, text: outcome.text, truncated: outcome.truncated };
  }

  return async (taskId, { attempt, tail: lines = TAIL_LINES_DEFAULT }, exchange) => {
    const { caller } = exchange;
    await checkTask(deps.drover, caller, taskId);
    const known = attempts.known(taskId);
    if (known !== undefined) {
      const number = attempt ?? known.last;
      if (number === 0 || number > known.last) throw unknownAttempt(taskId, attempt, known.last);
      const here = await keptHere(taskId, number, { lines, since: known.since, exchange });
      if (here !== null) return here;
    }
    return deps.polls.hold(exchange, "other", async (signal) => {
      const ran = await attempts.find(taskId, attempt, { signal, inTurn: (look) => inItsTurn(looks, exchange, look) });
      if (ran !== null) {
        const { since } = ran;
        const here = known === undefined ? await keptHere(taskId, ran.attempt, { lines, since, exchange }) : null;
        return here ?? fromFar({ taskId, ...ran }, lines, signal);
      }
      // Whose a forgotten task was is not known.
      const left =
        known !== undefined || isScoped(caller) ? null : await keptHere(taskId, attempt, { lines, exchange });
      if (left !== null) return left;
      if (known === undefined && !deps.drover.state.tombstones.has(taskId as TaskId))
        throw refused({ type: "task-unknown", task: taskId });
      throw unknownAttempt(taskId, attempt, known?.last);
    });
  };
}

/** As a span, so that the clocks of two machines need not agree. None where the clock was set back since. */
function ageOf(since: number): { taskAgeMs?: number } {
  const taskAgeMs = Math.ceil(Date.now() - since);
  return taskAgeMs < 0 ? {} : { taskAgeMs };
}

function unknownAttempt(taskId: string, attempt: number | undefined, last: number | undefined): ServerRefusal {
  const log = attempt === undefined ? `no log of task ${taskId}` : `no log of attempt ${attempt} of task ${taskId}`;
  const details = { taskId, ...(attempt === undefined ? {} : { attempt }) };
  const why =
    last === 0
      ? "it has not begun yet"
      : last !== undefined && attempt !== undefined && attempt > last
        ? `its last attempt is ${last}`
        : "which worker ran it is not known any more; look on the workers' machines, in their data directories";
  return new ServerRefusal("not_found", `${log} is here: ${why}`, details);
}

type Trouble = Exclude<LogOutcome, { kind: "tail" }>;

function refusalFor(asked: Asked, trouble: Trouble): ServerRefusal {
  const { taskId, attempt, worker } = asked;
  const code = trouble.kind === "silent" ? "worker_silent" : "not_found";
  return new ServerRefusal(code, sentenceFor(asked, trouble), { taskId, attempt, workerId: worker });
}

function sentenceFor({ taskId, attempt, worker }: Asked, trouble: Trouble): string {
  const log = `the log of attempt ${attempt} of task ${taskId}`;
  switch (trouble.kind) {
    case "gone":
      return (
        `${log} is with worker ${worker}, which is not connected; start it again with the same data directory, ` +
        "or look there, under logs"
      );
    case "keeps-none":
      return `worker ${worker} ran attempt ${attempt} of task ${taskId} and keeps no logs; drover worker --exec does`;
    case "none":
      return (
        `worker ${worker} does not have ${log}: it has not begun yet, or its log has made room for newer ones; ` +
        "ask for another attempt by its number"
      );
    case "failed":
      return `worker ${worker} could not read ${log}: ${trouble.error}`;
    case "silent":
      return (
        `worker ${worker} did not hand in ${log} within ${LOG_WAIT_MS} ms; try again, see whether it is up, ` +
        "or look in its data directory, under logs"
      );
    default:
      return trouble satisfies never;
  }
}
