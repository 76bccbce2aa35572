/**
 * The scheduler as a whole on the wire: its numbers, its queue, its rules.
 *
 * The rules are the `scheduler:` section of the config with every default. The core reads that section; a test keeps
 * the two in step, knob by knob.
 */
import { DEFAULT_CONFIG, type SchedulerRules, STRATEGIES } from "../../core/config/index.ts";
import type { SchedulerInput } from "../generated/config-input.ts";
import type * as wire from "../generated/scheduler.ts";
import { type Knobs, knob, patchOf, type Section, section, spanKnob } from "../schema/knobs.ts";
import * as s from "../schema/schema.ts";

/** The scheduler section in force. Spans are whole milliseconds. */
export type SchedulerConfig = SchedulerRules;
/** Fields to change; null takes a field back. */
type Patch<Value> = Value extends object ? { readonly [Key in keyof Value]: Patch<Value[Key]> | null } : Value;
/** Fields of the scheduler section to change. One that is null goes back to what the config says; null alone: all. */
export type ConfigPatchBody = Patch<SchedulerInput> | null;

const S = DEFAULT_CONFIG.scheduler;
const SCORE_MAX = 1_000_000;
const score = (): s.Schema => s.finite(-SCORE_MAX, SCORE_MAX);
const points = (): s.Schema => s.finite(0, SCORE_MAX);

const priorityKnobs: Knobs = {
  base: knob(s.table(s.nullable(score())), S.priority.base, "The base score of each type; null takes one out."),
  agePerMinute: knob(points(), S.priority.agePerMinute, "What each minute of waiting adds."),
  ageMax: knob(points(), S.priority.ageMax, "What waiting adds at most."),
  depthBoost: knob(score(), S.priority.depthBoost, "What each ancestor adds."),
  retryPenalty: knob(points(), S.priority.retryPenalty, "What each further iteration takes."),
  retryMax: knob(points(), S.priority.retryMax, "What iterations take at most."),
  starvationAfter: spanKnob(1, S.priority.starvationAfter, "Who waits so long goes first in its queue."),
};
const fairnessKnobs: Knobs = {
  rule: knob(s.oneOf("level", "deficit"), S.fairness.rule, "How projects take turns."),
  agents: knob(s.oneOf("fair", "none"), S.fairness.agents, "Whether the agents of a project take turns."),
  halfLife: spanKnob(1000, S.fairness.halfLife, "How fast what a project was charged is forgotten."),
  startCost: knob(s.whole(0, 1_000_000_000), S.fairness.startCost, "What a start costs, in tokens."),
  defaultTokens: knob(
    s.whole(0, 1_000_000_000_000),
    S.fairness.defaultTokens,
    "The charge of a task without an estimate.",
  ),
  window: spanKnob(1000, S.fairness.window, "For the deficit rule: the window of the shares."),
};
const placementKnobs: Knobs = {
  strategy: knob(s.oneOf(...STRATEGIES), S.placement.strategy, "Which of the workers that fit gets a task."),
  preferLocality: knob(s.flag(), S.placement.preferLocality, "Affinity as the first tie-break of the others."),
  maxQueuePerWorker: knob(
    s.whole(0, 1_000_000),
    S.placement.maxQueuePerWorker,
    "Tasks a worker may hold beyond its slots.",
  ),
  affinityWait: spanKnob(0, S.placement.affinityWait, "How long a preferred busy worker is waited for."),
  unresolvedAfter: spanKnob(0, S.placement.unresolvedAfter, "When a task fails whose tab no worker owns."),
};
const backpressureKnobs: Knobs = {
  perWorker: knob(s.nullable(s.whole(1)), S.backpressure.perWorker, "Tasks a worker is good for; null: not counted."),
  rejectThreshold: knob(
    s.finite(0, 1_000_000, true),
    S.backpressure.rejectThreshold,
    "Usage from which tasks are refused.",
  ),
  throttleAt: knob(
    s.finite(0, 1_000_000),
    S.backpressure.throttleAt,
    "Usage above which callers are asked to slow down.",
  ),
  acceptWithoutWorkers: knob(
    s.flag(),
    S.backpressure.acceptWithoutWorkers,
    "Whether tasks are taken with no worker there.",
  ),
};

