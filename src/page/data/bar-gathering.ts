/**
 * Attempts as bars, put together from the events of the log in their order.
 *
 * So many are kept, those that ended last. What is left out has then ended before one instant, and before that nothing
 * is shown of any worker: where the bars of one ended and those of another stayed, who was busy would look idle.
 */
import type { EventJson } from "../../protocol/generated/index.ts";
import { endIn } from "./outcomes.ts";

export type Bar = {
  readonly key: string;
  readonly task: string;
  readonly attempt: number;
  readonly worker: string;
  readonly from: number;
  /** Null while it runs. */
  readonly until: number | null;
  readonly outcome: string;
};

const BARS_MAX = 4000;

export type Gathering = {
  take(events: readonly EventJson[]): void;
  /** All that ended after an instant, or runs. */
  since(from: number): readonly Bar[];
  /** What ended up to then is left out; null: nothing is. */
  cutAt(): number | null;
  /** The instant of the last event; null before the first. */
  readTo(): number | null;
};

export function createGathering(most: number = BARS_MAX): Gathering {
  const open = new Map<string, Bar>();
  let ended: Bar[] = [];
  let cutAt: number | null = null;
  let readTo: number | null = null;

  function takeOne(event: EventJson): void {
    const { payload, at, task } = event;
    const time = Date.parse(at);
    readTo = time;
    if (task === undefined) return;
    const running = open.get(task);
    const outcome = endIn(event);
    if (payload.kind === "task-assigned") {
      const { attempt, worker } = payload;
      const key = `${task} ${attempt} ${at}`;
      open.set(task, { key, task, attempt, worker, from: time, until: null, outcome: "running" });
    } else if (running !== undefined && outcome !== undefined) {
      open.delete(task);
      ended.push({ ...running, until: time, outcome });
    }
  }
  return {
    take(events) {
      for (const event of events) takeOne(event);
      const over = ended.length - most;
      if (over <= 0) return;
      cutAt = ended[over - 1]?.until ?? cutAt;
      ended = ended.slice(over).filter(({ until }) => until !== cutAt);
    },
    since: (from) => [...ended.filter(({ until }) => (until ?? 0) >= from), ...open.values()],
    cutAt: () => cutAt,
    readTo: () => readTo,
  };
}
