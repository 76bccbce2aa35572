/**
 * How far the log is here, as answers say it and reads ask for it.
 *
 * Every answer to a caller that was let in names an event that is durable: what it tells of is at or below it. Whoever
 * sends the highest one it was told with a read, as `X-Drover-After`, sees at least that much: the read waits until it
 * is applied here, and is answered 503 `behind` if that takes too long. A node of a cluster also names its leader; one
 * that follows says how old at most is what it knows.
 */
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { badHeader, type LongPolls, PollEnded, type Polled, ServerRefusal } from "../../http/index.ts";
import { AFTER_HEADER, AFTER_WAIT_MS, AGE_HEADER, LEADER_HEADER, SEQ_HEADER } from "../../protocol/wire/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";

export type Position = {
  /** Makes the headers of an answer: these, and where the log is at that moment. */
  stamp(always: readonly string[]): () => readonly string[];
  /** What a read has to wait for; null if nothing. Throws if the header says nothing sensible. */
  awaited(exchange: Polled): Promise<void> | null;
};
type PositionDeps = {
  readonly drover: Pick<Drover, "committedSeq" | "watch">;
  readonly node: DroverNode | undefined;
  readonly polls: LongPolls;
  readonly clock: Clock;
};

export function createPosition({ drover, node, polls, clock }: PositionDeps): Position {
  const { committedSeq } = drover;
  const reached = (at: number, signal: AbortSignal): Promise<void> =>
    node === undefined ? untilCommitted(drover, at, signal) : node.reached(at, signal);

  async function wait(asked: number, exchange: Polled): Promise<void> {
    await polls.hold(exchange, "other", async (signal, end) => {
      const cancel = ringAfter(clock, AFTER_WAIT_MS, () => end("time-over"), { keepAlive: false });
      try {
        await reached(asked, signal);
      } catch (error) {
        if (!(error instanceof PollEnded) || error.why !== "time-over") throw error;
        throw isBehind(asked, committedSeq());
      } finally {
        cancel();
      }
    });
  }

  return {
    stamp: (always) => (node === undefined ? stampAlone(always, committedSeq) : () => stampOf(node, always)),
    awaited(exchange) {
      const given = exchange.request.headers[AFTER_HEADER];
      if (given === undefined) return null;
      const asked = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : null;
      if (asked === null) throw badHeader(AFTER_HEADER, "the header X-Drover-After must be the number of an event");
      return asked <= committedSeq() ? null : wait(asked, exchange);
    },
  };

  function stampOf(self: DroverNode, always: readonly string[]): readonly string[] {
    const leader = self.leaderUrl();
    const headers = always.concat(SEQ_HEADER, String(committedSeq()));
    if (leader !== null) headers.push(LEADER_HEADER, leader);
    if (!self.life().leads()) headers.push(AGE_HEADER, String(Math.ceil(self.ageMs())));
    return headers;
  }
}

/** Many answers leave with one commit, so they have the same headers. */
function stampAlone(always: readonly string[], committedSeq: () => number): () => readonly string[] {
  let seq = -1;
  let headers = always;
  return () => {
    const now = committedSeq();
    if (now === seq) return headers;
    seq = now;
    headers = always.concat(SEQ_HEADER, String(now));
    return headers;
  };
}

function untilCommitted(
  { committedSeq, watch }: PositionDeps["drover"],
  at: number,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopWatching = watch(() => {
      if (committedSeq() >= at) over(resolve);
    });
    const giveUp = (): void => over(() => reject(signal.reason));
    function over(settle: () => void): void {
      stopWatching();
      signal.removeEventListener("abort", giveUp);
      settle();
    }
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp);
  });
}

const isBehind = (asked: number, seq: number): ServerRefusal =>
  new ServerRefusal(
    "behind",
    `X-Drover-After asks for event ${asked}, and after ${AFTER_WAIT_MS} ms only ${seq} are applied here; ask again, ` +
      "or another node",
    { after: asked, seq },
  );
