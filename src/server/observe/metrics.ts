/**
 * Numbers for Prometheus.
 *
 * What is live now is read from the engine's state when somebody asks for it, so nothing is kept up to date in between
 * and nothing can drift. What has been is counted as events become durable. Names that callers choose (projects, gates)
 * are labels only as far as they are bounded: the busiest few by name, all others together as `other`, so that no
 * caller can make a dashboard's memory grow. Where there is no `other`, all labels are in use at once anyway.
 */
import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from "prom-client";
import { gateStanding } from "../../core/gate/index.ts";
import type { State } from "../../core/model/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { planStateOf } from "../../engine/plans/index.ts";
import { queuedOf, workerStatus } from "../../engine/views/index.ts";
import type { Applied, Commit } from "../../engine/writer/index.ts";
import type { WebhookOutcome } from "../webhooks/dispatcher.ts";
import { createHistogram, type Histogram } from "./histogram.ts";
import { createAnswerTimes } from "./response-times.ts";

/** So many projects and gates have a label of their own. */
const NAMED_MAX = 50;
const OTHER = "other";
/** In milliseconds. */
const SHORT_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];
const LONG_MS = [5, 25, 100, 500, 1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000];
const EVENTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000];
/** Gauges of the library that are called like counters; their parts are there under names of their own. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];
const PLAN_STATES = ["running", "paused", "done", "failed", "cancelled"] as const;
const WORKER_STATUSES = ["idle", "busy", "overloaded", "draining", "unreachable"] as const;

export type MetricsParts = {
  readonly drover: Drover;
  readonly node?: Pick<DroverNode, "life" | "applied" | "ageMs" | "readOnly">;
  readonly webhooksDue: () => number;
  readonly streams: () => number;
  readonly polls: () => number;
};
type Metrics = {
  text(): Promise<string>;
  onCommitted(batch: readonly Applied[], commit: Commit): void;
  onWebhook(outcome: WebhookOutcome): void;
  readonly answers: Pick<ReturnType<typeof createAnswerTimes>, "of">;
  onRejected(): void;
};

export function createMetrics(parts: MetricsParts): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  for (const name of MISNAMED) register.removeSingleMetric(name);
  addStanding(register, parts);
  addTotals(register, parts.drover.state);
  if (parts.node !== undefined) addNode(register, parts.node);
  const tasks = taskHistograms(register);
  const log = logMetrics(register, parts.drover);
  const webhooks = new Counter({
    name: "drover_webhook_tries_total",
    help: "Tries to deliver a webhook, by what came of them.",
    labelNames: ["outcome"] as const,
    registers: [register],
  });
  for (const outcome of ["delivered", "retried", "failed"]) webhooks.inc({ outcome }, 0);
  const rejected = new Counter({
    name: "drover_tasks_rejected_total",
    help: "Tasks that found no room, since this server started.",
    registers: [register],
  });
  const answers = createAnswerTimes();
  add(register, answers.histogram);
  return {
    text: () => register.metrics(),
    onCommitted(batch, commit) {
      log(batch.length, commit);
      for (const { event, task } of batch) tasks(event, task);
    },
    onWebhook: ({ kind }) => webhooks.inc({ outcome: kind }),
    answers,
    onRejected: () => rejected.inc(),
  };
}

function add(register: Registry, histogram: Histogram): Histogram {
  register.registerMetric(histogram as unknown as Metric);
  return histogram;
}

/** A gauge without labels that is read when somebody looks. */
function gauge(register: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [register],
    async collect() {
      this.set(await read());
    },
  });
}

