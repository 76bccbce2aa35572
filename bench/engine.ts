/**
 * The embedded engine on a real disk: submit → assign → finish, an fsync before every answer, next to the peers.
 *
 * Each task is a no-op run by a worker in the same process, and counts when its end is durable. Drover and each of the
 * peers, at its best reasonable settings (bench/peers.ts), are given the same workload in turn, round by round
 * (bench/peers/workload.ts): a machine shared with others may be half as fast for a minute, and must not be so for one
 * of them only. Then: the rate without a rest, what an unrelated request waits meanwhile, how long a restart with a
 * million queued tasks takes, and the longest pause while a snapshot of them is made.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Drover, openDrover } from "../src/engine/index.ts";
import {
  BATCHES,
  BESIDE_PEERS,
  CALLERS,
  CONFIG,
  openSession,
  PER_BATCH,
  WITHOUT_SNAPSHOTS,
  withDrover,
} from "./embedded.ts";
import { type Duel, type Mode, playAlone, playInTurn, type Workload } from "./peers/workload.ts";
import { FULL, PEERS, QUICK, withPeer } from "./peers.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";

/** Long enough for several snapshots, and for thousands of waits: of fifty, the 99th percentile is the longest. */
const SECONDS_ON_END = 6;
const RATIO_FLOOR = 5;
/** What snapshots may leave of the rate, and what somebody else may wait. */
const SNAPSHOTS_LEAVE = 0.8;
const OTHER_MS = 20;
/** A round is long enough for one or two. */
const WITH_SNAPSHOTS: Workload = { seconds: 4, rounds: 5 };

/**
 * Tasks a second: without a rest, so that snapshots are made meanwhile; while every caller hears of every end. And what
 * an unrelated request waits then.
 */
type Run = {
  readonly onEndPerSecond: number;
  readonly toldPerSecond: number;
  readonly otherP99Ms: number;
};

function measureAlone(mode: Mode, scale: number): Promise<Run> {
  const seconds = SECONDS_ON_END / scale;
  return withDrover(CONFIG, async (drover) => {
    const session = await openSession(drover, mode);
    const onEndPerSecond = await playAlone(session, { seconds, rounds: 1 });
    const other = watchOther(drover);
    let toldPerSecond = 0;
    let otherP99Ms = Number.NaN;
    try {
      toldPerSecond = await eachIsTold(drover, mode, seconds);
    } finally {
      otherP99Ms = await other();
    }
    return { onEndPerSecond, toldPerSecond, otherP99Ms };
  });
}

/** The same load with snapshots and without, in turn, round by round: which part of the rate is left. */
function measureSnapshots(mode: Mode, quick: boolean): Promise<Duel> {
  return withDrover(CONFIG, (snapping) =>
    withDrover(WITHOUT_SNAPSHOTS, async (without) =>
      playInTurn(await openSession(snapping, mode), await openSession(without, mode), quick ? QUICK : WITH_SNAPSHOTS),
    ),
  );
}

function snapshotRow(how: string, { ours, theirs, ratio, micros }: Duel): Row {
  const cpu = `CPU µs ${micros.ours.toFixed(1)} and ${micros.theirs.toFixed(1)}`;
  return {
    ...{ what: `${how}, on end: rate with snapshots ÷ without`, value: ratio, unit: "×" },
    note: `${Math.round(ours)} and ${Math.round(theirs)} tasks/s, ${cpu}`,
    ...{ target: `≥ ${SNAPSHOTS_LEAVE}`, met: ratio >= SNAPSHOTS_LEAVE },
  };
}

const otherRow = (how: string, ms: number): Row => ({
  ...{ what: `p99 of an unrelated request meanwhile, ${how}`, value: ms, unit: "ms" },
  ...{ target: `≤ ${OTHER_MS}`, met: ms <= OTHER_MS },
});

