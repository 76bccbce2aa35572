/**
 * While a server says nothing, one request more goes now and then.
 *
 * So many requests without an answer are enough for a server that is slow: more would make it slower. But they may have
 * been lost, with the network between, and then whatever waits behind them waits until their time is over, though the
 * server is long back. Only a request can tell which it is. Each of these is sent after a rest that is longer than the
 * one before: the silence lasts at most twice as long as the network was away, and a server that is only slow hears of
 * few. Any request that is over begins the rests anew.
 */

const REST_MS = 1000;
const REST_MS_MAX = 60_000;

export type Trials = {
  /** One may go when the rest is over. */
  soon(): void;
  /** A request is over, however that went. */
  heard(): void;
};

/** `go` says whether it has sent one. */
export function createTrials(go: () => boolean): Trials {
  let restMs = REST_MS;
  let timer: NodeJS.Timeout | undefined;
  const goNow = (): void => {
    timer = undefined;
    const before = restMs;
    restMs = Math.min(restMs * 2, REST_MS_MAX);
    if (!go()) restMs = before;
  };
  return {
    soon() {
      // What has no answer keeps the process, as long as it is waited for.
      timer ??= setTimeout(goNow, restMs).unref();
    },
    heard() {
      clearTimeout(timer);
      timer = undefined;
      restMs = REST_MS;
    },
  };
}
