/**
 * Tasks that were turned away for want of room.
 *
 * They never enter the log, but for their number: a full system must not fill its disk with refusals. The last thousand
 * are kept in memory for `resultTtl`, as they were submitted and up to a size in all, so that a caller that asks what
 * became of one gets an answer. One without an id of its own gets one that no later engine gives again.
 *
 * Their number is kept over restarts. It is written for all of them together and at most once a second: a second after
 * the first, when a caller asks for the totals, and at the end. A caller that asks again within the second sees what is
 * written. So a number that a caller has seen never falls, whatever becomes of the process. Names are free, and a flood
 * may use a new one each time: so the first so many of a second are written by their names, and all others under one
 * that no action can have.
 */
import type { AgentId } from "../../core/base/index.ts";
import type { Submission } from "../../core/model/index.ts";
import type { TaskView } from "../../protocol/index.ts";
import type { Clock } from "../../std/index.ts";
import { notify, type Writer } from "../writer/writer.ts";
import { parseStored } from "./task-body.ts";
import { rejectedView } from "./task-view.ts";

const KEPT_MAX = 1000;
/** A thousand bodies of the largest kind would be a gigabyte. */
const KEPT_CHARACTERS_MAX = 16 * 1024 * 1024;

/** One that was turned away, with what it may be looked for by. */
export type Rejected = {
  readonly id: string;
  /** Counts up, and is where a page goes on. */
  readonly order: number;
  readonly phase: "rejected";
  readonly agent: { readonly id: string };
  readonly project: { readonly id: string };
  readonly requirements: { readonly type: string };
  readonly extra: { readonly labels: readonly { readonly text: string }[] };
  readonly at: number;
  readonly error: string;
  /** Its body. */
  readonly text: string;
};
export type RejectedRing = {
  /** Answers the id to ask by. */
  add(given: { readonly submission: Submission; readonly text: string; readonly error: string }, at: number): string;
  find(id: string, now: number, ttl: number): Rejected | null;
  /** Those that are kept, the first to be turned away first. */
  list(now: number, ttl: number): Iterable<Rejected>;
};

export function createRejectedRing(): RejectedRing {
  const kept = new Map<string, Rejected>();
  let order = 0;
  let characters = 0;

  function drop(id: string): void {
    characters -= kept.get(id)?.text.length ?? 0;
    kept.delete(id);
  }

  return {
    add({ submission, text, error }, at) {
      order++;
      const { agent, project, type, labels = [] } = submission;
      const id = submission.id ?? `rej_${at}_${order}`;
      drop(id);
      const named = { agent: { id: agent }, project: { id: project }, requirements: { type } };
      const extra = { labels: labels.map((text) => ({ text })) };
      kept.set(id, { id, order, phase: "rejected", ...named, extra, at, error, text });
      characters += text.length;
      for (const oldest of kept.keys()) {
        if (kept.size <= KEPT_MAX && characters <= KEPT_CHARACTERS_MAX) break;
        drop(oldest);
      }
      return id;
    },
    find(id, now, ttl) {
      const entry = kept.get(id);
      return entry === undefined || entry.at + ttl <= now ? null : entry;
    },
    *list(now, ttl) {
      for (const entry of kept.values()) if (entry.at + ttl > now) yield entry;
    },
  };
}

export const viewOfRejected = (entry: Rejected): TaskView => rejectedView(entry, parseStored(entry.text));

const SECOND_MS = 1000;
const AGENTS_MAX = 100;
/** No agent has a name with a blank. */
const OTHERS = "other agents" as AgentId;

export type RejectedCounter = {
  count(agent: AgentId): void;
  /** Writes what has been counted, unless that was done within the last second. */
  flushIfDue(): void;
  /** Writes what has been counted, if anything has. */
  flush(): void;
};

export function createRejectedCounter(writer: Writer, clock: Clock): RejectedCounter {
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
