/**
 * A lead that is renewed, for every driver: when it is renewed, and from when on it is no longer sure.
 *
 * All time is that of a clock that cannot be set. A renewal counts from when it was *sent*, since nobody knows when the
 * other side began to count; and a part of the lease is never used, since the other side's clock may run faster. So
 * whoever holds a lead stops deciding before anybody else can begin, as long as clocks run at about the same pace. If
 * they do not, an append is refused: safety does not rest on this.
 */
import { errorText } from "../../core/base/index.ts";
import { answerWithin, type CancelAlarm, type Clock, ringAfter } from "../../std/index.ts";
import type { Lead, LeadLoss } from "../log.ts";

/** Of a lease, this part passes between two renewals. */
const RENEWALS_PER_LEASE = 3;
/** After one that failed, the next follows sooner. */
const TRIES_PER_LEASE = 10;
/** This part of a lease is never used. */
const MARGIN = 0.1;
/** A lead that cannot be given up by then runs out by itself. */
const GIVE_UP_MS = 1000;

type LeaseInput = {
  readonly epoch: number;
  readonly ttlMs: number;
  readonly clock: Clock;
  /** When the request that took the lead was sent, by `clock.elapsed()`. */
  readonly sentAt: number;
  /** Renews it; false if it is not this node's any more. A rejection is tried again while there is time. */
  readonly renew: () => Promise<boolean>;
  /** Gives it up. What it rejects with is nobody's business: the lease ends by itself. */
  readonly giveUp: () => Promise<void>;
};

export type Lease = Lead & {
  /** Ends it for a reason of the driver's own: another node took it, the handle was closed. */
  lose(loss: LeadLoss): void;
};

/** The one lead that a handle may have. */
export type OneLead = {
  /** Notes a lead that is being taken; null if it was not free. */
  taking(asked: Promise<Lease | null>): Promise<Lease | null>;
  /** Gives up what was taken last, also what is won only now; an answer that does not come is not waited for. */
  release(): Promise<void>;
};

export function createOneLead(clock: Clock): OneLead {
  let last: Promise<Lease | null> = Promise.resolve(null);
  return {
    taking(asked) {
      last = asked;
      return asked;
    },
    release: () =>
      soon(
        clock,
        last.then((lease) => lease?.release()),
      ),
  };
}

/** Resolves when it is done, or could not be done, or a second has passed. */
const soon = (clock: Clock, work: Promise<void>): Promise<void> =>
  answerWithin(clock, GIVE_UP_MS, work, () => new Error("no answer came")).catch(() => {});

export function keepLease({ epoch, ttlMs, clock, sentAt, renew, giveUp }: LeaseInput): Lease {
  const usableMs = Math.floor(ttlMs * (1 - MARGIN));
  const lost = Promise.withResolvers<LeadLoss>();
  let until = sentAt + usableMs;
  let isLost = false;
  let lastError = "";
  let cancelRenewal: CancelAlarm = () => {};
  let cancelEnd: CancelAlarm = () => {};
  let releasing: Promise<void> | null = null;

  function lose(loss: LeadLoss): void {
    if (isLost) return;
    isLost = true;
    cancelRenewal();
    cancelEnd();
    lost.resolve(loss);
  }

  function atEnd(): void {
    if (clock.elapsed() < until) return watchEnd();
    const why = lastError === "" ? "no answer came" : lastError;
    lose({ reason: "expired", message: `the lead of epoch ${epoch} was not renewed in ${usableMs} ms: ${why}` });
  }
  function watchEnd(): void {
    cancelEnd = clock.ringAt(until, atEnd, { keepAlive: false });
  }
  function renewAfter(ms: number): void {
    cancelRenewal = ringAfter(clock, ms, () => void renewNow(), { keepAlive: false });
  }

  async function renewNow(): Promise<void> {
    const askedAt = clock.elapsed();
    try {
      const isOurs = await renew();
      if (isLost) return;
      if (!isOurs) return lose({ reason: "taken", message: `the lead of epoch ${epoch} is another node's` });
      lastError = "";
      until = askedAt + usableMs;
      renewAfter(Math.max(0, askedAt + ttlMs / RENEWALS_PER_LEASE - clock.elapsed()));
    } catch (error) {
      lastError = errorText(error);
      if (!isLost) renewAfter(ttlMs / TRIES_PER_LEASE);
    }
  }

  async function release(): Promise<void> {
    lose({ reason: "released", message: `the lead of epoch ${epoch} was given up` });
    await soon(clock, giveUp());
  }

  watchEnd();
  renewAfter(Math.max(0, sentAt + ttlMs / RENEWALS_PER_LEASE - clock.elapsed()));
  return {
    epoch,
    lost: lost.promise,
    holds: () => !isLost && clock.elapsed() < until,
    release: () => {
      releasing ??= release();
      return releasing;
    },
    lose,
  };
}
