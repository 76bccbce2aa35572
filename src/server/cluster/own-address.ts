/**
 * Whether this node is at the address that it tells the others: it asks there, as they would, who answers.
 *
 * A wrong address does no harm as long as the node follows, and nobody notices it; when it leads, every call goes
 * elsewhere. So it is looked at after the start, and as long as it is not right once a minute. That nothing answers may
 * be the network's fault (a machine that does not reach itself by its outer address), so it is said and no more.
 */
import type { DroverNode } from "../../engine/node/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import type { AskWord, Heard } from "./node-word.ts";

const [FIRST_MS, AGAIN_MS] = [1000, 60_000];

export function watchOwnAddress(deps: {
  readonly node: Pick<DroverNode, "id" | "url" | "atAddress">;
  readonly clock: Clock;
  readonly askWord: AskWord;
  /** Where it listens. */
  readonly listensAt: string;
}): { stop(): void } {
  const { node, clock, askWord, listensAt } = deps;
  const over = new AbortController();
  let cancel = ringAfter(clock, FIRST_MS, look, { keepAlive: false });

  async function look(): Promise<void> {
    const url = node.url();
    const heard = await askWord(url, over.signal);
    if (over.signal.aborted) return;
    const fault = faultIn(heard, { id: node.id, url });
    node.atAddress(fault === null ? null : `${fault} ${whatToDo(listensAt)}`);
    if (fault !== null) cancel = ringAfter(clock, AGAIN_MS, look, { keepAlive: false });
  }

  return {
    stop() {
      over.abort(new Error("this node stops"));
      cancel();
    },
  };
}

function faultIn(heard: Heard, { id, url }: { readonly id: string; readonly url: string }): string | null {
  const told = `which this node tells others to be its address`;
  switch (heard.kind) {
    case "nothing":
      return `NOTHING ANSWERS this node at ${url}, ${told} (${heard.why}).`;
    case "stranger":
      return `NO NODE of this cluster answers at ${url}, ${told}: what is there answers with status ${heard.status}.`;
    case "word":
      if (heard.word.node !== id)
        return `ANOTHER NODE, ${heard.word.node}, answers at ${url}, ${told}: calls meant for this one reach that one.`;
      if (heard.word.url === url) return null;
      return `ANOTHER PROCESS that is node ${id} too, and calls itself ${heard.word.url}, answers at ${url}, ${told}.`;
  }
}

const whatToDo = (listensAt: string): string =>
  `Once this node leads, calls will not reach it. It listens at ${listensAt}: start it with --advertise and the ` +
  "address by which other machines reach that.";
