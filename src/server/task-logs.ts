/**
 * `GET /tasks/{id}/logs`: the end of what an attempt wrote, wherever that lies.
 *
 * First beside the server, where its own worker and those that share its directory write. Else the worker that ran the
 * attempt is asked (log-desk.ts). Whatever stands in the way is said with the worker's name, and what to do about it.
 */
import { type LogsQuery, TAIL_LINES_DEFAULT, type TaskLogs } from "../protocol/index.ts";
import { type AttemptWorkers, createAttemptWorkers, type RanBy } from "./attempt-worker.ts";
import type { Deps, Exchange } from "./handler.ts";
import { LOG_WAIT_MS, type LogOutcome } from "./log-desk.ts";
import { checkTask } from "./own-work.ts";
import { ServerRefusal } from "./problem.ts";

type Place = { readonly taskId: string } & RanBy;
type Needed = Pick<Deps, "drover" | "polls" | "logs" | "logsOf">;

export function createTaskLogs(deps: Needed): (id: string, query: LogsQuery, exchange: Exchange) => Promise<TaskLogs> {
  const attempts = createAttemptWorkers(deps.drover);
  return async (taskId, { attempt, tail: lines = TAIL_LINES_DEFAULT }, { caller, response }) => {
    await checkTask(deps.drover, caller, taskId);
    const beside = await deps.logsOf(taskId, attempt ?? (attempts.lastOf(taskId) || undefined), { tail: lines });
    if (beside !== null) return { taskId, ...beside };
    const ran = await attempts.find(taskId, attempt);
    if (ran === null) throw unknownAttempt(taskId, attempt, attempts);
    const place: Place = { taskId, ...ran };
    const keeper = deps.logs.keeperOf(ran.worker);
    if (typeof keeper === "string") throw refusalFor(place, { kind: keeper });
    const request = { taskId, attempt: ran.attempt, lines };
    const outcome = await deps.polls.hold(response, "other", (signal) =>
      "anyOf" in keeper
        ? deps.logs.askAny(keeper.anyOf, request, signal)
        : deps.logs.ask({ ...request, worker: keeper.worker }, signal),
    );
    if (outcome.kind !== "tail")
      throw refusalFor({ ...place, worker: "anyOf" in keeper ? ran.worker : keeper.worker }, outcome);
    return { taskId, attempt: ran.attempt, text: outcome.text, truncated: outcome.truncated };
  };
}

function unknownAttempt(taskId: string, attempt: number | undefined, attempts: AttemptWorkers): ServerRefusal {
  const last = attempts.lastOf(taskId);
  const log = attempt === undefined ? `no log of task ${taskId}` : `no log of attempt ${attempt} of task ${taskId}`;
  const details = { taskId, ...(attempt === undefined ? {} : { attempt }) };
  const why =
    last === 0
      ? "it has not begun yet"
      : last !== undefined && attempt !== undefined && attempt > last
        ? `its last attempt is ${last}`
        : "and which worker ran it is not known any more; look on the workers' machines, in their data directories";
  return new ServerRefusal("not_found", `${log} is here: ${why}`, { details });
}

type Trouble = Exclude<LogOutcome, { kind: "tail" }>;

function refusalFor(place: Place, trouble: Trouble): ServerRefusal {
  const { taskId, attempt, worker } = place;
  const code = trouble.kind === "silent" ? "worker_silent" : "not_found";
  return new ServerRefusal(code, sentenceFor(place, trouble), { details: { taskId, attempt, workerId: worker } });
}

function sentenceFor({ taskId, attempt, worker }: Place, trouble: Trouble): string {
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
