/**
 * The events of one task, read once and then followed while somebody looks.
 */
import { useEffect, useState } from "preact/hooks";
import type { EventJson } from "../../protocol/generated/index.ts";
import { followLog } from "./use-call.ts";

/** So many are shown; a task that has more has its last ones shown. */
const KEPT_MAX = 2000;

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
    return followLog({
      wanted: { task: id },
      begin: () => ({ since }),
      anew: () => {
        events = [];
      },
      take: (next, isWhole) => {
        events = [...events, ...next].slice(-KEPT_MAX);
        setFound({ key, events, error: null, isWhole });
        return false;
      },
      failed: (error) => setFound({ key, events, error, isWhole: false }),
    });
  }, [key]);
  return found.key === key ? found : NONE;
}
