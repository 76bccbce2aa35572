/**
 * Tasks that were turned away for want of room.
 *
 * They never enter the log, but for their number: a full system must not fill its disk with refusals. The last thousand
 * are kept in memory for `resultTtl`, as they were submitted and up to a size in all, so that a caller that asks what
 * became of one gets an answer. One without an id of its own gets one that no later engine gives again.
 */

import type { Submission } from "../../core/model/index.ts";
import type { TaskView } from "../../protocol/index.ts";
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
      const { agent, project, type } = submission;
      const id = submission.id ?? `rej_${at}_${order}`;
      drop(id);
      const named = { agent: { id: agent }, project: { id: project }, requirements: { type } };
      kept.set(id, { id, order, phase: "rejected", ...named, at, error, text });
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
