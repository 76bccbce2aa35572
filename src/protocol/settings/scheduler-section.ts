/**
 * The `scheduler:` section as a schema: the rules of who runs next, with every default.
 *
 * The core reads this section; a test keeps the two in step, knob by knob.
 */
import { DEFAULT_CONFIG, STRATEGIES } from "../../core/config/index.ts";
import * as s from "../schema/schema.ts";
import { type Knobs, knob, type Section, section, spanKnob } from "./knobs.ts";

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
  defaultTokens: knob(s.whole(0, 1_000_000_000_000), S.fairness.defaultTokens, "The charge of a task nobody knows."),
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
  unresolvedAfter: spanKnob(0, S.placement.unresolvedAfter, "When a task whose tab nobody owns fails."),
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
      resultTtl: spanKnob(1, S.resultTtl, "How long an ended task is kept at hand."),
      resultMax: knob(s.whole(1, 5_000_000), S.resultMax, "How many ended tasks are kept at hand."),
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
