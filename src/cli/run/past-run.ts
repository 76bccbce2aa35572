/**
 * The log of a plan that has run alone and is over, asked as a server would be.
 *
 * It is read and stays as it is. Only what a person answers or decides about a task is written, by an engine that is
 * opened for that and starts nothing: the next run finds it.
 */

import { type Client, ClientError } from "../../client/index.ts";
import { DroverError, openDrover } from "../../engine/index.ts";
import { isInUse, openReader } from "../../engine/reader.ts";
import { whyJson } from "../../engine/views/index.ts";
import type { EventJson, PlanView } from "../../protocol/index.ts";
import { isoTime, present } from "../../std/index.ts";
import { asTyped, CliProblem, EXIT } from "../shell/problem.ts";
import { namesIn, type TaskNames } from "../show/plan-names.ts";
import { rethrown } from "./log.ts";
import { logsIn } from "./task-logs.ts";

/** What may be asked about a task, wherever it is. */
export type TaskCalls = Pick<
  Client,
  "task" | "tasks" | "why" | "logs" | "eventPage" | "approve" | "cancel" | "retry"
> & {
  readonly files: Pick<Client["files"], "open">;
};
export type NamedTask<Calls = TaskCalls> = {
  readonly calls: Calls;
  readonly id: string;
  /** Those of its plan, where it was named by that. */
  readonly names?: TaskNames;
};

type Named = { readonly name: string; readonly id: string };

/** `pick` finds the task among those of the plan, or throws. `noted` hears that nothing of it goes on by itself. */
export async function readRun(
  data: string,
  plan: string,
  pick: (tasks: readonly Named[]) => Named,
  noted: (text: string) => void,
): Promise<NamedTask> {
  const isOver = !isInUse(data);
  await using reader = await openReader(data, { isOver }).catch(rethrown(data));
  const own = tasksIn(reader.state, plan);
  const { id } = pick([...own, ...grownIn(reader.state)]);
  const goesOn = asTyped("drover run FILE goes on with it");
  const isCut = isOver && (reader.state.plans.get(plan)?.open ?? 0) > 0;
  if (isCut) noted(`the run of the plan ${plan} is not alive since ${isoTime(reader.state.at)}: ${goesOn}`);
  const written = (): void => {
    if (!isCut) noted(`nothing of the plan ${plan} runs: ${goesOn}`);
  };
  return { calls: callsOn(data, isOver, written), id, names: namesIn(plan, own) };
}

/** The plan of a run that is over, as it is in its log; null if that has none. */
export async function readPlanOf(data: string, plan: string): Promise<PlanView | null> {
  await using reader = await openReader(data, { isOver: !isInUse(data) }).catch(rethrown(data));
  return reader.plan(plan);
}

type State = Awaited<ReturnType<typeof openReader>>["state"];

/** The tasks of the plan as it was put last. A log that is older than that has the newest of each name in its ids. */
function tasksIn(state: State, plan: string): readonly Named[] {
  const put = state.plans.get(plan);
  if (put !== undefined) return put.tasks;
  const found = new Map<string, string>();
  for (const { id } of [...state.tombstones.values(), ...state.tasks.values()]) {
    const [, name] = /^(.+)\.[0-9a-f]{12}\.[0-9a-f]{8}$/.exec(id) ?? [];
    if (name !== undefined) found.set(name, id);
  }
  return [...found].map(([name, id]) => ({ name, id }));
}

/** What grew below them is named by its id. */
function grownIn({ tasks, tombstones }: State): readonly Named[] {
  const grown = [...tasks.values()].filter(({ links }) => links?.ofRunning === true);
  const past = [...tombstones.values()].filter(({ parent }) => parent !== null);
  return [...grown, ...past].map(({ id }) => ({ name: id, id }));
}

/** What the engine refuses, as a client of a server has it. What is no refusal stays a bug. */
function asAnswered(error: unknown): never {
  if (!(error instanceof DroverError) || error.code === "broken" || error.code === "stopped") throw error;
  const { code, message, retryable } = error;
  const { task: taskId, ...details } = error.details;
  throw new ClientError(code, message, {
    status: STATUS_REFUSED,
    retryable,
    details: { ...present({ taskId }), ...details },
  });
}

/** As of any refusal: the other tasks of the same command have their turn. */
const STATUS_REFUSED = 409;

/** `written` hears of every change. */
function callsOn(data: string, isOver: boolean, written: () => void): TaskCalls {
  const reading = async <Value>(ask: (reader: Awaited<ReturnType<typeof openReader>>) => Promise<Value>) => {
    await using reader = await openReader(data, { isOver }).catch(rethrown(data));
    return await ask(reader).catch(asAnswered);
  };
  const writing = async <Value>(ask: (drover: Awaited<ReturnType<typeof openDrover>>) => Promise<Value>) => {
    await using drover = await openDrover({ data }).catch(rethrown(data));
    const answer = await ask(drover).catch(asAnswered);
    written();
    return answer;
  };
  const logsOf = logsIn(data);
  return {
    task: (id) => reading((reader) => reader.task(id)) as never,
    tasks: (query) => reading((reader) => reader.tasks(query)),
    files: {
      open: async function* (hash) {
        yield* await reading((reader) => reader.content(hash));
      },
    },
    why: (id, { at } = {}) => reading((reader) => reader.why(id, at === undefined ? {} : { at })).then(whyJson),
    async logs(id, { attempt, tail = 200 } = {}) {
      const log = await logsOf(id, attempt, { tail });
      if (log !== null) return { taskId: id, ...log };
      const message = `${id} has written nothing${attempt === undefined ? "" : ` in attempt ${attempt}`}`;
      throw new CliProblem({ message, code: "not_found", exit: EXIT.refused });
    },
    eventPage: ({ limit = Number.POSITIVE_INFINITY, ...filter } = {}) =>
      reading(async (reader) => {
        const events: EventJson[] = [];
        for await (const event of reader.events(filter)) {
          if (events.length >= limit) return { events, nextAfter: events.at(-1)?.seq ?? 0 };
          events.push({ ...event, at: isoTime(event.at) } as EventJson);
        }
        return { events };
      }),
    approve: (id, { note, deny } = {}) =>
      writing((drover) => drover.approve(id, { ...(note === undefined ? {} : { note }), deny: deny === true })),
    cancel: (id, { reason } = {}) => writing((drover) => drover.cancel(id, reason === undefined ? {} : { reason })),
    retry: (id) => writing((drover) => drover.retry(id)),
  };
}
