/**
 * Is the auditor awake? Each row plants one bug in the engine, its host, its log or what the auditor is shown, and
 * names the rule that must be reported for it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "../core/config/config.ts";
import type { Event, EventKind } from "../core/model/events.ts";
import type { State } from "../core/model/state.ts";
import type { Inputs } from "../engine/index.ts";
import type { PlanVerbs } from "../engine/plans/index.ts";
import type { Log } from "../log/log.ts";
import type { MemoryStore } from "../log/memory/memory-log.ts";
import { writeHistory } from "./fleet-script.ts";
import type { Fault, History, PlanPutStep } from "./history.ts";
import { type PlantedBug, playHistory } from "./simulate.ts";

const SEEDS = 25;
const STEPS = 70;

/** The auditor is shown something else in place of events of one kind. */
function shown<Kind extends EventKind>(
  kind: Kind,
  instead: (event: Extract<Event, { kind: Kind }>) => unknown[],
): () => PlantedBug {
  return () => ({ tamper: (event) => (event.kind === kind ? (instead(event as never) as Event[]) : [event]) });
}

/** The live engine believes in another scheduler section than the one in its log. */
function believing(scheduler: (rules: Config["scheduler"]) => Partial<Config["scheduler"]>): () => PlantedBug {
  return () => ({
    deafTo: ["replay"],
    engine: (state: State) => {
      const { config } = state;
      state.config = { ...config, scheduler: { ...config.scheduler, ...scheduler(config.scheduler) } };
    },
  });
}

/** A log that says a batch is stored and stores nothing, once. */
function forgetful(): PlantedBug {
  let appends = 0;
  const log = (inner: Log, store: MemoryStore): Log => ({
    ...inner,
    append: async (...call) => (++appends === 9 ? { type: "appended", head: store.head } : inner.append(...call)),
  });
  return { log };
}

/** A store that has lost its newest batch when it is opened again. */
function cutOff(): PlantedBug {
  return {
    log: (inner, store) => ({
      ...inner,
      loadSnapshot: async () => {
        const lost = store.rows.length > 9 ? store.rows.pop() : undefined;
        const last = store.rows.at(-1);
        if (lost !== undefined && last !== undefined) {
          const hash = Buffer.from(last.postHash).toString("hex");
          store.head = { ...store.head, seq: last.lastSeq, hash, batchId: last.batchId };
          store.snapshots.clear();
          store.checkpoints = [];
        }
        return inner.loadSnapshot();
      },
    }),
  };
}

/** One bit of an old batch turns over. */
function damaged(): PlantedBug {
  return {
    log: (inner, store) => ({
      ...inner,
      append: (...call) => {
        const row = store.rows[1];
        if (row !== undefined && store.rows.length === 9) row.bytes[6] = (row.bytes[6] ?? 0) ^ 1;
        return inner.append(...call);
      },
    }),
  };
}

/** Handlers are shown other inputs than they were given. */
const seeing = (inputs: NonNullable<PlantedBug["inputs"]>) => (): PlantedBug => ({ inputs });
const eachInput =
  (change: Partial<Inputs[string]>) =>
  (inputs: Inputs): Inputs =>
    Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, { ...input, ...change }]));

/** Calls that tell of plans do something else. */
const planning = (change: (plans: PlanVerbs) => Partial<PlanVerbs>) => (): PlantedBug => ({
  plans: (plans) => ({ ...plans, ...change(plans) }),
});
/** What a plan has done is submitted once more, under other rules. */
function doneAgain(): PlantedBug {
  const known = new Map<string, Event>();
  const tamper = (event: Event): Event[] => {
    if (event.kind === "task-submitted" && event.group !== null) known.set(event.task, event);
    const submitted = event.kind === "task-done" ? known.get(event.task) : undefined;
    if (event.kind !== "task-done" || submitted === undefined) return [event];
    return [event, { ...submitted, at: event.at, task: `${event.task}0` } as Event];
  };
  return { tamper };
}
const withoutLast = ({ tasks, ...rest }: PlanPutStep["document"]): PlanPutStep["document"] => {
  return { ...rest, tasks: Object.fromEntries(Object.entries(tasks).slice(0, -1)) };
};

const NO_FAULTS: readonly Fault[] = [];
/** Without changes of rules under way, with a budget where one is wanted. */
function calm(history: History, budget: unknown): History {
  const steps = history.steps.filter((step) => step.do !== "reload" && step.do !== "project");
  return { ...history, steps, config: { ...history.config, ...(budget === null ? {} : { budget }) } };
}

