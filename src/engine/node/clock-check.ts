/**
 * Whether the clocks of the nodes agree, by what each tells of its own in the journal.
 *
 * The word of another node is as old as the journal says, and takes a moment on the way, so a few seconds are no
 * difference; and what was seen once may be a node that hung between two steps. Nothing follows from a difference but
 * that it is said: log time is the leader's, and who leads next may have another.
 */
import type { NodeSeen } from "../../log/journal/index.ts";
import type { Clock } from "../../std/index.ts";
import { DOWN_MS } from "./cluster-view.ts";

const APART_MS = 5000;

type Other = { readonly node: string; readonly told: number; readonly aheadMs: number };

/** Takes what the others have told; calls with what is to be said, null if nothing, and a sign of it. */
export function createClockCheck(
  clock: Pick<Clock, "now">,
  say: (text: string | null, sign: string) => void,
): (others: readonly NodeSeen[]) => void {
  let before: ReadonlyMap<string, number> = new Map();
  return (nodes) => {
    const now = clock.now();
    const others = nodes.flatMap(({ node, now: told, ageMs }): Other[] =>
      told === undefined || ageMs > DOWN_MS ? [] : [{ node, told, aheadMs: told + ageMs - now }],
    );
    const apart = others.filter(({ aheadMs }) => Math.abs(aheadMs) > APART_MS);
    // A word that stays the same may be of a node that is gone: a journal that came back gives its words as new.
    const sure = apart.filter(({ node, told }) => before.has(node) && before.get(node) !== told);
    before = new Map(apart.map(({ node, told }) => [node, told]));
    const sign = sure.map(({ node, aheadMs }) => `${node} ${Math.sign(aheadMs)}`).join();
    say(sure.length === 0 ? null : differ(sure, others), sign);
  };
}

function differ(apart: readonly Other[], others: readonly Other[]): string {
  const told = apart.map(
    ({ node, aheadMs }) =>
      `that of ${node} is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? "ahead of" : "behind"} this one's`,
  );
  const all = others.map(({ aheadMs }) => aheadMs);
  const isAlone = apart.length > 1 && apart.length === others.length && Math.max(...all) - Math.min(...all) < APART_MS;
  const whose = isAlone ? " The others agree with each other, so it is this one's that is wrong." : "";
  return (
    `THE CLOCKS of the nodes differ: ${told.join(", ")}.${whose} Log time follows the clock of whoever leads: ` +
    "set them right, and keep all by NTP."
  );
}
