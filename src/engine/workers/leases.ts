/**
 * Who is still there: one lease per worker over the wire, in memory.
 *
 * A worker that says anything has its lease renewed; one that is silent for the length of a lease is given up. Leases
 * never enter the log: a new engine grants every worker a full one, since silence towards a dead process says nothing.
 *
 * Only silence that this process would have heard counts. The book looks at the clock several times per lease, and if a
 * look comes much later than it was meant to (the event loop stood still, the machine slept) every worker gets a full
 * lease anew. A lease that ends is ended a turn later, after whatever had arrived was read. A wall clock that is set
 * costs no worker anything: what has elapsed is counted.
 */
import type { WorkerId } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";

/** How often the book looks at the clock within a lease, and how late a look may be before it counts as a stall. */
const LOOKS_PER_LEASE = 8;
const LATE_MS_MIN = 250;

type LeaseBook = {
  /** Grants a full lease; answers how long it lasts: longer if it was longer. */
  renew(worker: WorkerId): number;
  end(worker: WorkerId): void;
  stop(): void;
};

export function createLeaseBook(options: {
  readonly clock: Clock;
  readonly leaseMs: () => number;
  readonly onSilent: (worker: WorkerId) => void;
}): LeaseBook {
  const { clock, leaseMs, onSilent } = options;
  const ends = new Map<WorkerId, number>();
  let cancel: (() => void) | null = null;
  let stopped = false;

  function renew(worker: WorkerId): number {
    const now = clock.elapsed();
    const end = grant(worker, now);
    if (cancel === null) watch();
    return end - now;
  }

  /** A lease that was made shorter takes nothing back: until an answer says so, the worker counts on what it has. */
  function grant(worker: WorkerId, now: number): number {
    const end = Math.max(ends.get(worker) ?? 0, now + leaseMs());
    ends.set(worker, end);
    return end;
  }

  /** The next look: at the earliest end, or an eighth of a lease from now. */
  function watch(): void {
    cancel?.();
    cancel = null;
    if (stopped || ends.size === 0) return;
    const now = clock.elapsed();
    let next = now + Math.max(1, Math.ceil(leaseMs() / LOOKS_PER_LEASE));
    for (const end of ends.values()) if (end < next) next = Math.max(end, now);
    cancel = clock.ringAt(next, () => look(next), { keepAlive: false });
  }

  function look(meantFor: number): void {
    cancel = null;
    const now = clock.elapsed();
    if (now - meantFor > Math.max(LATE_MS_MIN, leaseMs() / LOOKS_PER_LEASE)) return grantAll(now);
    // What has arrived meanwhile is read before a worker is given up; however long that takes, no worker counts as
    // silent in it.
    clock.defer(() => {
      for (const [worker, end] of ends) {
        if (end > now) continue;
        ends.delete(worker);
        onSilent(worker);
      }
      watch();
    });
  }

  function grantAll(now: number): void {
    for (const worker of ends.keys()) grant(worker, now);
    watch();
  }

  return {
    renew,
    end(worker) {
      ends.delete(worker);
    },
    stop() {
      stopped = true;
      cancel?.();
      cancel = null;
    },
  };
}
