/**
 * A call under a permit that is released on every path.
 *
 * An error whose status is 429 or 529 is the provider's word to everyone: it is reported to the gate first, then the
 * permit goes back (nobody sleeps with a slot in his hand), and the call queues again with its age, at most `attempts`
 * times in all. Any other error is the caller's own and is thrown on.
 */

import { rateLimitOf } from "../std/index.ts";
import { GateInputError } from "./gate-error.ts";
import type { GateHost } from "./gate-host.ts";
import { type AcquireOptions, checkAcquireOptions, parseAttempts } from "./gate-input.ts";
import type { Permit } from "./permit.ts";

export type WithPermitOptions = AcquireOptions & {
  /** How often the call may go out in all before its 429 is thrown on. */
  readonly attempts?: number;
};

const ATTEMPTS = 5;

export async function withPermit<Value>(
  host: GateHost,
  call: {
    readonly id: string;
    readonly fn: (permit: Permit) => Value | Promise<Value>;
    readonly options?: WithPermitOptions | undefined;
  },
): Promise<Value> {
  const { id, fn, options = {} } = call;
  if (typeof fn !== "function") throw new GateInputError("fn", fn, "a function");
  checkAcquireOptions(options, ["attempts"]);
  const { attempts = ATTEMPTS, ...asked } = options;
  parseAttempts(attempts);
  let permit = await host.acquire(id, asked);
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await fn(permit);
      permit.release({ ok: true });
      return value;
    } catch (error) {
      const retryAfterMs = rateLimitOf(error, host.wallNow());
      if (retryAfterMs !== null) host.rateLimited(retryAfterMs, id);
      permit.release({ ok: false });
      if (retryAfterMs === null || attempt >= attempts) throw error;
    }
    permit = await host.acquireAgain(permit, options.signal);
  }
}