/** How things stand at the moment somebody looks. */
function addStanding(register: Registry, { drover, webhooksDue, streams, polls }: MetricsParts): void {
  const { state, logTime } = drover;
  const tasks = "Tasks that have not ended, by project and by what they are at.";
  addBusiest(register, "project", "drover_tasks", tasks, () =>
    [...state.projects.values()].map((project) => {
      const { id, backlog, queued, inFlight } = project;
      const counts = { waiting: queuedOf(project) - queued, queued, in_flight: inFlight };
      return { id: id as string, weight: backlog + inFlight, counts };
    }),
  );
  gauge(register, "drover_tasks_parked", "Tasks that wait for a person.", () => state.parked - state.awaiting);
  const gates = "Permits that are out, calls that wait, and whether the gate is blocked.";
  addBusiest(register, "gate", "drover_gate_permits", gates, () => {
    const { at: now } = logTime();
    return [...state.gates].map(([id, gate]) => {
      const { running, queued, blockedUntil } = gateStanding(gate, now);
      const counts = { held: running, queued, blocked: blockedUntil === null ? 0 : 1 };
      return { id: id as string, weight: running + queued, counts };
    });
  });
  new Gauge({
    name: "drover_workers",
    help: "Workers by what they are at.",
    labelNames: ["status"] as const,
    registers: [register],
    collect() {
      const byStatus = Map.groupBy(state.fleet.order, workerStatus);
      for (const status of WORKER_STATUSES) this.set({ status }, byStatus.get(status)?.length ?? 0);
    },
  });
  new Gauge({
    name: "drover_plans",
    help: "Plans that are known, by how they stand.",
    labelNames: ["state"] as const,
    registers: [register],
    collect() {
      const byState = Map.groupBy(state.plans.values(), planStateOf);
      for (const one of PLAN_STATES) this.set({ state: one }, byState.get(one)?.length ?? 0);
    },
  });
  gauge(register, "drover_plan_tasks", "Tasks that plans hold, live or ended.", () => state.heldByPlans);
  gauge(register, "drover_event_streams", "Readers that follow the events.", streams);
  gauge(register, "drover_long_polls", "Calls that wait for an answer.", polls);
  gauge(register, "drover_webhooks_due", "Webhooks not delivered yet.", webhooksDue);
  gauge(register, "drover_files", "Contents of files that are kept for tasks.", () => drover.files.totals().count);
  gauge(register, "drover_files_bytes", "Their bytes.", () => drover.files.totals().bytes);
  gauge(register, "drover_paused", "Whether the whole fleet is paused.", () => (state.paused ? 1 : 0));
}

/** Of a node of a cluster. */
function addNode(register: Registry, { life, applied, ageMs, readOnly }: NonNullable<MetricsParts["node"]>): void {
  gauge(register, "drover_node_leads", "Whether this node leads its cluster.", () => (life().leads() ? 1 : 0));
  gauge(register, "drover_node_epoch", "How often the lead of the cluster has changed.", () => applied().epoch);
  const isReadOnly = (): number => (readOnly() === null ? 0 : 1);
  gauge(register, "drover_node_read_only", "Whether its journal is full, so that only reads are answered.", isReadOnly);
  gauge(register, "drover_node_lag_ms", "For how long this node may have missed what the leader did.", ageMs);
}

/** A gauge of rows whose names callers choose. */
function addBusiest(
  register: Registry,
  label: "project" | "gate",
  name: string,
  help: string,
  read: () => readonly Row[],
): void {
  new Gauge({
    name,
    help,
    labelNames: [label, "state"],
    registers: [register],
    collect() {
      this.reset();
      for (const { id, counts } of busiest(read()))
        for (const [at, count] of Object.entries(counts)) this.inc({ [label]: id, state: at }, count);
    },
  });
}

type Row = { readonly id: string; readonly weight: number; readonly counts: Readonly<Record<string, number>> };

/** The busiest by their own name; what they are called is their callers' choice, so ties end in the name. */
function busiest(rows: readonly Row[]): readonly Row[] {
  if (rows.length <= NAMED_MAX) return rows;
  const order = [...rows].sort((left, right) => right.weight - left.weight || (left.id < right.id ? -1 : 1));
  return order.map((row, index) => (index < NAMED_MAX ? row : { ...row, id: OTHER }));
}

