/**
 * The scheduler as a whole on the wire: its numbers, its queue, its rules, its events, its health.
 */
import type { SchedulerRules } from "../../core/config/index.ts";
import * as s from "../schema/schema.ts";
import { patchOf } from "../settings/knobs.ts";
import { schedulerSection } from "../settings/scheduler-section.ts";

export type SchedulerConfig = SchedulerRules;
export type AgentTotals = {
  readonly submitted: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly rejected: number;
};
export type StatsJson = {
  readonly queue: {
    readonly totalQueued: number;
    readonly totalInflight: number;
    readonly waiting: number;
    readonly agents: Readonly<Record<string, { readonly queued: number; readonly inflight: number }>>;
  };
  readonly metrics: {
    readonly tasksSubmitted: number;
    readonly tasksCompleted: number;
    readonly tasksFailed: number;
    readonly tasksCancelled: number;
    readonly tasksSkipped: number;
    readonly tasksRejected: number;
    readonly tasksExpired: number;
    readonly dispatchCount: number;
    readonly avgDispatchLatencyMs: number;
    readonly avgRunMs: number;
    readonly agents: Readonly<Record<string, AgentTotals>>;
  };
  readonly config: SchedulerConfig;
};
export type QueuedTask = {
  readonly taskId: string;
  readonly type: string;
  readonly priority: number;
  readonly score: number;
  readonly waitMs: number;
};
export type AgentQueue = {
  readonly agentId: string;
  readonly queued: number;
  readonly inFlight: number;
  readonly next: readonly QueuedTask[];
};
export type ProjectQueue = {
  readonly project: string;
  readonly status: "active" | "paused";
  readonly level: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly agents: readonly AgentQueue[];
};
export type QueueJson = {
  readonly paused: boolean;
  readonly waiting: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly maxInFlight: number;
  readonly projects: readonly ProjectQueue[];
};
export type PauseBody = { readonly project?: string; readonly task?: string };
export type PauseStatus = PauseBody & { readonly status: "paused" | "active" };
export type ConfigPatchBody = Readonly<Record<string, unknown>> | null;

const count = (): s.Schema<number> => s.whole(0);
const mean = (): s.Schema<number> => s.finite(0, 1e300);

export const schedulerConfig: s.Schema<SchedulerConfig> = s.described(
  schedulerSection as unknown as s.Schema<SchedulerConfig>,
  "The scheduler section in force. Spans are whole milliseconds.",
);
export const configPatchBody: s.Schema<ConfigPatchBody> = s.component(
  "SchedulerPatch",
  s.described(
    s.noted(s.nullable(patchOf(schedulerSection)), { expected: "an object of scheduler fields, or null" }),
    "Fields to change. A field that is null goes back to what the file says; null alone takes all back.",
    { examples: [{ maxInFlight: 20, fairness: { halfLife: "5m" } }] },
  ) as s.Schema<ConfigPatchBody>,
);

export const statsJson: s.Schema<StatsJson> = s.component(
  "Stats",
  s.answer<StatsJson>({
    queue: s.answer<StatsJson["queue"]>({
      totalQueued: s.described(count(), "Waiting and queued."),
      totalInflight: count(),
      waiting: count(),
      agents: s.table(s.answer<{ queued: number; inflight: number }>({ queued: count(), inflight: count() })),
    }),
    metrics: s.answer<StatsJson["metrics"]>({
      tasksSubmitted: s.described(count(), "Every submit, rejected ones included. It is kept over restarts."),
      tasksCompleted: count(),
      tasksFailed: count(),
      tasksCancelled: count(),
      tasksSkipped: count(),
      tasksRejected: s.described(
        count(),
        "Tasks that found no room, up to a second ago; kept over restarts. The log has their number, not the tasks.",
      ),
      tasksExpired: count(),
      dispatchCount: s.described(count(), "Starts."),
      avgDispatchLatencyMs: mean(),
      avgRunMs: mean(),
      agents: s.table(
        s.answer<AgentTotals>({
          submitted: count(),
          completed: count(),
          failed: count(),
          cancelled: count(),
          rejected: count(),
        }),
      ),
    }),
    config: schedulerConfig,
  }),
);

const queuedTask: s.Schema<QueuedTask> = s.answer<QueuedTask>({
  taskId: s.name(),
  type: s.name(),
  priority: s.whole(-Number.MAX_SAFE_INTEGER),
  score: s.finite(-1e300, 1e300),
  waitMs: count(),
});
const agentQueue: s.Schema<AgentQueue> = s.answer<AgentQueue>({
  agentId: s.name(),
  queued: count(),
  inFlight: count(),
  next: s.described(s.list(queuedTask), "The first few, in the order they would start."),
});
export const queueJson: s.Schema<QueueJson> = s.component(
  "Queue",
  s.answer<QueueJson>({
    paused: s.flag(),
    waiting: count(),
    queued: count(),
    inFlight: count(),
    maxInFlight: count(),
    projects: s.described(
      s.list(
        s.answer<ProjectQueue>({
          project: s.name(),
          status: s.oneOf("active", "paused"),
          level: s.finite(-1e300, 1e300),
          queued: count(),
          inFlight: count(),
          agents: s.list(agentQueue),
        }),
      ),
      "In the order of their turn.",
    ),
  }),
);

export const pauseBody: s.Schema<PauseBody> = s.refined(
  s.object<PauseBody>({
    project: s.described(s.optional(s.name()), "This project alone."),
    task: s.described(s.optional(s.name()), "This task alone."),
  }),
  ({ project, task }) => project === undefined || task === undefined,
  "a project or a task, not both; neither for the whole fleet",
);
export const pauseStatus: s.Schema<PauseStatus> = s.answer<PauseStatus>({
  status: s.oneOf("paused", "active"),
  project: s.optional(s.name()),
  task: s.optional(s.name()),
});
