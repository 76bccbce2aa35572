/**
 * Progress and usage on their way out: only the latest counts, and not too often.
 *
 * A handler may report progress a million times in a loop. The first report goes out at once, later ones at most a few
 * times a second, the last one always; what is held meanwhile is one value per attempt. Nothing here needs the event
 * loop to turn, so a handler that computes without pause is heard too.
 */
import type { AttemptRef, Usage } from "../../protocol/index.ts";
import { type Clock, present } from "../../std/index.ts";
import { keyOf, type Update } from "./messages.ts";
import { jsonText } from "./outcome.ts";

const EVERY_MS = 250;
const PROGRESS_MAX = 16 * 1024;

type Waiting = AttemptRef & { progress?: { readonly value: unknown }; usage?: Usage };
export type ProgressReports = {
  progress(attempt: AttemptRef, value: unknown): void;
  usage(attempt: AttemptRef, usage: Usage): void;
  /** It has ended: what was not sent is not worth sending. */
  drop(attempt: AttemptRef): void;
};

export function createProgressReports(deps: {
  readonly clock: Clock;
  readonly post: (items: readonly (AttemptRef & Update)[]) => void;
  readonly warn: (message: string) => void;
}): ProgressReports {
  const { clock, post, warn } = deps;
  const waiting = new Map<string, Waiting>();
  let lastAt = Number.NEGATIVE_INFINITY;
  let isAlarmSet = false;

  function entryOf({ taskId, attempt }: AttemptRef): Waiting {
    const key = keyOf({ taskId, attempt });
    const entry = waiting.get(key) ?? { taskId, attempt };
    waiting.set(key, entry);
    return entry;
  }

  function send(): void {
    const now = clock.elapsed();
    if (now - lastAt < EVERY_MS) {
      if (isAlarmSet) return;
      isAlarmSet = true;
      clock.ringAt(lastAt + EVERY_MS, () => {
        isAlarmSet = false;
        send();
      });
      return;
    }
    lastAt = now;
    const items = [...waiting.values()].map(updateOf).filter((item) => item !== null);
    waiting.clear();
    if (items.length > 0) post(items);
  }

  function updateOf({ taskId, attempt, progress, usage }: Waiting): (AttemptRef & Update) | null {
    const text = progress === undefined ? undefined : progressText(taskId, progress.value);
    if (text === undefined && usage === undefined) return null;
    return { taskId, attempt, ...present({ progress: text, usage }) };
  }

  /** Progress is for looking at: what cannot be shown is left out, and the task goes on. */
  function progressText(taskId: string, value: unknown): string | undefined {
    try {
      const text = jsonText(value, "progress");
      if ((text?.length ?? 0) <= PROGRESS_MAX) return text;
      warn(`progress of task ${taskId} is not shown: ${text?.length} characters of JSON, at most ${PROGRESS_MAX}`);
    } catch (error) {
      warn(`progress of task ${taskId} is not shown: ${(error as Error).message}`);
    }
    return undefined;
  }

  return {
    progress(attempt, value) {
      entryOf(attempt).progress = { value };
      send();
    },
    usage(attempt, usage) {
      entryOf(attempt).usage = usage;
      send();
    },
    drop(attempt) {
      if (waiting.size > 0) waiting.delete(keyOf(attempt));
    },
  };
}