/** Totals of the log's whole life: they survive a restart, as the log does. */
function addTotals(register: Registry, state: State): void {
  const registers = [register];
  const total = (name: string, help: string, read: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  };
  total("drover_tasks_submitted_total", "Tasks that were let in.", () => state.totals.submitted);
  total("drover_tasks_expired_total", "Tasks whose deadline passed.", () => state.totals.expired);
  total("drover_starts_total", "Attempts that were given to a worker.", () => state.totals.starts);
  new Counter({
    name: "drover_tasks_ended_total",
    help: "Tasks that ended, by how.",
    labelNames: ["outcome"] as const,
    registers,
    collect() {
      this.reset();
      this.inc({ outcome: "done" }, state.totals.completed);
      this.inc({ outcome: "failed" }, state.totals.failed);
      this.inc({ outcome: "cancelled" }, state.totals.cancelled);
      this.inc({ outcome: "skipped" }, state.totals.skipped);
    },
  });
}

const OUTCOME: ReadonlyMap<string, string> = new Map([
  ["task-done", "done"],
  ["attempt-done", "done"],
  ["task-failed", "failed"],
  ["attempt-failed", "retried"],
  ["attempt-lost", "lost"],
  ["round-ended", "again"],
]);

/** How long tasks waited and ran. A task that has moved on since is not counted rather than counted wrong. */
function taskHistograms(register: Registry): (event: Applied["event"], task: Applied["task"]) => void {
  const wait = add(
    register,
    createHistogram({
      name: "drover_task_wait_seconds",
      help: "From runnable to given to a worker.",
      bounds: LONG_MS,
      perUnit: 1000,
    }),
  ).of({});
  const run = add(
    register,
    createHistogram({
      name: "drover_task_run_seconds",
      help: "From given to a worker to the end of the attempt, by how it ended.",
      bounds: LONG_MS,
      perUnit: 1000,
    }),
  );
  const byOutcome = new Map<string, (ms: number) => void>();
  function ran(outcome: string, ms: number): void {
    let count = byOutcome.get(outcome);
    if (count === undefined) {
      count = run.of({ outcome });
      byOutcome.set(outcome, count);
    }
    count(ms);
  }
  return (event, task) => {
    if (task === null || event.kind === "task-submitted") return;
    if (event.kind === "task-assigned") {
      const since = task.runnableAt;
      if (since >= 0 && since <= event.at) wait(event.at - since);
      return;
    }
    // Of one that waited for its children, the attempt was counted when it was done.
    if (event.kind === "task-done" && event.resultSeq !== null) return;
    // What was given back never ran.
    if (event.kind === "attempt-lost" && event.cause === "not-begun") return;
    const outcome = OUTCOME.get(event.kind);
    if (outcome === undefined) return;
    const since = task.startedAt;
    if (since >= 0 && since <= event.at) ran(outcome, event.at - since);
  };
}

function logMetrics(register: Registry, drover: Drover): (events: number, commit: Commit) => void {
  const registers = [register];
  const append = add(
    register,
    createHistogram({
      name: "drover_log_append_seconds",
      help: "How long the log took to make a batch durable.",
      bounds: SHORT_MS,
      perUnit: 1000,
    }),
  ).of({});
  const size = add(
    register,
    createHistogram({ name: "drover_log_batch_events", help: "Events in one batch.", bounds: EVENTS }),
  ).of({});
  const seqOfHead = async (): Promise<number> => (await headOf(drover))?.seq ?? drover.state.seq;
  gauge(register, "drover_chain_head_seq", "The number of the last durable event.", seqOfHead);
  new Gauge({
    name: "drover_chain_head_info",
    help: "The hash of the chain after the last durable event.",
    registers,
    labelNames: ["hash"] as const,
    async collect() {
      const head = await headOf(drover);
      this.reset();
      if (head !== null) this.set({ hash: head.hash }, 1);
    },
  });
  const secondsAhead = (): number => drover.logTime().aheadMs / 1000;
  gauge(register, "drover_log_time_ahead_seconds", "How far log time is ahead of the wall clock.", secondsAhead);
  return (events, { appendMs }) => {
    append(appendMs);
    size(events);
  };
}

/** Null once the log is closed or has failed: the other numbers are still worth something then. */
async function headOf(drover: Drover): Promise<Awaited<ReturnType<Drover["head"]>> | null> {
  try {
    return await drover.head();
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
