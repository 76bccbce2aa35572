/**
 * drover/gate: one gate for every call to a scarce thing, in this process.
 *
 *     const gate = createGate({ maxConcurrent: 10, requests: 50, windowMs: 60_000 });
 *     await gate.withPermit("call-1", () => llm.complete(prompt), { priority: "high" });
 *
 * At most `maxConcurrent` calls are out, at most `requests` start in any `windowMs`, urgent ones go first and
 * waiting makes urgent, and a 429 to one call stops them all for as long as the provider asks.
 *
 * `schedule` never blocks: what is not ready stays in the queue, also when rate-limited, and is admitted by
 * itself; `wait` is for whoever wants to know when. A permit is a lease: one that nobody releases returns after
 * `permitTtlMs`. Nothing here needs `this`, so the functions can be passed around.
 */

import type { GateClass } from "../core/gate/index.ts";
import { GateHost, type QueueDetail, type QueueState, type ScheduleResult } from "./gate-host.ts";
import { type AcquireOptions, type GateOptions, parseGateOptions, type ReleaseOptions } from "./gate-input.ts";
import type { Permit } from "./permit.ts";
import { type WithPermitOptions, withPermit } from "./with-permit.ts";

export { classOf, type GateClass } from "../core/gate/index.ts";
export { GateClosedError, GateInputError, GateRefusedError, type RefusalReason } from "./gate-error.ts";
export type { GateStats, QueueDetail, QueueState, ScheduleResult } from "./gate-host.ts";
export type { AcquireOptions, GateOptions, ReleaseOptions, SetTimer, Usage } from "./gate-input.ts";
export type { Permit } from "./permit.ts";
export type { WithPermitOptions } from "./with-permit.ts";

export type PermitGate = {
  /** Asks without waiting. A priority that is not given is the gate's default. */
  schedule(id: string, priority?: GateClass): ScheduleResult;
  /** schedule and wait in one. */
  acquire(id: string, options?: AcquireOptions): Promise<Permit>;
  /** The permit of a call that was scheduled: at once if it is running, else when it is admitted. */
  wait(id: string): Promise<Permit>;
  /** The call is over; unknown and repeated ids change nothing. */
  complete(id: string, options?: ReleaseOptions): void;
  /** True only for a queued id. */
  cancel(id: string): boolean;
  /** The provider said 429 or 529, to call `id` if known. */
  rateLimited(retryAfterMs?: number, id?: string): void;
  /** Runs fn under a permit; a 429 or 529 it throws goes back in the queue with its age. */
  withPermit<Value>(
    id: string,
    fn: (permit: Permit) => Value | Promise<Value>,
    options?: WithPermitOptions,
  ): Promise<Value>;
  queueState(): QueueState;
  /** Running by start, then queued by dispatch order. */
  queueDetails(): QueueDetail[];
  /** For a clock turned by hand: does what has become due. */
  advance(): void;
  /** Refuses whoever waits or asks from now on; what is running may still complete. */
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
};

export function createGate(options: GateOptions = {}): PermitGate {
  const host = new GateHost(parseGateOptions(options), options);
  return {
    schedule: (id, priority) => host.schedule(id, priority),
    acquire: (id, asked) => host.acquire(id, asked),
    wait: (id) => host.wait(id),
    complete: (id, outcome) => host.complete(id, outcome),
    cancel: (id) => host.cancel(id),
    rateLimited: (retryAfterMs, id) => host.rateLimited(retryAfterMs, id),
    withPermit: (id, fn, asked) => withPermit(host, { id, fn, options: asked }),
    queueState: () => host.queueState(),
    queueDetails: () => host.queueDetails(),
    advance: () => void host.advance(),
    close: () => host.close(),
    [Symbol.asyncDispose]: async () => host.close(),
  };
}
