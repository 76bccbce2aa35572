/**
 * Who leads, for a node that hears nothing of the journal: it asks the others, and believes only the leader itself.
 *
 * A node that alone is cut off from the journal does not hear of the leader any more, though that one may well answer
 * it. What was heard long ago is no ground to send it a caller's token: its address may be anybody's by now. So every
 * node that the log names is asked, at the address that the log has, with a question and no token; and of the answers
 * counts only one that is sealed by the node of that name and address, and says that it leads for sure, in no older
 * epoch than is known here. That holds for two seconds, as long as what a node tells of itself in the journal holds
 * until its next word; then, or when it turned out to be wrong, the question is put again.
 *
 * Bounded: one round of questions at a time for all who wait, to sixteen nodes at most, two seconds long; after one in
 * vain none for a second.
 */
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import type { Clock } from "../../std/index.ts";
import type { AskWord } from "./node-word.ts";

const GOOD_MS = 2000;
const REST_MS = 1000;
const ASKED_MAX = 16;

export type KnownLeader = {
  /** The address of a node that has proved that it leads, lately; null if none has. */
  lately(): string | null;
  /** The same, and if none has: asks all. */
  find(): Promise<string | null>;
  /** It did not turn out to lead. */
  forget(url: string): void;
  stop(): void;
};

export function createKnownLeader(deps: {
  readonly node: Pick<DroverNode, "id" | "applied">;
  readonly drover: Pick<Drover, "state">;
  readonly clock: Clock;
  readonly askWord: AskWord;
}): KnownLeader {
  const { node, drover, clock, askWord } = deps;
  const stopping = new AbortController();
  let proved: { readonly url: string; readonly at: number } | null = null;
  let vainAt = Number.NEGATIVE_INFINITY;
  let underWay: Promise<string | null> | null = null;

  const lately = (): string | null =>
    proved !== null && clock.elapsed() - proved.at <= GOOD_MS && !stopping.signal.aborted ? proved.url : null;

  async function proof([id, { url }]: [string, { readonly url: string }], signal: AbortSignal): Promise<string> {
    const heard = await askWord(url, signal);
    const word = heard.kind === "word" ? heard.word : null;
    if (word?.node !== id || word.url !== url || !word.leads || word.epoch < node.applied().epoch)
      throw new Error(`${id} has not proved that it leads`);
    return url;
  }

  /** The first that proves it: no two lead at one time, so the rest need not be waited for. */
  async function askAll(): Promise<string | null> {
    const over = new AbortController();
    const signal = AbortSignal.any([stopping.signal, over.signal]);
    const { nodes, leader } = drover.state.cluster;
    // Those that joined last come first: names that were given up stay in the log for long.
    const others = [...nodes].filter(([id]) => id !== node.id).reverse();
    const leaderFirst = others.sort(([left], [right]) => Number(right === leader) - Number(left === leader));
    try {
      const at = clock.elapsed();
      const url = await Promise.any(leaderFirst.slice(0, ASKED_MAX).map((place) => proof(place, signal)));
      proved = { url, at };
      return url;
    } catch (error) {
      if (!(error instanceof AggregateError)) throw error;
      vainAt = clock.elapsed();
      return null;
    } finally {
      over.abort(new Error("another has answered"));
      underWay = null;
    }
  }

  return {
    lately,
    async find() {
      const known = lately();
      if (known !== null || stopping.signal.aborted) return known;
      if (underWay === null && clock.elapsed() - vainAt < REST_MS) return null;
      underWay ??= askAll();
      return underWay;
    },
    forget(url) {
      if (proved?.url === url) proved = null;
    },
    stop: () => stopping.abort(new Error("this node stops")),
  };
}