export const schedulerSection: Section = s.component(
  "SchedulerConfig",
  section(
    {
      maxInFlight: knob(s.whole(1), S.maxInFlight, "Running tasks, whole fleet."),
      maxPerAgentInFlight: knob(
        s.whole(1),
        S.maxPerAgentInFlight,
        "Running tasks of one agent, over all its projects.",
      ),
      maxQueue: knob(s.whole(1, 10_000_000), S.maxQueue, "Waiting and queued tasks, whole fleet."),
      maxPerAgent: knob(
        s.whole(1, 10_000_000),
        S.maxPerAgent,
        "Waiting and queued tasks of one agent, over all its projects.",
      ),
      maxBatch: knob(s.whole(1, 10_000), S.maxBatch, "Tasks in one batch."),
      resultTtl: spanKnob(1, S.resultTtl, "How long a task that is done or was cancelled is kept at hand."),
      resultMax: knob(s.whole(1, 5_000_000), S.resultMax, "How many of those are kept at hand."),
      failedTtl: spanKnob(
        1,
        S.failedTtl,
        "How long a task that failed or was skipped is kept at hand, and can run again.",
      ),
      failedMax: knob(s.whole(1, 5_000_000), S.failedMax, "How many of those are kept at hand."),
      planTtl: spanKnob(1, S.planTtl, "How long a plan that has ended is known, with the records of its tasks."),
      plansMax: knob(
        s.whole(1, 10_000),
        S.plansMax,
        "How many plans are known; of who has the most, what ended first is forgotten first.",
      ),
      remember: spanKnob(1, S.remember, "How long the id of an ended task stays taken."),
      perType: knob(s.table(s.nullable(s.whole(1))), S.perType, "Running tasks of one type; null takes a limit out."),
      critical: section({
        maxInFlight: knob(s.whole(1), S.critical.maxInFlight, "Tasks of the express lane at once."),
      }),
      priority: section(priorityKnobs, { description: "The score of a task." }),
      fairness: section(fairnessKnobs, { description: "Whose turn it is." }),
      placement: section(placementKnobs, { description: "Which worker." }),
      backpressure: section(backpressureKnobs, { description: "When callers are slowed down or turned away." }),
      retry: section(
        {
          base: spanKnob(1, S.retry.base, "The rest after the first failure; it doubles."),
          max: spanKnob(1, S.retry.max, "The longest rest; at least base."),
          maxLosses: knob(s.whole(1, 1_000_000), S.retry.maxLosses, "Attempts lost by no fault of their task."),
          maxRequeues: knob(s.whole(1, 1_000_000), S.retry.maxRequeues, "How often a worker may give a task back."),
        },
        { description: "Another attempt." },
      ),
    },
    { description: "What runs next, and where." },
  ),
);

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

export const stats: s.Schema<wire.Stats> = s.namedAnswer("Stats", {
  queue: s.answer<wire.Stats["queue"]>({
    totalQueued: s.described(count(), "Waiting and queued tasks. What is parked is neither; GET /pulse has it."),
    totalInflight: s.described(count(), "Assigned and running tasks."),
    waiting: s.described(count(), "Those of totalQueued that wait for a dependency, an artifact or an instant."),
    agents: s.described(
      s.table(
        s.answer<{ queued: number; inflight: number }>({
          queued: s.described(count(), "Its share of totalQueued."),
          inflight: s.described(count(), "Its share of totalInflight."),
        }),
      ),
      "By agent, over all its projects: its share of totalQueued and of totalInflight.",
    ),
  }),
  metrics: s.answer<wire.Stats["metrics"]>({
    tasksSubmitted: s.described(
      count(),
      "Every submit, rejected ones included, and each try of one: a client that meets a full queue tries five times. " +
        "It is kept over restarts.",
    ),
    tasksCompleted: count(),
    tasksFailed: count(),
    tasksCancelled: count(),
    tasksSkipped: count(),
    tasksRejected: s.described(
      count(),
      "Tries that found no room, up to a second ago: of one task there may be several, and it may be in by now. Kept " +
        "over restarts. The log has their number, not the tasks.",
    ),
    tasksExpired: count(),
    dispatchCount: s.described(count(), "Starts."),
    avgDispatchLatencyMs: mean(),
    avgRunMs: mean(),
    agents: s.table(
      s.answer<wire.AgentTotals>({
        submitted: count(),
        completed: count(),
        failed: count(),
        cancelled: count(),
        rejected: count(),
      }),
    ),
  }),
  files: s.described(
    s.answer<wire.Stats["files"]>({
      count: s.described(count(), "Contents that are kept for tasks."),
      bytes: s.described(count(), "Their bytes."),
    }),
    "The files that tasks have left.",
  ),
  config: schedulerConfig,
});

