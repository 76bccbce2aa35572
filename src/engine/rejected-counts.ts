/**
 * How many tasks found no room, kept over restarts.
 *
 * A task that is turned away leaves nothing in the log, or a flood would fill the disk. Their number does, once in a
 * while for all of them together: a second after the first, when somebody asks for the totals, and at the end. So a
 * number that anybody has seen never falls, whatever becomes of the process.
 */
import type { AgentId } from "../core/brand.ts";
import type { Host } from "./host.ts";
import { tell, type Writer } from "./writer.ts";

const SOON_MS = 1000;
/** Names are free: past so many of them in one second it is written at once. */
const AGENTS_MAX = 1000;

export type RejectedCounts = {
  count(agent: AgentId): void;
  /** Writes what has been counted, if anything has. */
  flush(): void;
};

export function createRejectedCounts(writer: Writer, host: Host): RejectedCounts {
  const counts = new Map<AgentId, number>();
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel?.();
    cancel = null;
    if (counts.size === 0) return;
    const all = [...counts];
    counts.clear();
    tell(writer, { type: "count-rejected", counts: all });
  }

  return {
    count(agent) {
      counts.set(agent, (counts.get(agent) ?? 0) + 1);
      if (counts.size >= AGENTS_MAX) return flush();
      cancel ??= host.ringAt(host.elapsed() + SOON_MS, flush, { keepAlive: false });
    },
    flush,
  };
}
