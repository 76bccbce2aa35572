/**
 * A log read without an engine: what its tasks were and why one does not run, as of its last event.
 *
 * Nothing is written and nothing is locked, so the log of a run that is over, or was killed, is as it was afterwards.
 */
import { seq, taskId, whole } from "../core/base/index.ts";
import type { State } from "../core/model/index.ts";
import { why } from "../core/why/index.ts";
import { openSqliteLog } from "../log/sqlite/index.ts";
import { readOptions } from "./base/call-options.ts";
import { refused } from "./base/drover-error.ts";
import type { Drover } from "./drover.ts";
import { createFeed, readFeedOptions } from "./feed.ts";
import { readContent } from "./files/files.ts";
import { createPast } from "./snapshots/past.ts";
import { createBodyStore } from "./tasks/body-store.ts";
import { readPage, readTask } from "./tasks/read-tasks.ts";
import { createRejectedRing } from "./tasks/rejected.ts";
import { recover } from "./writer/recovery.ts";

export type LogReader = AsyncDisposable &
  Pick<Drover, "task" | "tasks" | "why" | "events"> & {
    readonly state: State;
    /** The content of a file that a task has left. */
    content(hash: string): Promise<AsyncIterable<Uint8Array>>;
  };

/** Throws a `LogFailure` where there is no log, or it is damaged. */
export async function openReader(directory: string): Promise<LogReader> {
  const log = await openSqliteLog({ directory, readOnly: true });
  try {
    const { state } = await recover(log);
    const head = seq(state.seq);
    const writer = { state, now: () => state.at, settled: async () => {} };
    const bodies = createBodyStore(log);
    const feed = createFeed({ log, head: () => head, state });
    const lookAtPast = createPast(log);
    const sources = { writer, log, bodies, rejected: createRejectedRing(), progressOf: () => undefined };
    return {
      state,
      task: (id) => readTask(sources, taskId(id)) as never,
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
