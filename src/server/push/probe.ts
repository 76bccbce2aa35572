/**
 * Whether a push worker is there.
 *
 * It does not speak for itself, so Drover asks: GET <endpoint>/health, and any HTTP answer will do, a 404 as well. A
 * worker with one thread that is busy with a long action does not answer meanwhile, though the system still takes
 * connections for it; that is not the same as no worker being there at all, so that hard work is not taken for death.
 */
import { type Exchange, ExchangeFailure } from "../../http/index.ts";
import type { Clock } from "../../std/index.ts";
import { under } from "./request.ts";

export type Health = "answers" | "connects" | "dead";

export async function probe(
  endpoint: string,
  timeoutMs: number,
  { clock, exchange, version }: { readonly clock: Clock; readonly exchange: Exchange; readonly version: string },
  signal: AbortSignal,
): Promise<Health> {
  const late = new AbortController();
  const ring = (): void => late.abort(new Error(`no answer in ${timeoutMs} ms`));
  const cancel = clock.ringAt(clock.elapsed() + timeoutMs, ring, { keepAlive: false });
  try {
    const answer = await exchange({
      url: under(endpoint, "/health"),
      method: "GET",
      headers: { "User-Agent": `drover/${version}` },
      signal: AbortSignal.any([late.signal, signal]),
    });
    answer.drop();
    return "answers";
  } catch (error) {
    if (!(error instanceof ExchangeFailure)) throw error;
    return late.signal.aborted && error.isTaken ? "connects" : "dead";
  } finally {
    cancel();
  }
}
