/**
 * One process of `bench/wire.ts`: a submitter or a worker, of Drover or of a peer, as its arguments say.
 *
 * Drover is used by its SDK, as any program would. A worker says every few milliseconds how many jobs it has run, if
 * there were any: a message for each would cost more than the job. For a lone task the worker answers the time of its
 * start by the clock that all processes of a machine share.
 */
import { createClient } from "../src/client/index.ts";
import { startWorker } from "../src/worker/index.ts";
import { bullMqSubmitter, bullMqWorker } from "./peers/bullmq.ts";
import { graphileRunner, graphileSubmitter } from "./peers/graphile-worker.ts";
import { pgBossRunner, pgBossSubmitter } from "./peers/pg-boss.ts";
import { type Mode, type Runner, type Submitter, submitAll } from "./peers/workload.ts";

export type SystemName = "drover" | "bullmq" | "pg-boss" | "graphile-worker";
export type Role = "submitter" | "worker";
export type PartOrder =
  | {
      readonly type: "play";
      readonly jobs: number;
      readonly perCall: number;
      readonly inFlight: number;
      /** Whoever submits waits for the end of each task. */
      readonly isAwaited: boolean;
    }
  | { readonly type: "look" }
  | { readonly type: "lone"; readonly count: number }
  | { readonly type: "stop" };
/** From sending the submit until its handler ran, and until its end was heard of. */
export type LoneSample = { readonly startMs: number; readonly endMs: number };
export type PartReport =
  | { readonly type: "ready" | "played" }
  | { readonly type: "looked"; readonly isDone: boolean }
  | { readonly type: "lone"; readonly samples: readonly LoneSample[] }
  | { readonly type: "ran"; readonly count: number };

type WireSubmitter = Submitter & { readonly submitAndWait?: () => Promise<unknown> };
type System = {
  readonly submitter: (port: number, mode: Mode) => Promise<WireSubmitter>;
  readonly worker: (port: number, mode: Mode, onRan: (count: number) => void) => Promise<Runner>;
};

/** Of each of the two workers, where a peer takes a number. */
const SLOTS = 100;
const REPORT_MS = 5;
const AGENTS = 10;

const urlOf = (port: number): string => `http://127.0.0.1:${port}`;
const sharedClockMs = (): number => Number(process.hrtime.bigint()) / 1e6;

const SYSTEMS: Readonly<Record<SystemName, System>> = {
  drover: { submitter: droverSubmitter, worker: droverWorker },
  bullmq: { submitter: bullMqSubmitter, worker: (port, _mode, onRan) => bullMqWorker(port, SLOTS, onRan) },
  "pg-boss": { submitter: pgBossSubmitter, worker: pgBossRunner },
  "graphile-worker": { submitter: graphileSubmitter, worker: (port, _mode, onRan) => graphileRunner(port, onRan) },
};

async function droverSubmitter(port: number, mode: Mode): Promise<WireSubmitter> {
  const client = createClient({ url: urlOf(port) });
  let calls = 0;
  return {
    submit(count) {
      const agentId = `agent-${++calls % AGENTS}`;
      if (mode === "singles") return client.submit({ agentId, action: "noop" });
      return client.submitBatch({ agentId, tasks: Array.from({ length: count }, () => ({ action: "noop" })) });
    },
    async submitAndWait() {
      const { taskId } = await client.submit({ agentId: `agent-${++calls % AGENTS}`, action: "noop" });
      return client.wait(taskId);
    },
    async isDone() {
      const { queue } = await client.stats();
      return queue.totalQueued === 0 && queue.totalInflight === 0;
    },
    close: async () => {},
  };
}

async function droverWorker(port: number, _mode: Mode, onRan: (count: number) => void): Promise<Runner> {
  return startWorker({ url: urlOf(port), slots: SLOTS }, ({ action }) => {
    onRan(1);
    return action === "lone" ? sharedClockMs() : undefined;
  });
}

async function playLone(port: number, count: number): Promise<readonly LoneSample[]> {
  const client = createClient({ url: urlOf(port) });
  const samples: LoneSample[] = [];
  for (let done = 0; done < count; done++) {
    const sentAt = sharedClockMs();
    const { taskId } = await client.submit({ agentId: "lone", action: "lone" });
    const { result } = await client.wait<number>(taskId);
    samples.push({ startMs: Number(result) - sentAt, endMs: sharedClockMs() - sentAt });
  }
  return samples;
}

const say = (report: PartReport): void => void process.send?.(report);

function countingRuns(): (count: number) => void {
  let ran = 0;
  let isDue = false;
  return (count) => {
    ran += count;
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      say({ type: "ran", count: ran });
      ran = 0;
    }, REPORT_MS);
  };
}

async function beSubmitter(system: System, port: number, mode: Mode): Promise<() => Promise<unknown>> {
  const { submit, submitAndWait = submit, isDone, close } = await system.submitter(port, mode);
  process.on("message", async (order: PartOrder) => {
    if (order.type === "play") {
      await submitAll({ ...order, submit: order.isAwaited ? submitAndWait : submit }, order.jobs);
      say({ type: "played" });
    }
    if (order.type === "look") say({ type: "looked", isDone: await isDone() });
    if (order.type === "lone") say({ type: "lone", samples: await playLone(port, order.count) });
  });
  return close;
}

const [, , name, role, port, mode] = process.argv as [string, string, SystemName, Role, string, Mode];
const system = SYSTEMS[name];
const close =
  role === "submitter"
    ? await beSubmitter(system, Number(port), mode)
    : await system.worker(Number(port), mode, countingRuns()).then((runner) => () => runner.close());
process.on("message", async (order: PartOrder) => {
  if (order.type !== "stop") return;
  await close();
  process.exit(0);
});
// The process that started it is gone.
process.on("disconnect", () => process.exit(1));
say({ type: "ready" });