/** A steady load: every caller hears of the end of each of its tasks before it submits more. Answers tasks a second. */
async function eachIsTold(drover: Drover, mode: Mode, seconds: number): Promise<number> {
  const start = performance.now();
  const passed = (): number => (performance.now() - start) / 1000;
  let submitted = 0;
  const one = async (): Promise<void> => {
    const { taskId } = await drover.submit({ agentId: `agent-${submitted++ % 10}`, action: "noop" });
    await drover.ended(taskId);
  };
  const batch = async (): Promise<void> => {
    submitted += PER_BATCH;
    const tasks = Array.from({ length: PER_BATCH }, () => ({ action: "noop" }));
    const answer = await drover.submitBatch({ agentId: `agent-${(submitted / PER_BATCH) % 7}`, tasks });
    await Promise.all(answer.tasks.map(({ taskId }) => drover.ended(taskId as string)));
  };
  const caller = async (): Promise<void> => {
    while (passed() < seconds) await (mode === "singles" ? one() : batch());
  };
  await Promise.all(Array.from({ length: mode === "singles" ? CALLERS : BATCHES }, caller));
  return submitted / passed();
}

/** Asks for the stats again and again until called; answers the 99th percentile of how long that took. */
function watchOther(drover: Drover): () => Promise<number> {
  const waits: number[] = [];
  let stop = false;
  const watching = (async (): Promise<void> => {
    while (!stop) {
      const start = performance.now();
      await drover.stats();
      waits.push(performance.now() - start);
      // A turn of the event loop in between: an answer that is there at once must not keep others from theirs.
      await nextTurn();
    }
  })();
  return async () => {
    stop = true;
    await watching;
    waits.sort((left, right) => left - right);
    return waits[Math.floor(waits.length * 0.99)] ?? Number.NaN;
  };
}

const FILLED_AT_ONCE = 10;

async function fill(drover: Drover, count: number): Promise<void> {
  const filled = bar("filling the queue", "tasks");
  for (let done = 0; done < count; done += FILLED_AT_ONCE * PER_BATCH) {
    const batches = Array.from({ length: FILLED_AT_ONCE }, (_, index) => ({
      agentId: `agent-${(done / PER_BATCH + index) % 97}`,
      project: `project-${(done / PER_BATCH + index) % 31}`,
      tasks: Array.from({ length: PER_BATCH }, (_, task) => ({
        action: "noop",
        priority: (task % 5) * 10,
        params: { task },
      })),
    }));
    await Promise.all(batches.map((batch) => drover.submitBatch(batch)));
    filled.at(done, count);
  }
  filled.end();
}

type Restart = {
  readonly fromEventsS: number;
  readonly fromSnapshotS: number;
  readonly pauseMs: number;
  readonly heapPerTask: number;
};

