/**
 * A place in the queue, and whoever waits for it.
 *
 * The ticket carries its own promise, so admission resolves exactly the call that was admitted and needs no second
 * look-up. It is one object with all its fields from the start: thousands may wait, and each is made on a hot path.
 */

import type { GateClass, Ticket } from "../core/gate/index.ts";
import type { Permit } from "./permit.ts";

type Resolve = (permit: Permit) => void;
type Reject = (reason: unknown) => void;

/** One executor for all promises instead of a closure for each; it runs before `new Promise` returns. */
let caughtResolve: Resolve | null = null;
let caughtReject: Reject | null = null;
const catchHandles = (resolve: Resolve, reject: Reject): void => {
  caughtResolve = resolve;
  caughtReject = reject;
};

export class HostTicket implements Ticket {
  readonly id: string;
  readonly class: GateClass;
  readonly project: string;
  readonly weight: number;
  readonly tokens: number;
  readonly askedAt: number;
  readonly order: number;
  readonly since: number | undefined;
  /** Null until someone waits. */
  promise: Promise<Permit> | null = null;
  resolve: Resolve | null = null;
  reject: Reject | null = null;
  private signal: AbortSignal | null = null;
  private onAbort: (() => void) | null = null;

  constructor(ticket: Ticket, since?: number) {
    this.id = ticket.id;
    this.class = ticket.class;
    this.project = ticket.project;
    this.weight = ticket.weight;
    this.tokens = ticket.tokens;
    this.askedAt = ticket.askedAt;
    this.order = ticket.order;
    this.since = since;
  }

  promised(): Promise<Permit> {
    const promise = new Promise<Permit>(catchHandles);
    this.promise = promise;
    this.resolve = caughtResolve;
    this.reject = caughtReject;
    return promise;
  }

  abortWith(signal: AbortSignal, onAbort: () => void): void {
    this.signal = signal;
    this.onAbort = onAbort;
    signal.addEventListener("abort", onAbort, { once: true });
  }

  /** The wait is over. Whoever still holds the ticket must not hold the promise and all it led to. */
  settle(): { readonly resolve: Resolve | null; readonly reject: Reject | null } {
    const { resolve, reject } = this;
    if (this.onAbort !== null) this.signal?.removeEventListener("abort", this.onAbort);
    this.promise = null;
    this.resolve = null;
    this.reject = null;
    this.signal = null;
    this.onAbort = null;
    return { resolve, reject };
  }
}
