/**
 * A live gate: the pure state machine of core/gate/gate.ts with a clock, promises and one timer around it.
 *
 * Every entry first advances: permits that ran out return, then the pump admits the calls that may go. So a gate is
 * right whenever it is looked at, even if its clock is turned by hand and its timer never rings. Admission and
 * hand-over are one step: the waiter is registered in the turn in which its ticket enters the queue, and the ticket
 * that is admitted resolves its own promise. No call asks twice, none polls.
 *
 * An uncontended acquire touches no queue, no timer and no closure.
 */
import {
  admitAtOnce,
  askPermit,
  dropTicket,
  expiredPermits,
  type Gate,
  type GateClass,
  type GateSettings,
  type GateTotals,
  type GrantedPermit,
  grantPermit,
  isHeld,
  newGate,
  nextGateInstant,
  nextGrant,
  nextPermitExpiry,
  queuedTickets,
  rateLimit,
  releasePermit,
  roomLimit,
  type Ticket,
  throttleGate,
  type Waiting,
  waitingOf,
} from "../core/gate/index.ts";
import { type CancelAlarm, type Clock, realClock, ringAfter } from "../std/index.ts";
import { GateClosedError, GateInputError, GateRefusedError } from "./gate-error.ts";
import {
  type AcquireOptions,
  checkAcquireOptions,
  checkId,
  fieldsOf,
  type GateOptions,
  parseClass,
  parseOk,
  parseRetryAfter,
  parseUsage,
  type ReleaseOptions,
} from "./gate-input.ts";
import { Permit } from "./permit.ts";

/** What became of a request for a permit. */
export type ScheduleResult =
  | {
      /** It may go out now. */
      readonly status: "ready";
    }
  | {
      /** It waits for its turn. */
      readonly status: "queued";
      /** Its place in the queue, from 1. */
      readonly position: number;
      /** How long it may have to wait. */
      readonly estimatedWaitMs: number;
    }
  | {
      /** It waits until a window or a block lets it go. */
      readonly status: "rate-limited";
      /** When that may be. */
      readonly retryAfterMs: number;
    }
  | {
      /** There is a call of this id already. */
      readonly status: "rejected";
      /** How that one stands. */
      readonly reason: "Already running" | "Already queued";
    };

/** What a gate has done altogether. */
export type GateStats = GateTotals;

/** How the gate stands. */
export type QueueState = {
  /** How many are out. */
  readonly running: number;
  /** How many wait. */
  readonly queued: number;
  /** Whether the provider's 429 blocks it now. */
  readonly rateLimited: boolean;
  /** What it has done altogether. */
  readonly stats: Readonly<GateStats>;
};

/** A call that is out or waits. */
export type QueueDetail = {
  /** Its id. */
  readonly id: string;
  /** How urgent it is. */
  readonly priority: GateClass;
  /** Whether it is out or waits. */
  readonly status: "running" | "queued";
  /** How long it has waited, or had. */
  readonly waitMs: number;
  /** How long it has been out. */
  readonly runMs?: number;
};

const DEFAULT_PROJECT = "";
const HAND_TURNED_LOOK_MS = 20;
const NO_OPTIONS: AcquireOptions & ReleaseOptions = {};

/** Dates of a clock that cannot be set: one that is set back would hold up every window, one set ahead end them all. */
const { timeOrigin } = performance;
const unsettableNow = (): number => timeOrigin + performance.now();

export class LiveGate {
  private readonly gate: Gate;
  private readonly time: () => number;
  /** What dates are held to. */
  readonly wallNow: () => number;
  private readonly alarm: Alarm;
  private waiting = 0;
  private lastNow = 0;
  private order = 0;
  /** No permit runs out before this. */
  private expiryFrom: number = Number.POSITIVE_INFINITY;
  private isClosed = false;

  constructor(settings: GateSettings, options: GateOptions) {
    this.gate = newGate(settings);
    const { clock, now } = options;
    this.time = clock === undefined ? (now ?? unsettableNow) : () => clock.elapsed();
    this.wallNow = clock === undefined ? (now ?? Date.now) : () => clock.now();
    this.alarm = new Alarm({
      ring: () => this.wake(),
      clock: clock ?? realClock,
      isHandTurned: clock === undefined && now !== undefined,
    });
  }

