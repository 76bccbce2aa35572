import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerId } from "../../core/base/brand.ts";
import { createLeaseBook } from "./leases.ts";

test("D4 nobody is silent while what has arrived is read, however long that takes", () => {
  const turns: (() => void)[] = [];
  const alarms: (() => void)[] = [];
  const lost: WorkerId[] = [];
  let now = 0;
  const book = createLeaseBook({
    clock: {
      now: () => 0,
      elapsed: () => now,
      defer: (turn) => void turns.push(turn),
      ringAt: (_, ring) => {
        alarms.push(ring);
        return () => {};
      },
    },
    leaseMs: () => 10_000,
    onSilent: (worker) => lost.push(worker),
  });
  book.renew("ann" as WorkerId);
  now = 1250;
  alarms.shift()?.();
  // Between the look and its turn the event loop stands still for longer than a lease.
  now = 30_000;
  turns.shift()?.();
  assert.deepEqual(lost, []);
  // The next look finds that it is late.
  now = 60_000;
  alarms.shift()?.();
  assert.deepEqual(lost, []);
  book.stop();
});