async function measureRestart(count: number): Promise<Restart> {
  const data = mkdtempSync(join(tmpdir(), "drover-bench-"));
  const config = WITHOUT_SNAPSHOTS;
  const reopen = async (): Promise<{ drover: Drover; seconds: number }> => {
    globalThis.gc?.();
    const start = performance.now();
    const drover = await openDrover({ data, config });
    const seconds = (performance.now() - start) / 1000;
    if (drover.state.queued !== count) throw new Error(`${drover.state.queued} of ${count} tasks are there`);
    return { drover, seconds };
  };
  try {
    const first = await openDrover({ data, config });
    await fill(first, count);
    await first.close();
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const second = await reopen();
    globalThis.gc?.();
    const heapPerTask = (process.memoryUsage().heapUsed - before) / count;
    const pauseMs = await longestPause(() => second.drover.snapshot());
    await second.drover.close();
    const third = await reopen();
    await third.drover.close();
    return { fromEventsS: second.seconds, fromSnapshotS: third.seconds, pauseMs, heapPerTask };
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

/** The longest the event loop did not come round while this was under way. */
async function longestPause(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let stop = false;
  const tick = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!stop) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  stop = true;
  return longest;
}

/**
 * Drover beside each peer in turn, like with like: a call that carries one task beside the peers' calls of one job,
 * batches beside batches. The fastest peer is the one beside which Drover does worst.
 */
async function besidePeers(mode: Mode, quick: boolean): Promise<Row[]> {
  const how = mode === "singles" ? "single submits" : "batches";
  const perSecond: number[] = [];
  let least = Number.NaN;
  let fastest = "no peer could run";
  const rows: Row[] = [];
  for (const peer of PEERS) {
    const met = await withPeer(peer, mode, (theirs) =>
      withDrover(BESIDE_PEERS, async (drover) => {
        return playInTurn(await openSession(drover, mode), theirs, quick ? QUICK : FULL);
      }),
    );
    if ("skipped" in met) {
      rows.push({ what: `${met.peer}, ${how}`, value: 0, unit: "jobs/s", note: `skipped: ${met.skipped}` });
      continue;
    }
    const { ours, theirs, ratio } = met.found;
    progress(
      `${met.peer}, ${how}: ${Math.round(theirs)} jobs/s, Drover ${Math.round(ours)}, ${ratio.toFixed(1)} times`,
    );
    rows.push({ what: `${met.peer}, ${how}`, value: theirs, unit: "jobs/s", note: met.server });
    perSecond.push(ours);
    if (!(least <= ratio)) [least, fastest] = [ratio, met.peer];
  }
  return [
    {
      ...{ what: `Drover: ${how}, beside each of the peers`, value: Math.max(...perSecond), unit: "tasks/s" },
      note: perSecond.map((rate) => Math.round(rate)).join(", "),
    },
    ...rows,
    {
      ...{ what: `Drover ÷ the fastest peer, ${how}`, value: least, unit: "×", note: fastest },
      ...{ target: "≥ 5 (aim 10)", met: least >= RATIO_FLOOR },
    },
  ];
}

export async function run(options: Options): Promise<Report> {
  const scale = options.quick ? 20 : 1;
  const single = await besidePeers("singles", options.quick);
  const batched = await besidePeers("batches", options.quick);
  progress("drover alone\n");
  const singleAlone = await measureAlone("singles", scale);
  const batchedAlone = await measureAlone("batches", scale);
  progress("with snapshots and without\n");
  const singleSnapshots = await measureSnapshots("singles", options.quick);
  const batchedSnapshots = await measureSnapshots("batches", options.quick);
  progress("restart\n");
  const queued = 1_000_000 / scale;
  const restart = await measureRestart(queued);
  const n = queued.toLocaleString("en-US");
  const rows: Row[] = [
    ...single,
    ...batched,
    { what: "single submits, on end, with snapshots", value: singleAlone.onEndPerSecond, unit: "tasks/s" },
    { what: "batches, on end, with snapshots", value: batchedAlone.onEndPerSecond, unit: "tasks/s" },
    { what: "single submits, each waits for its end", value: singleAlone.toldPerSecond, unit: "tasks/s" },
    { what: "batches, each waits for its ends", value: batchedAlone.toldPerSecond, unit: "tasks/s" },
    otherRow("single", singleAlone.otherP99Ms),
    otherRow("batched", batchedAlone.otherP99Ms),
    snapshotRow("single submits", singleSnapshots),
    snapshotRow("batches", batchedSnapshots),
    {
      what: `restart with ${n} queued, from events`,
      value: restart.fromEventsS,
      unit: "s",
      target: "≤ 10",
      met: restart.fromEventsS <= 10,
    },
    {
      what: `restart with ${n} queued, from a snapshot`,
      value: restart.fromSnapshotS,
      unit: "s",
      target: "≤ 10",
      met: restart.fromSnapshotS <= 10,
    },
    {
      what: "memory per queued task",
      value: restart.heapPerTask,
      unit: "B",
      target: "≤ 600",
      met: restart.heapPerTask <= 600,
    },
    {
      what: "longest pause while a snapshot is made",
      value: restart.pauseMs,
      unit: "ms",
      target: "≤ 50",
      met: restart.pauseMs <= 50,
    },
  ];
  return { name: "engine", rows };
}
