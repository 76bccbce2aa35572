/**
 * One permit acquired and released in process, next to Bottleneck and p-queue in the same run.
 *
 * Two ways of asking. Uncontended: one caller after the other, none waits. Contended: 1010 callers over 10 slots, so
 * that 1000 always wait and every release admits one of them. The gate is given no request window, since the others
 * are measured without one; it still keeps its classes, shares, leases and statistics. Each contender is called the
 * way its users call it, in a loop of its own: the gate by acquire and release, the peers by running a function that
 * does nothing, which is the only way they have.
 *
 * Each figure is the best of several rounds, taken in turns, so that a busy machine hurts all of them alike.
 *
 * How to read the Bottleneck figure: its store lets a timer of zero (at least 1 ms) pass several times per job, one job
 * after the other, so by the wall clock it mostly waits. That is what its users get, but it says little about work
 * done. Hence the ratio of CPU time beside it; the target is held to the smaller of both.
 */

import { createGate } from "../src/gate/index.ts";
import { loadPeer, peerVersion } from "./load-peer.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";

const SLOTS = 10;
const WAITING = 1000;

/** Serves calls until `take` gives no more. */
type Caller = (take: () => number | null) => Promise<void>;
type Contender = {
  readonly name: string;
  readonly calls: number;
  readonly caller: Caller;
  readonly close: () => void;
};
type Way = { readonly what: string; readonly callers: number };
type Cost = { readonly wallNs: number; readonly cpuNs: number };

type BottleneckModule = {
  readonly default: new (options: {
    maxConcurrent: number;
  }) => { schedule(job: () => Promise<void>): Promise<void>; disconnect(): void };
};
type QueueModule = {
  readonly default: new (options: { concurrency: number }) => { add(job: () => Promise<void>): Promise<void> };
};

const WAYS: readonly Way[] = [
  { what: "uncontended", callers: 1 },
  { what: `with ${WAITING} waiting`, callers: SLOTS + WAITING },
];

export async function run({ quick }: Partial<Options> = {}): Promise<Report> {
  const contenders = await openContenders(quick ? 20_000 : 100_000);
  const rows: Row[] = [];
  for (const way of WAYS) rows.push(...rowsOf(way, contenders, await bestOf(contenders, way, quick ? 3 : 7)));
  for (const contender of contenders) contender.close();
  return { name: "gate: acquire + release in process", rows };
}

async function openContenders(calls: number): Promise<[drover: Contender, bottleneck: Contender, queue: Contender]> {
  const ids = Array.from({ length: calls }, (_, index) => `call-${index}`);
  const gate = createGate({ maxConcurrent: SLOTS, requests: Number.POSITIVE_INFINITY });
  const { default: Bottleneck } = await loadPeer<BottleneckModule>("bottleneck");
  const { default: Queue } = await loadPeer<QueueModule>("p-queue");
  const limiter = new Bottleneck({ maxConcurrent: SLOTS });
  const queue = new Queue({ concurrency: SLOTS });
  const nothing = async (): Promise<void> => {};
  const drover: Caller = async (take) => {
    for (let index = take(); index !== null; index = take()) {
      const permit = await gate.acquire(ids[index] as string);
      permit.release();
    }
  };
  const bottleneck: Caller = async (take) => {
    for (let index = take(); index !== null; index = take()) await limiter.schedule(nothing);
  };
  const pQueue: Caller = async (take) => {
    for (let index = take(); index !== null; index = take()) await queue.add(nothing);
  };
  const fewer = Math.ceil(calls / 100);
  return [
    { name: "drover", calls, caller: drover, close: () => gate.close() },
    { name: named("bottleneck"), calls: fewer, caller: bottleneck, close: () => limiter.disconnect() },
    { name: named("p-queue"), calls, caller: pQueue, close: () => {} },
  ];
}

function named(peer: string): string {
  return `${peer} ${peerVersion(peer)}`;
}

async function bestOf(contenders: readonly Contender[], way: Way, rounds: number): Promise<Map<Contender, Cost>> {
  const best = new Map<Contender, Cost>();
  const shown = bar(`gate, ${way.what}`, "measurements");
  let done = 0;
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) {
      const cost = await measure(contender, way.callers);
      const { wallNs, cpuNs } = best.get(contender) ?? cost;
      best.set(contender, { wallNs: Math.min(wallNs, cost.wallNs), cpuNs: Math.min(cpuNs, cost.cpuNs) });
      shown.at(++done, rounds * contenders.length);
    }
  }
  shown.end();
  for (const [{ name }, { wallNs, cpuNs }] of best) {
    progress(`  ${way.what}: ${name} ${Math.round(wallNs)} ns per call, ${Math.round(cpuNs)} ns of CPU`);
  }
  return best;
}

async function measure({ calls, caller }: Contender, callers: number): Promise<Cost> {
  let next = 0;
  const take = (): number | null => (next < calls ? next++ : null);
  const cpu = process.cpuUsage();
  const start = performance.now();
  await Promise.all(Array.from({ length: callers }, () => caller(take)));
  const wallNs = ((performance.now() - start) * 1e6) / calls;
  const { user, system } = process.cpuUsage(cpu);
  return { wallNs, cpuNs: ((user + system) * 1000) / calls };
}

function rowsOf(way: Way, contenders: readonly [Contender, Contender, Contender], best: Map<Contender, Cost>): Row[] {
  const [drover, bottleneck, queue] = contenders;
  const costOf = (contender: Contender): Cost => best.get(contender) ?? { wallNs: Number.NaN, cpuNs: Number.NaN };
  const speeds = contenders.map((contender): Row => {
    const value = Math.round(1e9 / costOf(contender).wallNs);
    const note = contender === bottleneck ? "mostly waits for its own timers" : "";
    return { what: `${contender.name}, ${way.what}`, value, unit: "calls/s", note };
  });
  const against = (peer: Contender, least: number): Row[] => {
    const wall = costOf(peer).wallNs / costOf(drover).wallNs;
    const cpu = costOf(peer).cpuNs / costOf(drover).cpuNs;
    const what = `drover ÷ ${peer.name.split(" ")[0]}, ${way.what}`;
    return [
      { what, value: wall, unit: "× by the clock" },
      { what, value: cpu, unit: "× by CPU time", target: `both ≥ ${least} ×`, met: Math.min(wall, cpu) >= least },
    ];
  };
  return [...speeds, ...against(bottleneck, 10), ...against(queue, 2)];
}