  schedule(id: string, priority?: GateClass): ScheduleResult {
    checkId(id);
    const ticketClass = priority === undefined ? this.gate.settings.defaultPriority : parseClass("priority", priority);
    if (this.isClosed) throw new GateClosedError();
    const now = this.advance();
    const reason = this.duplicate(id);
    if (reason !== null) return { status: "rejected", reason };
    const ticket = this.newTicket(id, ticketClass, NO_OPTIONS, now);
    if (this.tryAdmit(ticket, now) !== null) return { status: "ready" };
    this.enqueue(ticket, now);
    if (this.gate.held.has(id)) return { status: "ready" };
    const waiting = waitingOf(this.gate, id, now) as Waiting;
    if (waiting.status === "queued") return waiting;
    return { status: "rate-limited", retryAfterMs: waiting.retryAfterMs };
  }

  acquire(id: string, options?: AcquireOptions): Promise<Permit> {
    try {
      checkId(id);
      if (options !== undefined) checkAcquireOptions(options);
      options?.signal?.throwIfAborted();
      const now = this.readyFor(id);
      const ticketClass = options?.priority ?? this.gate.settings.defaultPriority;
      return this.admitOrWait(this.newTicket(id, ticketClass, options ?? NO_OPTIONS, now), options?.signal, now);
    } catch (refusal) {
      return Promise.reject(refusal);
    }
  }

  /** Back in the queue with its age, after it was throttled; its permit is released. */
  acquireAgain(permit: Permit, signal: AbortSignal | undefined): Promise<Permit> {
    try {
      signal?.throwIfAborted();
      const now = this.readyFor(permit.id);
      return this.admitOrWait(new WaitingTicket(permit.held, now), signal, now);
    } catch (refusal) {
      return Promise.reject(refusal);
    }
  }

  wait(id: string): Promise<Permit> {
    try {
      checkId(id);
      this.advance();
      const held = this.gate.held.get(id);
      if (held !== undefined) return Promise.resolve(new Permit(this, held));
      if (this.isClosed) throw new GateClosedError();
      const ticket = this.queued(id);
      if (ticket === undefined) throw new GateRefusedError(id, "Not scheduled");
      return ticket.promise ?? this.waitFor(ticket, undefined);
    } catch (refusal) {
      return Promise.reject(refusal);
    }
  }

  complete(id: string, options?: ReleaseOptions): void {
    checkId(id);
    this.settle(id, undefined, options);
  }

  /** Only if that very permit is still out: it may have run out, and its id may be in use again. */
  settle(id: string, held: GrantedPermit | undefined, options: ReleaseOptions | undefined): void {
    const given: ReleaseOptions = options === undefined ? NO_OPTIONS : fieldsOf("options", options, ["ok", "usage"]);
    const ok = parseOk(given.ok);
    const tokens = parseUsage(given.usage);
    const now = this.readClock();
    if (held === undefined || this.gate.held.get(id) === held) releasePermit(this.gate, id, { ok, tokens, at: now });
    this.advanceTo(now);
  }

  cancel(id: string): boolean {
    checkId(id);
    const now = this.advance();
    const ticket = this.queued(id);
    if (ticket === undefined) return false;
    this.drop(ticket, new GateRefusedError(id, "Cancelled"));
    this.advanceTo(now);
    return true;
  }

  rateLimited(retryAfterMs?: number, id?: string): void {
    const restMs = parseRetryAfter(retryAfterMs);
    if (id !== undefined) checkId(id);
    const now = this.advance();
    throttleGate(this.gate, { at: now, retryAfterMs: restMs, id });
    this.advanceTo(now);
  }

  queueState(): QueueState {
    const now = this.advance();
    const { held, queue } = this.gate;
    const rateLimited = rateLimit(this.gate, 0, now) !== null;
    return { running: held.size, queued: queue.entries.size, rateLimited, stats: { ...this.gate.totals } };
  }

