/**
 * Drover embedded, as the workload of the peers sees it: its settings, and a session in this process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Drover, openDrover } from "../src/engine/index.ts";
import type { Mode, Session } from "./peers/workload.ts";

export const CONFIG = {
  scheduler: {
    ...{ maxInFlight: 5000, maxPerAgentInFlight: 5000, maxQueue: 2_000_000, maxPerAgent: 2_000_000, maxBatch: 1000 },
    perType: { plan: null, spec: null, phase: null, code: null },
    // As the peers are set: what is done is let go, but for those who still ask.
    ...{ resultMax: 1000, remember: "1s" },
  },
  // One project does it all here, and stores more than one should in a minute.
  projects: { default: { maxConcurrent: 5000, bytesPerMinute: null } },
};
export const WITHOUT_SNAPSHOTS = { ...CONFIG, log: { snapshotEvery: 1_000_000_000 } };
/** In the rounds of a peer nothing else may be at work: nothing is left to be forgotten then. */
export const BESIDE_PEERS = { ...WITHOUT_SNAPSHOTS, scheduler: { ...CONFIG.scheduler, remember: "1ms" } };
const A_MOMENT_MS = 100;
export const CALLERS = 2000;
/** As pg-boss and graphile-worker are given theirs. */
export const PER_BATCH = 1000;
export const BATCHES = 2;

export async function withDrover<Value>(config: object, work: (drover: Drover) => Promise<Value>): Promise<Value> {
  const data = mkdtempSync(join(tmpdir(), "drover-bench-"));
  try {
    const drover = await openDrover({ data, config });
    try {
      return await work(drover);
    } finally {
      await drover.close();
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** Drover as the workload of the peers sees it: one task per call by many callers, or batches by a few. */
export async function openSession(drover: Drover, mode: Mode, batches = BATCHES): Promise<Session> {
  let ran = 0;
  let submitted = 0;
  let onLast = (): void => {};
  await drover.worker({ slots: 4000 }, () => {
    if (++ran === submitted) onLast();
  });
  const isSingle = mode === "singles";
  const isForgetful = drover.effectiveConfig().scheduler.remember < A_MOMENT_MS;
  return {
    perCall: isSingle ? 1 : PER_BATCH,
    inFlight: isSingle ? CALLERS : batches,
    submit(count) {
      submitted += count;
      const agentId = `agent-${submitted % 10}`;
      if (isSingle) return drover.submit({ agentId, action: "noop" });
      return drover.submitBatch({ agentId, tasks: Array.from({ length: count }, () => ({ action: "noop" })) });
    },
    ran: () => ran,
    async completed() {
      if (ran < submitted) await new Promise<void>((resolve) => (onLast = resolve));
      while (drover.state.totals.completed < submitted) await nextTurn();
      // What a round leaves to be forgotten in a moment it forgets itself: no other round pays for that.
      if (isForgetful) while (drover.state.tombstones.size > 0) await nextTurn();
      // Answered when all that was applied before is on disk.
      await drover.stats();
    },
    [Symbol.asyncDispose]: async () => {},
  };
}
