/**
 * The calls about tasks, each a few words with the engine.
 *
 * A long poll hands its signal to the engine, so that a caller that hangs up leaves no waiter behind. `wait` answers
 * the task as it stands when its time is over: that is an answer, not an error.
 */
import type { Why } from "../../core/why/index.ts";
import { DroverError } from "../../engine/base/index.ts";
import { whyJson } from "../../engine/views/index.ts";
import { createTurnstile, inItsTurn, isScoped, PollEnded, ServerRefusal } from "../../http/index.ts";
import type { TaskCalls } from "../../protocol/calls/index.ts";
import { type BatchBody, WAIT_MS_DEFAULT } from "../../protocol/index.ts";
import { ownWhy } from "../access/scoped-views.ts";
import {
  checkApprover,
  checkDependencies,
  checkTask,
  claimed,
  isShutOut,
  makeOwnProject,
  ownFilter,
} from "../access/token-scope.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { submitChecked, submitCheckedBatch, submitInTime } from "./submit-checked.ts";
import { createTaskLogs } from "./task-logs.ts";

const PAST_LINES_MAX = 100;

export function taskHandlers(deps: Deps): Handlers<keyof TaskCalls> {
  const { drover } = deps;
  const logs = createTaskLogs(deps);
  /** The log is done again for each who asks about the past. */
  const pastInTurn = createTurnstile(1, PAST_LINES_MAX);

  return {
    submit: ({ body }, { caller, headers }) => {
      const own = claimed(caller, body);
      const { attempt } = caller;
      if (attempt !== undefined)
        return checkDependencies(drover, caller, own).then(() => submitInTime(deps, own, headers, attempt));
      // What every submit costs: only a scoped caller's dependencies, and its project, are looked at first.
      const isPlain = own.parent === undefined && own.needs === undefined;
      if (!isScoped(caller) || (isPlain && !isShutOut(drover, caller, own))) return submitChecked(deps, own, headers);
      return checkDependencies(drover, caller, own)
        .then(() => makeOwnProject(drover, caller, own))
        .then(() => submitInTime(deps, own, headers));
    },
    submitBatch: async ({ body }, { caller }) => {
      const batch = claimed(caller, body);
      if (caller.attempt !== undefined)
        return submitCheckedBatch(deps, batch, await foreignItems(deps, caller, batch), caller.attempt);
      return submitCheckedBatch(deps, batch, isScoped(caller) ? await foreignItems(deps, caller, batch) : NONE_FOREIGN);
    },
    tasks: async ({ query }, { caller }) => {
      return drover.tasks(ownFilter(caller, query));
    },
    task: async ({ params }, { caller }) => {
      await checkTask(drover, caller, params.id);
      return drover.task(params.id);
    },
    patch: async ({ params, body }, { caller }) => {
      await checkTask(drover, caller, params.id);
      const { warnings } = await drover.patch(params.id, body);
      const task = await drover.task(params.id);
      return warnings === undefined ? task : { ...task, warnings };
    },
    cancel: async ({ params, body }, { caller }) => {
      await checkTask(drover, caller, params.id);
      return drover.cancel(params.id, body);
    },
    approve: async ({ params, body }, { caller }) => {
      checkApprover(caller);
      await checkTask(drover, caller, params.id);
      return drover.approve(params.id, body);
    },
    cancelWhere: async ({ body: { filter } }, { caller }) => {
      const { all: _, ...named } = filter;
      return drover.cancelWhere(isScoped(caller) ? ownFilter(caller, named) : filter);
    },
    retry: async ({ params }, { caller }) => {
      await checkTask(drover, caller, params.id);
      return drover.retry(params.id);
    },
    why: async ({ params, query }, exchange) => {
      const { caller } = exchange;
      await checkTask(drover, caller, params.id);
      const { at, time } = query;
      const isPast = at !== undefined || time !== undefined;
      const askPast = async (): Promise<Why> =>
        drover.why(params.id, { at: at ?? (await lastUpTo(drover, Date.parse(time ?? ""))) });
      const answer = await (isPast ? inItsTurn(pastInTurn, exchange, askPast) : drover.why(params.id));
      return whyJson(ownWhy(drover.state, caller, answer));
    },
    wait: async ({ params, query }, exchange) => {
      await checkTask(drover, exchange.caller, params.id);
      const waitMs = query.timeoutMs ?? WAIT_MS_DEFAULT;
      if (waitMs > 0) await untilOver(deps, exchange, waitMs, (signal) => drover.ended(params.id, { signal }));
      return drover.task(params.id);
    },
    logs: ({ params, query }, exchange) => logs(params.id, query, exchange),
  };
}

/** The number of the last event up to an instant. */
async function lastUpTo(drover: Deps["drover"], time: number): Promise<number> {
  for await (const { seq } of drover.events({ since: new Date(time + 1).toISOString() })) return Math.max(1, seq - 1);
  return drover.committedSeq();
}

const NONE_FOREIGN: ReadonlyMap<number, string> = new Map();
type Item = { readonly id?: unknown; readonly project?: string; readonly parent?: unknown; readonly needs?: unknown };

/** What a scoped caller may not claim in its batch, and why: that turns away the item, and no other. */
async function foreignItems(
  { drover }: Deps,
  caller: Exchange["caller"],
  { agentId, project: shared, tasks }: BatchBody,
): Promise<ReadonlyMap<number, string>> {
  const foreign = new Map<number, string>();
  const beside = new Set(tasks.map((item) => (item as Item | null)?.id));
  for (const [index, item] of tasks.entries()) {
    const { project = shared, ...dependencies } = (item ?? {}) as Item;
    const at = `tasks[${index}].`;
    try {
      if (typeof project === "string") claimed(caller, { project }, at);
      await checkDependencies(drover, caller, dependencies, { at, beside });
      await makeOwnProject(drover, caller, { agentId, project });
    } catch (error) {
      if (!(error instanceof ServerRefusal || error instanceof DroverError)) throw error;
      foreign.set(index, error.message);
    }
  }
  return foreign;
}

/** What is waited for, or null when the time is over first. */
export function untilOver<Value>(
  { polls }: Pick<Deps, "polls">,
  exchange: Exchange,
  waitMs: number,
  wait: (signal: AbortSignal) => Promise<Value>,
): Promise<Value | null> {
  return polls.hold(exchange, "other", async (signal, end) => {
    const timer = setTimeout(() => end("time-over"), waitMs);
    try {
      return await wait(signal);
    } catch (error) {
      if (!(error instanceof PollEnded) || error.why !== "time-over") throw error;
      return null;
    } finally {
      clearTimeout(timer);
    }
  });
}
