/**
 * Ends whose callback is due, for the dispatcher that sends them.
 *
 * The list is the log's: what is on it was not settled yet, also by a process that has died since. Telling is not the
 * engine's business; it only keeps the list and says when it has grown.
 */
import { flag, orNull, readSection, type Seq, seq, whole } from "../core/base/index.ts";
import type { CallbackOutcome } from "../core/model/index.ts";
import type { TaskView } from "../protocol/index.ts";
import { accepted } from "./base/drover-error.ts";
import { isEnd } from "./tasks/await-end.ts";
import type { BodyStore } from "./tasks/body-store.ts";
import { parseStored } from "./tasks/task-body.ts";
import { endedView } from "./tasks/task-view.ts";
import type { Applied } from "./writer/group-commit.ts";
import type { Writer } from "./writer/writer.ts";

/** The end of a task of which a receiver is to be notified. */
export type DueCallback = {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the event by which it ended. */
  readonly seq: number;
  /** How it ended. */
  readonly state: string;
  /** The host of the receiver. */
  readonly host: string;
  /** The project it is of. */
  readonly project: string;
};
/** Ends of tasks that a webhook is to be notified of. */
export type Callbacks = {
  /** Not settled yet, the oldest end first; found as far as it is read, since there may be many. */
  pending(): Iterable<DueCallback>;
  /** The task as it had ended then, also if it has run again since; null if there is nothing to deliver any more. */
  snapshot(seq: number): Promise<TaskView | null>;
  /** Called when there are new ones and they are durable; answers how to stop. */
  onDue(listener: () => void): () => void;
  /** A receiver was notified, or given up. */
  settle(seq: number, outcome: { ok: boolean; status?: number | null; attempts: number }): Promise<void>;
};
type CallbackService = Callbacks & { onCommitted(batch: readonly Applied[]): void };

export function createCallbacks(deps: {
  readonly writer: Writer;
  readonly bodies: BodyStore;
  /** The task as it is now. */
  readonly task: (id: string) => Promise<TaskView>;
}): CallbackService {
  const { writer, bodies } = deps;
  const { state } = writer;
  const listeners = new Set<() => void>();
  return {
    *pending() {
      for (const { task, end, phase, ended, host } of state.callbacks.due.values()) {
        if (end > writer.committedSeq()) return;
        yield { taskId: task, seq: end, state: phase, host, project: ended?.project.id ?? "" };
      }
    },
    async snapshot(at) {
      const due = state.callbacks.due.get(at as Seq);
      if (due === undefined) return null;
      const { task, phase, ended } = due;
      // An older log did not keep it: as well as can be.
      if (ended === null) return { ...(await deps.task(task)), state: phase };
      await writer.settled();
      const body = await bodies.read(ended.seq as Seq);
      const { resultSeq } = ended.end;
      const result = resultSeq === null ? null : await bodies.read(resultSeq as Seq);
      return {
        ...endedView(ended, body === null ? null : parseStored(body)),
        ...(result === null ? {} : { result: JSON.parse(result) as unknown }),
      };
    },
    onDue(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async settle(end, outcome) {
      const fields = { ok: flag, status: orNull(whole(0, 999)), attempts: whole(0, 1_000_000) };
      const read = readSection<CallbackOutcome>(fields, { ok: false, status: null, attempts: 0 }, outcome, "");
      const settled = { outcome: accepted(read), end: seq(accepted(whole(1)(end, "seq"))) };
      await writer.run({ type: "settle-callback", ...settled });
    },
    onCommitted(batch) {
      if (listeners.size === 0 || state.callbacks.due.size === 0) return;
      if (
        !batch.some(
          ({ event, seq: at }) => (isEnd(event) || event.kind === "task-parked") && state.callbacks.due.has(at),
        )
      )
        return;
      for (const listener of listeners) listener();
    },
  };
}
