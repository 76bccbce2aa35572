/**
 * Whether the clocks of the nodes agree, by what each tells of its own in the journal.
 *
 * The word of another node is as old as the journal says, and takes a moment on the way, so a few seconds are no
 * difference; and what was seen once may be a node that hung between two steps. A difference is said; and what most
 * agree on is the date by which this node counts (agreed-clock.ts).
 */
import type { NodeSeen } from "../../log/journal/index.ts";
import type { Clock } from "../../std/index.ts";
import { type AgreedClock, APART_MS } from "./agreed-clock.ts";
import { DOWN_MS } from "./cluster-view.ts";

type Other = { readonly node: string; readonly told: number; readonly aheadMs: number };
const isApart = ({ aheadMs }: Other): boolean => Math.abs(aheadMs) > APART_MS;

/** Takes what the others have told; calls with what is to be said, null if nothing, and a sign of it. */
export function createClockCheck(
  clock: Pick<Clock, "now">,
  agreed: Pick<AgreedClock, "judge" | "isMoved">,
  say: (text: string | null, sign: string) => void,
): (others: readonly NodeSeen[]) => void {
  let before: ReadonlyMap<string, Other & { readonly isSure: boolean }> = new Map();
  return (nodes) => {
    const now = clock.now();
    const up = nodes.filter(({ ageMs, isStopped }) => ageMs <= DOWN_MS && isStopped !== true);
    const others = up.flatMap(({ node, now: told, ageMs }): Other[] =>
      told === undefined ? [] : [{ node, told, aheadMs: told + ageMs - now }],
    );
    // A word that never changes may be of a node that is gone: a journal that came back gives its words as new. One
    // that is the same as at the last look is not: that node speaks as often as this one looks.
    const judged = others.map((one) => {
      const last = before.get(one.node);
      const isSame = last !== undefined && isApart(last) === isApart(one);
      return { ...one, isSure: isSame && (last.isSure || last.told !== one.told) };
    });
    before = new Map(judged.map((one) => [one.node, one]));
    const sure = judged.filter(({ isSure }) => isSure);
    const aheadMs = sure.map((one) => one.aheadMs);
    agreed.judge(aheadMs, up.length - sure.length);
    const apart = sure.filter(isApart);
    const isMoved = agreed.isMoved();
    const signs = apart.map(({ node, aheadMs }) => `${node} ${Math.sign(aheadMs)}`);
    say(apart.length === 0 ? null : differ(apart, isMoved), [...signs, ...(isMoved ? ["moved"] : [])].join());
  };
}

function differ(apart: readonly Other[], isMoved: boolean): string {
  const told = apart.map(
    ({ node, aheadMs }) =>
      `that of ${node} is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? "ahead of" : "behind"} this one's`,
  );
  const what = isMoved
    ? "Most agree on another date than this one's, which is wrong then: while it leads, log time goes by theirs"
    : "Log time follows the clock of whoever leads";
  return `THE CLOCKS of the nodes differ: ${told.join(", ")}. ${what}. Set them right, and keep all by NTP.`;
}
