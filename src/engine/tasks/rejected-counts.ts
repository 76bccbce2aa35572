/**
 * How many tasks found no room, kept over restarts.
 *
 * A task that is turned away leaves nothing in the log, or a flood would fill the disk. Their number does, for all of
 * them together and at most once a second: a second after the first, when a caller asks for the totals, and at the end.
 * A caller that asks again within the second sees what is written. So a number that a caller has seen never falls,
 * whatever becomes of the process. Names are free, and a flood may use a new one each time: so the first so many of a
 * second are written by their names, and all others under one that no action can have.
 */
import type { AgentId } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";
import { notify, type Writer } from "../writer/writer.ts";

const SECOND_MS = 1000;
const AGENTS_MAX = 100;
/** No agent has a name with a blank. */
const OTHERS = "other agents" as AgentId;

export type RejectedCounts = {
  count(agent: AgentId): void;
  /** Writes what has been counted, unless that was done within the last second. */
  flushIfDue(): void;
  /** Writes what has been counted, if anything has. */
  flush(): void;
};

export function createRejectedCounts(writer: Writer, clock: Clock): RejectedCounts {
  const counts = new Map<AgentId, number>();
  let flushedAt = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel?.();
    cancel = null;
    if (counts.size === 0) return;
    const all = [...counts];
    counts.clear();
    flushedAt = clock.elapsed();
    notify(writer, { type: "count-rejected", counts: all });
  }

  return {
    count(agent) {
      const name = counts.has(agent) || counts.size < AGENTS_MAX ? agent : OTHERS;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      cancel ??= clock.ringAt(clock.elapsed() + SECOND_MS, flush, { keepAlive: false });
    },
    flushIfDue() {
      if (clock.elapsed() - flushedAt >= SECOND_MS) flush();
    },
    flush,
  };
}
