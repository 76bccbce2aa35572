/**
 * drover/gate: one gate for every call to a scarce thing, in this process.
 *
 *     const gate = createGate({ maxConcurrent: 10, requests: 50, windowMs: 60_000 });
 *     await gate.withPermit(() => llm.complete(prompt), { priority: "high" });
 *
 * At most `maxConcurrent` calls are out, at most `requests` start in any `windowMs`, urgent ones go first and
 * waiting makes urgent, and a 429 to one call stops them all for as long as the provider asks.
 *
 * `schedule` never blocks: what is not ready stays in the queue, also when rate-limited, and is admitted by
 * itself; `wait` says when. A permit is a lease: one that is not released returns after
 * `permitTtlMs`. Nothing here needs `this`, so the functions can be passed around.
 */
import type { GateClass } from "../core/gate/index.ts";
import { type AcquireOptions, type GateOptions, parseGateOptions, type ReleaseOptions } from "./gate-input.ts";
import { LiveGate, type QueueDetail, type QueueState, type ScheduleResult } from "./live-gate.ts";
import type { Permit } from "./permit.ts";
import { type WithPermitOptions, withPermit } from "./with-permit.ts";

export { classOf, type GateClass } from "../core/gate/index.ts";
export { GateClosedError, GateInputError, GateRefusedError, type RefusalReason } from "./gate-error.ts";
export type { AcquireOptions, GateClock, GateOptions, ReleaseOptions, Usage } from "./gate-input.ts";
export type { GateStats, QueueDetail, QueueState, ScheduleResult } from "./live-gate.ts";
export type { Permit } from "./permit.ts";
export type { WithPermitOptions } from "./with-permit.ts";

/** A gate: what may go out now, and what waits. */
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
  /** Makes the call under a permit; one that throws a 429 or 529 goes back in the queue with its age. */
  withPermit<Value>(call: (permit: Permit) => Value | Promise<Value>, options?: WithPermitOptions): Promise<Value>;
  /** How many are out and wait, and what the gate has done. */
  queueState(): QueueState;
  /** Running by start, then queued by dispatch order. */
  queueDetails(): QueueDetail[];
  /** For a clock turned by hand: does what has become due. */
  advance(): void;
  /** Refuses the calls that wait, and those that ask from now on; what is running may still complete. */
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
};

/** A gate of its own for this process. */
export function createGate(options: GateOptions = {}): PermitGate {
  const gate = new LiveGate(parseGateOptions(options), options);
  return {
    schedule: (id, priority) => gate.schedule(id, priority),
    acquire: (id, asked) => gate.acquire(id, asked),
    wait: (id) => gate.wait(id),
    complete: (id, outcome) => gate.complete(id, outcome),
    cancel: (id) => gate.cancel(id),
    rateLimited: (retryAfterMs, id) => gate.rateLimited(retryAfterMs, id),
    withPermit: (call, asked) => withPermit(gate, call, asked),
    queueState: () => gate.queueState(),
    queueDetails: () => gate.queueDetails(),
    advance: () => void gate.advance(),
    close: () => gate.close(),
    [Symbol.asyncDispose]: async () => gate.close(),
  };
}
