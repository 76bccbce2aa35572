/**
 * A wait that goes alone: one question after the other, each held back by the server, until it is over or its time is.
 *
 * Waits that meet others share their requests (watch.ts).
 */
import type * as wire from "../protocol/index.ts";
import { WAIT_MS_DEFAULT } from "../protocol/wire/index.ts";
import type { CallOptions } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { type AfterLoss, inTime, retried, type Wiring, waitFor } from "./exchange.ts";
import type { Waited } from "./watch.ts";

/** Asks with what is known to be safe to repeat because this client made it so. */
export type Ask = <Name extends wire.CallName>(
  name: Name,
  asked: wire.Asked<Name>,
  options?: CallOptions,
  afterLoss?: AfterLoss<wire.Answered<Name>>,
) => Promise<wire.Answered<Name>>;

/** One try; it may hold its answer back for so long. */
export type Look<Found> = (ask: Ask, timeoutMs: number, options: CallOptions) => Promise<Found>;
type WaitArguments<Found> = [
  withinMs: number | undefined,
  options: CallOptions,
  look: Look<Found>,
  /** Undefined for what is not such a thing at all. */
  isOver: (found: Partial<Found>) => boolean | undefined,
];
export type WaitUntil = <Found>(...given: WaitArguments<Found>) => Promise<Waited<Found>>;

/** Asks until it is over, or the time is. */
export async function waited<Found>(
  wiring: Wiring,
  ask: Ask,
  ...[withinMs, options, look, isOver]: WaitArguments<Found>
): Promise<Waited<Found>> {
  const wait = waitFor(wiring, options, withinMs);
  return inTime(wait, options, async (timed) => {
    const lookOnce = (): Promise<Found> =>
      look(ask, Math.ceil(Math.min(wait.leftMs(), WAIT_MS_DEFAULT)), { ...timed, retries: 0 });
    for (;;) {
      const found = await retried(wiring, timed, lookOnce, undefined, wait);
      const isFoundOver = isOver(found);
      if (isFoundOver === undefined)
        throw new ClientError("bad_answer", "the answer is not what is waited for; is this a Drover server?", {
          status: 200,
        });
      if (isFoundOver || wait.leftMs() <= 0) return { found, isOver: isFoundOver };
    }
  });
}