const FEW_TOKENS = { limit: 12_000, window: 3_600_000 };
const isRoomy = { maxInFlight: 1000 };

type Row = {
  name: string;
  rule: string;
  plant: () => PlantedBug;
  faults?: readonly Fault[];
  budget?: unknown;
  /** How long time passes behind the last step. */
  waitMs?: number;
};
const rows: Row[] = [
  { name: "an acknowledged batch was never stored", rule: "durable", plant: forgetful },
  { name: "the newest batch is gone after a crash", rule: "durable", plant: cutOff, faults: ["crash"] },
  { name: "a stored batch was changed", rule: "chain", plant: damaged },
  {
    name: "a task starts twice",
    rule: "one-attempt",
    plant: shown("task-assigned", (event) => [event, { ...event, attempt: event.attempt + 1 }]),
  },
  { name: "a task ends twice", rule: "ends-once", plant: shown("task-done", (event) => [event, event]) },
  {
    name: "an attempt goes unseen",
    rule: "attempt-number",
    plant: shown("attempt-failed", (event) => [event, skipped(event)]),
  },
  {
    name: "a stale attempt's word counts",
    rule: "fencing",
    plant: shown("attempt-started", (event) => [{ ...event, attempt: event.attempt + 7 }]),
  },
  {
    name: "time runs backwards",
    rule: "time",
    plant: shown("task-done", (event) => [{ ...event, at: event.at - 9e6 }]),
  },
  {
    name: "a task that waits for its children does not wait",
    rule: "wait",
    plant: shown("attempt-done", (event) => [{ ...event, kind: "task-done", resultSeq: null }]),
  },
  {
    name: "a task that waits for its children is done by another answer",
    rule: "wait",
    plant: shown("task-done", (event) => [
      event.resultSeq === null ? event : { ...event, resultSeq: event.resultSeq - 1 },
    ]),
  },
  {
    name: "a task that waits for its children waits for ever",
    rule: "ends",
    plant: shown("task-done", (event) => (event.resultSeq === null ? [event] : [])),
  },
  { name: "a cancel is forgotten", rule: "lost", plant: shown("task-cancelled", () => []) },
  { name: "the fleet's limit is ignored", rule: "maxInFlight", plant: believing(() => isRoomy) },
  {
    name: "the limit per agent is ignored",
    rule: "maxPerAgentInFlight",
    plant: believing(() => ({ maxPerAgentInFlight: 99 })),
  },
  {
    name: "the limit per type is ignored",
    rule: "perType",
    plant: shown("config-changed", (event) => [withScheduler(event, { perType: { code: 1, other: 1, spec: 1 } })]),
  },
  {
    name: "a project's limit is ignored",
    rule: "maxConcurrent",
    plant: shown("project-put", (event) => [{ ...event, settings: { ...event.settings, maxConcurrent: 0 } }]),
  },
  {
    name: "a budget is ignored",
    rule: "budget",
    budget: FEW_TOKENS,
    plant: () => ({
      deafTo: ["replay"],
      engine: (state) => {
        state.config = { ...state.config, budget: { limit: null, window: 1000 } };
      },
    }),
  },
  {
    name: "an estimate of no tokens is ignored",
    rule: "expects-none",
    plant: shown("task-submitted", (event) => [{ ...event, estimatedTokens: -1 }]),
  },
  { name: "slots are ignored", rule: "slots", plant: shown("worker-joined", (event) => [{ ...event, slots: 0 }]) },
  {
    name: "resources are ignored",
    rule: "resources",
    plant: shown("task-submitted", (event) => [{ ...event, cpu: 9e6 }]),
  },
  {
    name: "capabilities are ignored",
    rule: "capabilities",
    plant: shown("task-submitted", (event) => [{ ...event, capabilities: ["nobody has it"] }]),
  },
  {
    name: "what a worker takes is ignored",
    rule: "takes",
    plant: shown("worker-joined", (event) => [
      { ...event, takes: { actions: ["nothing"], types: null, projects: null } },
    ]),
  },
  {
    name: "locks are ignored",
    rule: "locks",
    plant: shown("task-submitted", (event) => [{ ...event, locks: ["one"] }]),
  },
  {
    name: "a deadline is ignored",
    rule: "deadline",
    plant: shown("task-submitted", (event) => [{ ...event, deadline: event.at + 1 }]),
  },
  {
    name: "projects take turns by another rule",
    rule: "fairness",
    plant: believing(({ fairness }) => ({ fairness: { ...fairness, rule: "deficit" } })),
  },
  {
    name: "agents take no turns",
    rule: "agents",
    plant: believing(({ fairness }) => ({ fairness: { ...fairness, agents: "none" } })),
  },
  {
    name: "long waiting does not help",
    rule: "starvation",
    plant: shown("config-changed", (event) => [
      withScheduler(event, { priority: { ...event.config.scheduler.priority, starvationAfter: 1 } }),
    ]),
  },
  {
    name: "a gate does not hear a 429",
    rule: "gate-block",
    faults: ["storm"],
    plant: () => ({ ...shown("permit-granted", (event) => [event, throttled(event)])(), deafTo: ["gate"] }),
  },
  {
    name: "a gate stays shut though somebody has opened it",
    rule: "gate",
    faults: ["storm"],
    plant: shown("gate-throttled", (event) => [event, { kind: "gate-reset", at: event.at, gate: event.gate }]),
  },
  {
    name: "a gate opens though nobody has opened it",
    rule: "gate",
    faults: ["storm"],
    plant: shown("gate-reset", () => []),
  },
  {
    name: "what must not run twice is queued again",
    rule: "on-loss",
    faults: ["crash"],
    plant: shown("task-submitted", (event) => [{ ...event, onLoss: "fail" }]),
  },
  {
    name: "a task that was given back does not rest",
    rule: "requeues",
    plant: shown("attempt-lost", (event) => [event.cause === "requeue" ? { ...event, restUntil: event.at } : event]),
  },
  {
    name: "a task's 429 is told to no gate",
    rule: "throttle",
    faults: ["storm"],
    plant: shown("gate-throttled", () => []),
  },
  {
    name: "a permit is granted to an attempt that is over",
    rule: "permit-owner",
    plant: shown("permit-asked", (event) => [
      event.attempt === null ? event : { ...event, attempt: event.attempt - 1 },
    ]),
  },
  { name: "a gate forgets who is out", rule: "gate-concurrency", plant: shown("permit-settled", () => []) },
  {
    name: "an alarm never rings",
    rule: "wake-up",
    plant: () => ({ clock: (clock) => ({ ...clock, ringAt: () => () => {} }) }),
  },
  {
    name: "what falls due while an alarm is set goes unheard",
    rule: "wake-up",
    plant: () => ({
      clock: (clock) => ({
        ...clock,
        ringAt: (at, ring, how) => (at <= clock.elapsed() ? () => {} : clock.ringAt(at, ring, how)),
      }),
    }),
  },
  {
    name: "a round more is begun than a loop may have",
    rule: "loop",
    plant: shown("task-submitted", (event) => [{ ...event, maxRounds: Math.min(1, event.maxRounds) }]),
  },
  {
    name: "a tree grows deeper than it may",
    rule: "growth",
    plant: shown("task-submitted", (event) => [event.ofRunning ? { ...event, depth: 17 } : event]),
  },
  {
    name: "a task is approved after its deadline",
    rule: "approval",
    plant: shown("task-parked", (event) => [{ ...event, until: event.at }]),
  },
  {
    name: "a parked task keeps its attempt",
    rule: "parked",
    plant: shown("task-parked", (event) => [{ ...event, attempt: null }]),
  },
  {
    name: "a task is given what it does not need",
    rule: "inputs",
    plant: seeing((inputs) => ({ ...inputs, other: { taskId: "other", state: "done" } })),
  },
  { name: "a task is not given what it needs", rule: "inputs", plant: seeing(() => ({})) },
  { name: "an input has another state", rule: "inputs", plant: seeing(eachInput({ state: "skipped" })) },
  { name: "an input has another result", rule: "inputs", plant: seeing(eachInput({ result: { attempt: 99 } })) },
  { name: "an input has other files", rule: "inputs", plant: seeing(eachInput({ files: [] })) },
  {
    name: "a file is listed that was not kept",
    rule: "files",
    plant: () => ({
      files: (medium) => ({ ...medium, receive: async () => ({ ...(await medium.receive()), keep: async () => {} }) }),
    }),
  },
  {
    name: "a file is gone that a task lists",
    rule: "files",
    plant: () => ({ files: (medium) => ({ ...medium, touch: (hash) => medium.remove(hash) }) }),
  },
  {
    name: "a file stays that no task lists",
    rule: "files",
    plant: () => ({ files: (medium) => ({ ...medium, remove: async () => {} }) }),
    waitMs: 3 * 3_600_000,
  },
  {
    name: "a task lists other files than were reported",
    rule: "files",
    plant: shown("attempt-files", (event) => [{ ...event, files: [] }]),
  },
  {
    name: "a task of a paused plan starts",
    rule: "plan-pause",
    plant: () => ({ ...shown("plan-put", (event) => [event, pausedBy(event)])(), deafTo: ["plan-lost"] }),
  },
  { name: "the pause of a plan is forgotten", rule: "plan-lost", plant: shown("plan-paused", () => []) },
  {
    name: "a pause of a plan is answered and not stored",
    rule: "durable",
    plant: planning(({ get }) => ({ pause: (id) => get(id) })),
  },
  {
    name: "a plan goes on after a failure that should stop it",
    rule: "plan-fail-fast",
    plant: shown("plan-put", (event) => [{ ...event, failsFast: true }]),
  },
  {
    name: "a put does again what is done",
    rule: "plan-repeats",
    plant: doneAgain,
  },
  {
    name: "a put that is repeated changes something",
    rule: "plan-again",
    plant: planning(({ put }) => ({ put: (id, document, options) => put(id, document, { ...options, fresh: true }) })),
  },
  {
    name: "a plan that is put again as it was has other tasks",
    rule: "plan-again",
    plant: shown("plan-put", (event) => [
      event,
      { ...event, tasks: event.tasks.map(({ name, id }) => ({ name, id: `${id}${event.at}` })) },
    ]),
  },
  {
    name: "a plan is put without one of its tasks",
    rule: "plan-whole",
    plant: planning(({ put }) => ({
      put: (id, document, options) => put(id, withoutLast(document as PlanPutStep["document"]), options),
    })),
  },
  {
    name: "a plan is restored without its tasks",
    rule: "plan-whole",
    plant: shown("plan-put", (event) => [event, { kind: "engine-started", at: event.at }]),
  },
  {
    name: "a plan that is known does not hold its records",
    rule: "plan-records",
    plant: shown("plan-removed", () => []),
    waitMs: 3 * 3_600_000,
  },
  {
    name: "a plan is forgotten before its time",
    rule: "plan-removed",
    plant: shown("config-changed", (event) => [withScheduler(event, { planTtl: 9e9, plansMax: 1000 })]),
  },
  {
    name: "an agent loses a plan to one who has as many",
    rule: "plan-share",
    plant: shown("plan-put", (event) => [{ ...event, agent: `${event.agent}${event.at % 2}` }]),
  },
  {
    name: "the limit of plans and the tenth that is kept are ignored",
    rule: "plan-share",
    plant: believing(() => ({ plansMax: 1000 })),
  },
  {
    name: "a worker has more worktrees than it has room for",
    rule: "worktrees",
    plant: shown("worker-joined", (event) => [{ ...event, worktrees: 0 }]),
  },
  {
    name: "the live state is not what the log says",
    rule: "replay",
    plant: () => ({
      engine: (state) => {
        state.totals.waitMs += 1;
      },
    }),
  },
];

