/**
 * The events of one task, read once and then followed while somebody looks.
 */
import { useEffect, useState } from "preact/hooks";
import type { EventJson } from "../../protocol/generated/index.ts";
import { ask } from "./ask.ts";
import { live } from "./live.ts";
import { lookAtPulses } from "./use-call.ts";

/** So many are shown; a task that has more has its last ones shown. */
const KEPT_MAX = 2000;
/** How many pages of a long log are looked through at one time. */
const PAGES_MAX = 60;

export type TaskEvents = {
  readonly events: readonly EventJson[];
  readonly error: Error | null;
  /** The log is long, and all of it has been looked through. */
  readonly isWhole: boolean;
};
const NONE: TaskEvents = { events: [], error: null, isWhole: false };

export function useTaskEvents(id: string, since: string | undefined): TaskEvents {
  const [found, setFound] = useState<TaskEvents & { key: string }>({ key: "", ...NONE });
  const key = `${id} ${since ?? ""}`;
  useEffect(() => {
    if (since === undefined) return;
    let events: readonly EventJson[] = [];
    let after = 0;
    async function read(signal: AbortSignal): Promise<void> {
      const head = live.now().pulse?.seq ?? 0;
      for (let page = 0; page < PAGES_MAX; page++) {
        const query = { task: id, after, limit: 1000, ...(after === 0 ? { since: since as string } : {}) };
        const answer = await ask("events", { query }, signal);
        events = [...events, ...answer.events].slice(-KEPT_MAX);
        // All that was there before it was asked has been looked through, and is not read again.
        after = answer.nextAfter ?? Math.max(after, head, events.at(-1)?.seq ?? 0);
        if (answer.nextAfter === undefined) return setFound({ key, events, error: null, isWhole: true });
        setFound({ key, events, error: null, isWhole: false });
      }
    }
    return lookAtPulses({ look: read, failed: (error) => setFound({ key, events, error, isWhole: false }) });
  }, [key]);
  return found.key === key ? found : NONE;
}