  queueDetails(): QueueDetail[] {
    const now = this.advance();
    const running = Array.from(this.gate.held.values(), ({ id, class: priority, askedAt, grantedAt }): QueueDetail => {
      return { id, priority, status: "running", waitMs: grantedAt - askedAt, runMs: now - grantedAt };
    });
    const queued = queuedTickets(this.gate, now).map(({ id, class: priority, askedAt }): QueueDetail => {
      return { id, priority, status: "queued", waitMs: now - askedAt };
    });
    return running.concat(queued);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.alarm.clear();
    for (const { ticket } of [...this.gate.queue.entries.values()]) {
      this.drop(ticket as WaitingTicket, new GateClosedError());
    }
  }

  /** Looks at the clock and does what is due. */
  advance(): number {
    const now = this.readClock();
    this.advanceTo(now);
    return now;
  }

  /** An alarm may ring early; whatever is still to come is set again. */
  private wake(): void {
    const now = this.advance();
    this.expiryFrom = nextPermitExpiry(this.gate) ?? Number.POSITIVE_INFINITY;
    this.setAlarm(this.expiryFrom, now);
  }

  /** Refuses, or says the time. */
  private readyFor(id: string): number {
    if (this.isClosed) throw new GateClosedError();
    const now = this.advance();
    const reason = this.duplicate(id);
    if (reason !== null) throw new GateRefusedError(id, reason);
    return now;
  }

  private setAlarm(at: number | null, now: number): void {
    if (at !== null && !this.isClosed) this.alarm.set(at, now);
  }

  private advanceTo(now: number): void {
    if (now >= this.expiryFrom) this.returnExpired(now);
    if (this.gate.queue.entries.size === 0) return;
    for (let ticket = nextGrant(this.gate, now); ticket !== null; ticket = nextGrant(this.gate, now)) {
      this.admitted(grantPermit(this.gate, ticket.id, now), ticket as WaitingTicket, now);
    }
    if (this.gate.queue.entries.size === 0) return;
    // Without room only the end of a call helps, and the alarm already knows when the first permit runs out.
    if (roomLimit(this.gate) !== null && !isHeld(this.gate, now)) return;
    this.setAlarm(nextGateInstant(this.gate, now), now);
  }

  private returnExpired(now: number): void {
    for (const { id } of expiredPermits(this.gate, now)) {
      releasePermit(this.gate, id, { ok: false, tokens: null, at: now, expired: true });
    }
    this.expiryFrom = nextPermitExpiry(this.gate) ?? Number.POSITIVE_INFINITY;
    this.setAlarm(this.expiryFrom, now);
  }

  private admitOrWait(ticket: WaitingTicket, signal: AbortSignal | undefined, now: number): Promise<Permit> {
    const held = this.tryAdmit(ticket, now);
    if (held !== null) return Promise.resolve(new Permit(this, held));
    const promise = this.waitFor(ticket, signal);
    this.enqueue(ticket, now);
    return promise;
  }

  private tryAdmit(ticket: WaitingTicket, now: number): GrantedPermit | null {
    const held = admitAtOnce(this.gate, ticket, now);
    if (held !== null) this.admitted(held, ticket, now);
    return held;
  }

  private enqueue(ticket: WaitingTicket, now: number): void {
    askPermit(this.gate, ticket, now);
    this.advanceTo(now);
  }

  /** The one point of admission. */
  private admitted(held: GrantedPermit, ticket: WaitingTicket, now: number): void {
    if (held.expiresAt < this.expiryFrom) {
      this.expiryFrom = held.expiresAt;
      this.setAlarm(held.expiresAt, now);
    }
    if (ticket.promise !== null) this.endWait(ticket).resolve?.(new Permit(this, held));
  }

  private waitFor(ticket: WaitingTicket, signal: AbortSignal | undefined): Promise<Permit> {
    if (this.waiting++ === 0) this.alarm.need(true, this.lastNow);
    if (signal !== undefined)
      ticket.abortWith(signal, () => {
        this.drop(ticket, signal.reason);
        this.advance();
      });
    return ticket.promised();
  }

  private drop(ticket: WaitingTicket, reason: unknown): void {
    dropTicket(this.gate, ticket.id);
    if (ticket.promise !== null) this.endWait(ticket).reject?.(reason);
  }