function withScheduler(event: Extract<Event, { kind: "config-changed" }>, rules: object): unknown {
  return { ...event, config: { ...event.config, scheduler: { ...event.config.scheduler, ...rules } } };
}
const pausedBy = ({ at, plan }: { at: number; plan: string }): unknown => ({
  ...{ kind: "plan-paused", at, plan, cause: "asked" },
});
const skipped = ({ task, at, attempt }: { task: string; at: number; attempt: number }): unknown => ({
  ...{ kind: "task-assigned", at, task, attempt: attempt + 2, worker: "w1", charge: 1e9, reserve: 1e6 },
  ...{ reason: { type: "random" }, rank: { express: true, hold: false } },
});
const throttled = ({ gate, at }: { gate: string; at: number }): unknown => ({
  ...{ kind: "gate-throttled", at, gate, permit: null, retryAfterMs: 60_000 },
});

for (const { name, rule, plant, faults = NO_FAULTS, budget = null, waitMs = 0 } of rows)
  test(`it is noticed when ${name}`, async () => {
    const heard = new Set<string>();
    for (let seed = 1; seed <= SEEDS && !heard.has(rule); seed++) {
      const history = calm(writeHistory({ seed, steps: STEPS, faults: new Set(faults) }), budget);
      const steps = [...history.steps, ...(waitMs === 0 ? [] : [{ do: "wait", ms: waitMs } as const])];
      const { complaints } = await playHistory({ ...history, steps }, plant());
      for (const complaint of complaints) heard.add(complaint.rule);
    }
    assert.ok(heard.has(rule), `nobody said "${rule}"; heard: ${[...heard].join(", ") || "nothing"}`);
  });

test("where nothing is planted nothing is noticed", async () => {
  const history = calm(writeHistory({ seed: 1, steps: STEPS, faults: new Set() }), FEW_TOKENS);
  assert.deepEqual((await playHistory(history)).complaints, []);
});
