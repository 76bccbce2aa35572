/**
 * Whether a node that begins is the only one of its name. Two would take the lead from each other for ever.
 *
 * A word with this node's own key, from another address, is of an earlier start of it, or of a process over a copy of
 * its directory. Which of them shows in time: that one goes on telling of itself. How old a word is does not show it,
 * for a journal may know that only to a second or two: a start that has just ended would look like one that runs.
 */
import { LogFailure } from "../../log/index.ts";
import type { NodeSeen, NodesSeen } from "../../log/journal/index.ts";
import { type Clock, restFor } from "../../std/index.ts";
import { ANNOUNCE_MS, DOWN_MS } from "./cluster-view.ts";
import type { NodeFacts } from "./lives.ts";

/** A node that runs has told of itself again by then. */
const SILENT_MS = ANNOUNCE_MS * 2;
const LOOK_MS = 250;

/** Resolves when no other process is this node; rejects when one is. */
export async function checkAlone(
  ask: () => Promise<NodesSeen>,
  { id, key, url }: NodeFacts,
  clock: Clock,
): Promise<void> {
  const lookUntil = clock.elapsed() + DOWN_MS;
  let first: NodeSeen | null = null;
  for (;;) {
    const other = (await ask()).nodes.find(({ node }) => node === id);
    if (other === undefined || (other.key === key && (other.url === url || other.ageMs > SILENT_MS))) return;
    if (other.ageMs > DOWN_MS) return;
    first ??= other;
    if (other.key !== key || isLater(other, first) || clock.elapsed() > lookUntil) throw calledSo(id, other);
    await restFor(clock, LOOK_MS);
  }
}

/** With every word a node says what time it has. */
const isLater = (word: NodeSeen, first: NodeSeen): boolean => word.now !== first.now || word.start !== first.start;

const calledSo = (id: string, { url, ageMs }: NodeSeen): LogFailure =>
  new LogFailure(
    "refused",
    `another node is called ${id}: the one at ${url}, heard of ${Math.round(ageMs / 1000)} s ago. ` +
      `Give this one another name with --node, or wait ${DOWN_MS / 1000} s if that one is gone. ` +
      "A copy of another node's data directory cannot be used.",
  );
