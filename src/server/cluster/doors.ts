/**
 * How this node gets in at others, for what lies beside the log: it asks who is there, without a token, and makes one
 * for the node that has proved to be the one that is meant, for the time that it has there.
 *
 * A node that answers and does not let this one in is a warning of this node, for as long as it is so: else files would
 * be missing here in silence, and be lost with that node. Who has not proved to be the node is asked again every
 * minute. Whether a token is still refused shows only when something is asked for there; what is missing is asked for
 * every minute, so a refusal that was not heard for some minutes is over. One that does not answer is seen to be down
 * anyhow.
 */
import type { DroverNode } from "../../engine/node/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import type { AskWord } from "./node-word.ts";

const AGAIN_MS = 60_000;
const REFUSED_MS = 3 * AGAIN_MS;

type Place = { readonly id: string; readonly url: string };
export type Doors = {
  /** By which the node there lets this one in; null if it cannot be reached, or has not proved to be that node. */
  tokenFor(place: Place): Promise<string | null>;
  /** With which status it has answered such a token. */
  answered(place: Place, status: number): void;
  stop(): void;
};

export function createDoors(deps: {
  readonly node: Pick<DroverNode, "peers" | "tokenFor" | "keptOut">;
  readonly clock: Clock;
  readonly askWord: AskWord;
}): Doors {
  const { node, clock, askWord } = deps;
  const stopping = new AbortController();
  /** By the name of a node, why it is shut. */
  const shut = new Map<string, { readonly text: string; readonly isProved: boolean; readonly at: number }>();
  let cancel: (() => void) | null = null;

  function tell(): void {
    const there = new Set(node.peers().map(({ id }) => id));
    const isOver = (at: number): boolean => clock.elapsed() - at > REFUSED_MS;
    for (const [id, { isProved, at }] of shut) if (!there.has(id) || (isProved && isOver(at))) shut.delete(id);
    node.keptOut(shut.size === 0 ? null : `${[...shut.values()].map(({ text }) => text).join("; ")}. ${WHAT_TO_DO}`);
    if (shut.size > 0) cancel ??= ringAfter(clock, AGAIN_MS, lookAgain, { keepAlive: false });
  }
  async function lookAgain(): Promise<void> {
    for (const place of node.peers()) if (shut.get(place.id)?.isProved === false) await tokenFor(place);
    cancel = null;
    if (!stopping.signal.aborted) tell();
  }
  function close({ id, url }: Place, why: string, isProved: boolean): void {
    shut.set(id, { text: `NODE ${id} at ${url} does not let this node in: ${why}`, isProved, at: clock.elapsed() });
    tell();
  }
  function open({ id }: Place): void {
    if (shut.delete(id)) tell();
  }

  async function tokenFor(place: Place): Promise<string | null> {
    const heard = await askWord(place.url, stopping.signal);
    if (heard.kind === "word") {
      const { node: id, url } = heard.word;
      if (id !== place.id || url !== place.url) {
        close(place, `there is node ${id}, which says that it is at ${url}`, false);
        return null;
      }
      if (shut.get(id)?.isProved === false) open(place);
      return node.tokenFor(heard.word);
    }
    // A node that starts or stops answers so, too.
    if (heard.kind === "stranger" && heard.status < 500)
      close(place, `what answers there (status ${heard.status}) has not proved to be it`, false);
    return null;
  }

  return {
    tokenFor,
    answered(place, status) {
      if (status === 401 || status === 403) close(place, `it answers with status ${status}`, true);
      else open(place);
    },
    stop() {
      stopping.abort(new Error("this node stops"));
      cancel?.();
    },
  };
}

const WHAT_TO_DO =
  "Files of tasks are not copied from there, and logs not read; both are tried again. Do the nodes have the same " +
  "log, and is it reached at the address that it tells?";
