/**
 * One task, watched until it has ended.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { TaskView } from "../../protocol/index.ts";
import { isEnded } from "../../protocol/wire/index.ts";
import { RETRIES_WHILE_WATCHING } from "../shell/connection.ts";

/** How old what is shown may be. */
const MOMENT_MS = 1000;

type WatchOptions = {
  readonly signal: AbortSignal;
  readonly onChange: (task: TaskView) => void;
  readonly momentMs?: number;
};

/**
 * Stays with a task until it has ended, and tells each change on the way. Each round is one call that answers at once
 * when the task ends, and after a moment otherwise; then the task is read for what has changed. So the end is heard
 * without delay, and a queue position or a worker's word of progress within a moment. A server that is restarted
 * meanwhile is waited for.
 */
export async function watchTask(client: Client, id: string, options: WatchOptions): Promise<TaskView> {
  const { signal, onChange, momentMs = MOMENT_MS } = options;
  const patient = { signal, retries: RETRIES_WHILE_WATCHING };
  let last = "";
  const tell = (task: TaskView): void => {
    const { state, attempt, worker, position, progress, error } = task;
    const now = JSON.stringify([state, attempt, worker, position, progress, error]);
    if (now !== last) onChange(task);
    last = now;
  };
  tell(await client.task(id, { signal }));
  for (;;) {
    try {
      const ended = await client.wait(id, { ...patient, withinMs: momentMs });
      tell(ended);
      return ended;
    } catch (error) {
      // Nothing new within the moment, or a server that is away: the reading that follows waits for it.
      if (!(error instanceof ClientError) || !error.retryable) throw error;
    }
    const task = await client.task(id, patient);
    tell(task);
    if (isEnded(task.state)) return task;
  }
}