  private endWait(ticket: WaitingTicket): ReturnType<WaitingTicket["settle"]> {
    if (--this.waiting === 0) this.alarm.need(false, this.lastNow);
    return ticket.settle();
  }

  private queued(id: string): WaitingTicket | undefined {
    return this.gate.queue.entries.get(id)?.ticket as WaitingTicket | undefined;
  }

  private newTicket(id: string, ticketClass: GateClass, options: AcquireOptions, now: number): WaitingTicket {
    const { project = DEFAULT_PROJECT, weight = 1, tokens = 0 } = options;
    return new WaitingTicket({ id, class: ticketClass, project, weight, tokens, askedAt: now, order: this.order++ });
  }

  private duplicate(id: string): "Already running" | "Already queued" | null {
    if (this.gate.held.has(id)) return "Already running";
    return this.gate.queue.entries.has(id) ? "Already queued" : null;
  }

  /** Whole milliseconds that never go back. */
  private readClock(): number {
    const now = this.time();
    if (!Number.isFinite(now)) throw new GateInputError("now", now, "a clock that gives milliseconds");
    if (now > this.lastNow) this.lastNow = Math.floor(now);
    return this.lastNow;
  }
}

type Resolve = (permit: Permit) => void;
type Reject = (reason: unknown) => void;

/** One executor for all promises instead of a closure for each; it runs before `new Promise` returns. */
let caughtResolve: Resolve | null = null;
let caughtReject: Reject | null = null;
const catchHandles = (resolve: Resolve, reject: Reject): void => {
  caughtResolve = resolve;
  caughtReject = reject;
};

/**
 * A ticket in the queue, and the call that waits for it.
 *
 * The ticket carries its own promise, so admission resolves exactly the call that was admitted and needs no second
 * look-up. It is one object with all its fields from the start: thousands may wait, and each is made on a hot path.
 */
class WaitingTicket implements Ticket {
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

  /** The wait is over. A ticket that is kept must not keep the promise and all it led to. */
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

/**
 * One timer for the next instant that matters. Setting a timer per permit would cost more than the permit. So there is
 * one: an earlier need moves it, a later one lets it ring, and the gate then looks again. It may ring for nothing; it
 * never rings too late.
 *
 * It keeps the process alive only while a call waits: a script that awaits a permit must not end before it comes, and
 * one that is done must not linger for a lease. A date that is turned by hand gives no sign when it is turned. If the
 * caller brings `now` and no clock, the alarm looks at it every HAND_TURNED_LOOK_MS while a call waits.
 */
class Alarm {
  private readonly ring: () => void;
  private readonly clock: Pick<Clock, "elapsed" | "ringAt">;
  private readonly isHandTurned: boolean;
  private at: number = Number.POSITIVE_INFINITY;
  private cancel: CancelAlarm | null = null;
  private isNeeded = false;

  constructor(options: { ring: () => void; clock: Pick<Clock, "elapsed" | "ringAt">; isHandTurned: boolean }) {
    this.clock = options.clock;
    this.isHandTurned = options.isHandTurned;
    this.ring = () => {
      this.at = Number.POSITIVE_INFINITY;
      this.cancel = null;
      options.ring();
    };
  }

  /** Rings at `at` or before. */
  set(at: number, now: number): void {
    if (at >= this.at) return;
    this.at = at;
    this.start(Math.max(1, at - now));
  }

  /** Whether a call waits for it. */
  need(isNeeded: boolean, now: number): void {
    if (this.isNeeded === isNeeded) return;
    this.isNeeded = isNeeded;
    if (isNeeded && this.isHandTurned && this.cancel !== null) this.start(Math.max(1, this.at - now));
    else this.cancel?.keepAlive?.(isNeeded);
  }

  clear(): void {
    this.cancel?.();
    this.at = Number.POSITIVE_INFINITY;
    this.cancel = null;
  }

  private start(delayMs: number): void {
    this.cancel?.();
    const ms = this.isHandTurned && this.isNeeded ? Math.min(delayMs, HAND_TURNED_LOOK_MS) : delayMs;
    this.cancel = ringAfter(this.clock, ms, this.ring, { keepAlive: this.isNeeded });
  }
}
