/**
 * A call under a permit that is released on every path.
 *
 * An error whose status is 429 or 529 is the provider's word to all callers: it is reported to the gate first, then the
 * permit goes back (no call rests with a slot in its hand), and the call queues again with its age, at most `attempts`
 * times in all. Any other error is the caller's own and is thrown on.
 */
import { rateLimitOf } from "../std/index.ts";
import { GateInputError } from "./gate-error.ts";
import { type AcquireOptions, checkAcquireOptions, parseAttempts } from "./gate-input.ts";
import type { LiveGate } from "./live-gate.ts";
import type { Permit } from "./permit.ts";

/** How urgent a call is, and how long it waits. */
export type WithPermitOptions = AcquireOptions & {
  /** The call's name at this gate; one of its own by default. */
  readonly id?: string;
  /** How often the call may go out in all before its 429 is thrown on. */
  readonly attempts?: number;
};

const ATTEMPTS = 5;

export async function withPermit<Value>(
  gate: LiveGate,
  call: (permit: Permit) => Value | Promise<Value>,
  options: WithPermitOptions = {},
): Promise<Value> {
  if (typeof call !== "function") throw new GateInputError("call", call, "a function that makes the call");
  checkAcquireOptions(options, ["id", "attempts"]);
  const { id = crypto.randomUUID(), attempts = ATTEMPTS, ...asked } = options;
  parseAttempts(attempts);
  let permit = await gate.acquire(id, asked);
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await call(permit);
      permit.release({ ok: true });
      return value;
    } catch (error) {
      const retryAfterMs = rateLimitOf(error, gate.wallNow());
      if (retryAfterMs !== null) gate.rateLimited(retryAfterMs, id);
      permit.release({ ok: false });
      if (retryAfterMs === null || attempt >= attempts) throw error;
    }
    permit = await gate.acquireAgain(permit, options.signal);
  }
}
