/**
 * The right to make one call now.
 *
 * It is released once, by whichever comes first: `release`, the end of an `await using` block, `complete(id)` at the
 * gate, or the end of its lease. What comes later does nothing, also when the same id holds a new permit by then.
 */
import type { GateClass, GrantedPermit } from "../core/gate/index.ts";
import type { ReleaseOptions } from "./gate-input.ts";

/** The gate that takes a permit back, if that very one is still out. */
type Issuer = { settle(id: string, held: GrantedPermit, options: ReleaseOptions | undefined): void };

/** The right to make one call, until it is released. */
export class Permit {
  /** The gate's own record of it. */
  readonly held: GrantedPermit;
  readonly #gate: Issuer;

  constructor(gate: Issuer, held: GrantedPermit) {
    this.#gate = gate;
    this.held = held;
  }

  /** The id of the call. */
  get id(): string {
    return this.held.id;
  }

  /** How urgent it is. */
  get priority(): GateClass {
    return this.held.class;
  }

  /** When it was let out, in milliseconds since 1970. */
  get grantedAt(): number {
    return this.held.grantedAt;
  }

  /** When it returns by itself, in milliseconds since 1970. */
  get expiresAt(): number {
    return this.held.expiresAt;
  }

  /** Sent alone to see whether the provider answers again. */
  get probe(): boolean {
    return this.held.probe;
  }

  /** `ok` (true unless said) means the provider answered; a rate-limited call is reported to the gate first. */
  release(options?: ReleaseOptions): void {
    this.#gate.settle(this.held.id, this.held, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.release();
    return Promise.resolve();
  }
}