const queuedTask: s.Schema<wire.QueuedTask> = s.answer({
  taskId: s.name(),
  type: s.name(),
  priority: s.whole(-Number.MAX_SAFE_INTEGER),
  score: s.finite(-1e300, 1e300),
  waitMs: count(),
});
const agentQueue: s.Schema<wire.AgentQueue> = s.answer({
  agentId: s.name(),
  queued: count(),
  inFlight: count(),
  next: s.described(s.list(queuedTask), "The first few, in the order they would start."),
});
export const queueView: s.Schema<wire.QueueView> = s.namedAnswer("Queue", {
  paused: s.flag(),
  waiting: count(),
  queued: count(),
  inFlight: count(),
  maxInFlight: count(),
  projects: s.described(
    s.list(
      s.answer<wire.ProjectQueue>({
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
});

/** How many of each list an answer has. */
export const LINE_DEFAULT = 50;
export const LINE_MAX = 1000;
export const lineQuery: s.Schema<wire.LineQuery> = s.object({
  limit: s.optional(s.whole(1, LINE_MAX), "How many of each list.", { default: LINE_DEFAULT }),
});
const lineEntry: s.Schema<wire.LineEntry> = s.answer({
  id: s.described(s.name(), "The task, or the permit of the call."),
  class: s.oneOf("critical", "high", "normal", "low"),
  ms: s.described(count(), "How long it has run, or waited for its turn."),
  project: s.name(),
  agentId: s.optional(s.name()),
  type: s.optional(s.name()),
  worker: s.optional(s.name(), "Where it runs."),
  gate: s.optional(s.name(), "The gate of a call."),
  task: s.optional(s.name(), "The task that makes the call, if one does."),
  held: s.optional(s.oneOf("never-fits", "budget", "no-workers"), "What holds a queued task, as in its view."),
});
const lineGate: s.Schema<wire.LineGate> = s.answer({
  id: s.name(),
  inFlight: s.described(count(), "Its calls that are out."),
  maxInFlight: s.described(count(), "How many may be out now; calls that went out before a limit sank still count."),
  queued: s.described(count(), "Its calls that wait."),
});
const linePart = (): s.Schema<wire.LinePart> =>
  s.answer<wire.LinePart>({
    inFlight: count(),
    maxInFlight: s.described(
      count(),
      "How many may be out now; of calls, the sum of the gates that are used now, or of all where none is.",
    ),
    queued: count(),
    completed: count(),
    avgWaitMs: s.described(mean(), "How long those that were let out waited, on average."),
    avgRunMs: s.described(mean(), "How long they were out, on average."),
    running: s.described(s.list(lineEntry), "Those that are out, in the order of their start."),
    next: s.described(
      s.list(lineEntry),
      "Those that wait for their turn, as it would come if nothing else happened; those that are held come last.",
    ),
    failed: s.optional(count(), "Tasks that failed; their runs count in the averages too."),
    gates: s.optional(s.list(lineGate), "Of calls, the gates: those that are used now first."),
  });
export const lineView: s.Schema<wire.LineView> = s.namedAnswer("Line", {
  seq: s.described(count(), "The number of the last event: nothing has happened while it stays the same."),
  paused: s.flag(),
  waiting: count(),
  rateLimited: s.described(count(), "Calls that met a window or a block when they asked, and 429s reported."),
  isRateLimited: s.described(s.flag(), "Whether a window or a block holds a gate now."),
  tasks: s.described(linePart(), "The tasks."),
  calls: s.described(linePart(), "The calls of all gates."),
});

export const pauseBody: s.Schema<wire.PauseBody> = s.refined(
  s.object<wire.PauseBody>({
    project: s.optional(s.name(), "This project alone."),
    task: s.optional(s.name(), "This task alone."),
  }),
  ({ project, task }) => project === undefined || task === undefined,
  "a project or a task, not both; neither for the whole fleet",
);
export const pauseStatus: s.Schema<wire.PauseStatus> = s.answer({
  status: s.oneOf("paused", "active"),
  project: s.optional(s.name()),
  task: s.optional(s.name()),
});
