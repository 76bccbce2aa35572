/**
 * A log read without an engine: what its tasks were and why one does not run, as of its last event.
 *
 * Nothing is written and nothing is locked, so the log of a run that is over, or was killed, is as it was afterwards.
 * What ran when its writer was killed runs no more: without a writer, a reader sees what the next one will find.
 */
import { CORE_VERSION, seq, taskId, whole } from "../core/base/index.ts";
import { decide, evolve } from "../core/index.ts";
import type { MutableState, State } from "../core/model/index.ts";
import { why } from "../core/why/index.ts";
import { isDataLocked, openSqliteLog } from "../log/sqlite/index.ts";
import type { PlanView } from "../protocol/index.ts";
import { readOptions } from "./base/call-options.ts";
import { refused } from "./base/drover-error.ts";
import type { Drover } from "./drover.ts";
import { createFeed, readFeedOptions } from "./feed.ts";
import { readContent } from "./files/files.ts";
import { planView } from "./plans/plan-view.ts";
import { createPast } from "./snapshots/past.ts";
import { createBodyStore } from "./tasks/body-store.ts";
import { readPage, readTask } from "./tasks/read-tasks.ts";
import { createRejectedRing } from "./tasks/rejected.ts";
import { recover } from "./writer/recovery.ts";

export type LogReader = AsyncDisposable &
  Pick<Drover, "task" | "tasks" | "why" | "events"> & {
    readonly state: State;
    /** How far a plan is; null if there is none of this name. */
    plan(id: string): PlanView | null;
    /** The content of a file that a task has left. */
    content(hash: string): Promise<AsyncIterable<Uint8Array>>;
  };

/** Whether another process writes this log. One that is not there, or cannot be read, is written by none. */
export const isInUse: (directory: string) => boolean = isDataLocked;

/** Throws a `LogFailure` where there is no log, or it is damaged. `isOver`: nobody writes it any more. */
export async function openReader(
  directory: string,
  { isOver = false }: { readonly isOver?: boolean } = {},
): Promise<LogReader> {
  const log = await openSqliteLog({ directory, readOnly: true });
  try {
    const { state } = await recover(log);
    const head = seq(state.seq);
    if (isOver) giveUpWorkers(state);
    const writer = { state, now: () => state.at, settled: async () => {} };
    const bodies = createBodyStore(log);
    const feed = createFeed({ log, head: () => head, state });
    const lookAtPast = createPast(log);
    const sources = { writer, log, bodies, rejected: createRejectedRing(), progressOf: () => undefined };
    return {
      state,
      task: (id) => readTask(sources, taskId(id)) as never,
      plan(id) {
        const plan = state.plans.get(id);
        return plan === undefined ? null : planView(state, plan);
      },
      tasks: (filter = {}) => readPage(sources, filter),
      content: (hash) => readContent(directory, hash),
      async why(task, options) {
        const { at } = readOptions<{ at?: number }>({ at: whole(1) }, options);
        const id = taskId(task);
        const answer =
          at === undefined ? why(state, id, state.at) : await lookAtPast(at, head, (then) => why(then, id, then.at));
        if (!answer.ok) throw refused(answer.failure);
        return answer.value;
      },
      events: (options) => feed.read(readFeedOptions(options)),
      [Symbol.asyncDispose]: () => log.close(),
    };
  } catch (error) {
    await log.close();
    throw error;
  }
}

/** As the next writer does when it begins. */
function giveUpWorkers(state: MutableState): void {
  const decided = decide(state, { type: "start-engine", coreVersion: CORE_VERSION, policyHash: "" }, state.at);
  if (decided.ok) for (const event of decided.value.events) evolve(state, event);
}
