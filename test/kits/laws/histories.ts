/**
 * Histories nobody thought of.
 *
 * A history is a list of whole numbers; each one is the seed of a step: a command, an instant, and whether the
 * pump runs afterwards. Numbers are cheap to make and to drop, so that thousands of histories fit in a second and
 * a failing one shrinks to the few steps that matter. What a step asks is chosen against the state it meets: a
 * report mostly names a live attempt and sometimes a stale one, an id is mostly free and sometimes taken.
 *
 * There are few ids, small limits and short spans on purpose: collisions are where the bugs are, and everything
 * that can happen (a deadline, a lost worker, a full budget, a throttled gate) should happen within forty steps.
 */
import fc from "fast-check";
import type { AgentId, GateId, Instant, PermitId, ProjectId, TaskId, WorkerId } from "../../../src/core/base/brand.ts";
import { type Config, DEFAULT_CONFIG, type ProjectSettings, STRATEGIES } from "../../../src/core/config/config.ts";
import type { GateSettings } from "../../../src/core/gate/settings.ts";
import { tabCapability } from "../../../src/core/lifecycle/browser-tab.ts";
import type { AttemptReport, Command, Submission, WorkerSettings } from "../../../src/core/model/commands.ts";
import type { FileRef, Takes } from "../../../src/core/model/events.ts";
import type { Attempt, State } from "../../../src/core/model/state.ts";
import { serviceCommand } from "./service-commands.ts";

export const STARTED_AT = 1_000_000;
const STEPS_MAX = 40;

/** One seed per step. */
export const history: fc.Arbitrary<number[]> = fc.array(fc.nat(0xffff_ffff), {
  minLength: 4,
  maxLength: STEPS_MAX,
  size: "max",
});

export type Dice = {
  /** A whole number from 0 to count − 1. */
  below(count: number): number;
  /** True so many times in a hundred. */
  chance(percent: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
};

/** mulberry32: small, named, and good enough to choose test cases. */
export function diceFrom(seed: number): Dice {
  let state = seed >>> 0;
  const below = (count: number): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
  return {
    below,
    chance: (percent) => below(100) < percent,
    pick: <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item,
  };
}

const PROJECTS = ["p1", "p2", "p3"] as ProjectId[];
const AGENTS = ["a1", "a2"] as AgentId[];
const WORKERS = ["w1", "w2", "w3", "w4"] as WorkerId[];
export const TASKS: readonly TaskId[] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"] as TaskId[];
const GATES = ["g1", "g2"] as GateId[];
const PERMITS = ["c1", "c2", "c3"] as PermitId[];
const ARTIFACTS = ["art1", "art2"];
const TABS = ["x", "y"];
const LOCKS = ["l1", "l2"];
const TYPES = ["plan", "code", "odd"];
const CAPABILITIES = ["gpu", "node"];
const LABELS = ["k=v", "k=w", "run=1"];
const GROUPS = ["grp_1", "grp_2", null, null, null];
const PAUSES_MS = [0, 0, 0, 0, 1, 10, 100, 1000, 1000, 5000, 60_000, 3_600_000];
export const SPANS_MS: readonly number[] = [1, 100, 1000, 10_000, 3_600_000];

/** A task without any condition. */
export const PLAIN: Submission = {
  ...{
    id: null,
    project: PROJECTS[0] as ProjectId,
    agent: AGENTS[0] as AgentId,
    bodyHash: "",
    bodySize: 0,
    type: "code",
  },
  ...{ capabilities: [], cpu: 0, memory: 0, provider: null, locks: [], zone: null, tab: null, priority: null },
  ...{ parent: null, needs: [], artifact: null, artifactReady: false, notBefore: null, deadline: null },
  ...{ estimatedTokens: null, iteration: 1, maxAttempts: null, timeoutMs: null, onDependencyFailure: "skip" },
  action: "",
};

export const pauseOf = (dice: Dice): number => dice.pick(PAUSES_MS);

/** What runs through a whole history: how crowded it is, and how many are who they are. */
export type Mood = {
  readonly submits: number;
  readonly projects: readonly ProjectId[];
  readonly agents: readonly AgentId[];
  /** How often a task has a condition of its own, in a hundred of the usual. */
  readonly fuss: number;
};

export function moodOf(dice: Dice): Mood {
  return {
    submits: dice.pick([10, 40, 70]),
    projects: PROJECTS.slice(0, dice.pick([1, 2, 3, 3])),
    agents: AGENTS.slice(0, dice.pick([1, 2, 2])),
    fuss: dice.pick([0, 40, 100]),
  };
}

/** What a step asks of the world it meets. */
export function commandFor(dice: Dice, mood: Mood, state: State, now: Instant): Command {
  if (dice.chance(mood.submits)) return submitOf(dice, mood, now, state);
  const workers = state.fleet.order.length;
  const roll = dice.below(100);
  if (roll < 20) return submitOf(dice, mood, now, state);
  if (roll < 32 || (workers < 2 && roll < 60)) return joinOf(dice);
  if (roll < 44) return startOf(dice, state);
  if (roll < 66) return { type: "finish-attempt", report: reportOf(dice, state) };
  if (roll < 70) return { type: "report-usage", ...attemptOf(dice, state), tokens: dice.pick([0, 5, 50, 400, 5000]) };
  if (roll < 80) return taskOrder(dice, state, now);
  if (roll < 90) return gateOrder(dice, state, now);
  return dice.chance(75) ? worldOrder(dice, state) : serviceCommand(dice, state, now);
}

function submitOf(dice: Dice, mood: Mood, now: Instant, state: State): Command {
  const submission = submissionOf(dice, mood, now, state);
  const group = dice.pick(GROUPS);
  if (state.inFlight === 0 || !dice.chance(25)) return { type: "submit-task", submission, group };
  const { task: parent, attempt: ofRunning } = attemptOf(dice, state);
  return { type: "submit-task", submission: { ...submission, parent }, group, ofRunning };
}

function taskOrder(dice: Dice, state: State, now: Instant): Command {
  const task = someTask(dice, state);
  const ended = dice.chance(60)
    ? [...state.tasks.values()].filter(({ phase }) => phase === "failed" || phase === "cancelled")
    : [];
  if (ended.length > 0) return { type: "retry-task", task: dice.pick(ended).id };
  const asked = [...state.tasks.values()].filter(({ phase }) => phase === "parked");
  if (asked.length > 0 && dice.chance(50))
    return { type: "approve-task", task: dice.pick(asked).id, note: dice.pick([null, "yes"]), deny: dice.chance(20) };
  switch (dice.below(4)) {
    case 0:
      return { type: "cancel-task", task, reason: dice.chance(50) ? null : "no longer wanted" };
    case 1:
      return { type: "retry-task", task };
    case 2:
      return { type: "set-paused", scope: "task", id: task, paused: dice.chance(50) };
    default: {
      const deadline = dice.pick([undefined, null, now, (now + dice.pick(SPANS_MS)) as Instant]);
      return { type: "patch-task", task, priority: dice.pick([null, -300, -200, -100, 0, 100]), deadline };
    }
  }
}

function settleOrder(dice: Dice, permit: PermitId): Command {
  const tokens = dice.pick([null, 0, 5, 300]);
  const usage = tokens === null ? null : { inputTokens: tokens, outputTokens: 0, cachedTokens: 2, cost: null };
  return { type: "settle-permit", permit, ok: dice.chance(70), tokens, usage };
}

function gateOrder(dice: Dice, state: State, now: Instant): Command {
  const permit = dice.chance(30) ? dice.pick(PERMITS) : dice.pick([...state.permits.keys(), ...PERMITS]);
  const gate = dice.pick(GATES);
  if (state.permits.size > 0 && dice.chance(30)) return settleOrder(dice, dice.pick([...state.permits.keys()]));
  switch (dice.below(7)) {
    case 6:
      return { type: dice.chance(50) ? "reset-gate" : "remove-gate", gate };
    case 0:
      return settleOrder(dice, permit);
    case 1:
      return { type: "drop-permit", permit };
    case 2:
      return {
        type: "throttle-gate",
        gate,
        permit: dice.chance(50) ? permit : null,
        retryAfterMs: dice.pick([0, 1, 5000]),
      };
    default: {
      const isOfTask = dice.chance(50);
      const { task, attempt } = attemptOf(dice, state);
      return {
        ...{ type: "ask-permit", permit: dice.chance(50) ? dice.pick(PERMITS) : null, gate },
        ...{ task: isOfTask ? task : null, attempt: isOfTask ? attempt : null, project: dice.pick(PROJECTS) },
        ...{ class: dice.pick([null, "critical", "high", "normal", "low"] as const), tokens: dice.pick([0, 10, 200]) },
        ...(dice.chance(30) ? { remote: true } : {}),
        askedAt: dice.chance(80) ? null : ((now - dice.pick(SPANS_MS)) as Instant),
        order: dice.chance(90) ? null : 1 + dice.below(20),
      };
    }
  }
}

function worldOrder(dice: Dice, state: State): Command {
  switch (dice.below(8)) {
    case 0:
    case 1:
      return { type: "set-config", config: configOf(dice) };
    case 2:
      return { type: "put-project", project: dice.pick(PROJECTS), settings: settingsOf(dice) };
    case 3:
      return {
        type: "set-paused",
        scope: dice.pick(["fleet", "project"]),
        id: dice.pick(PROJECTS),
        paused: dice.chance(40),
      };
    case 4:
      return { type: "artifact-ready", artifact: dice.pick(ARTIFACTS) };
    case 5:
      return { type: "start-engine", coreVersion: "1", policyHash: "" };
    case 6:
      return { type: "change-worker", worker: someWorker(dice, state), settings: workerSettings(dice) };
    default:
      return { type: "leave-worker", worker: someWorker(dice, state), lost: dice.chance(60) };
  }
}

const someWorker = (dice: Dice, state: State): WorkerId =>
  dice.chance(90) && state.fleet.order.length > 0 ? dice.pick(state.fleet.order).id : dice.pick(WORKERS);

const someTask = (dice: Dice, state: State): TaskId =>
  dice.chance(70) && state.tasks.size > 0 ? dice.pick([...state.tasks.values()]).id : dice.pick(TASKS);

/** Mostly a live attempt; now and then one that never was or is no more. */
const liveAttempts = ({ fleet }: State): Attempt[] => fleet.order.flatMap(({ attempts }) => [...attempts]);

export function attemptOf(dice: Dice, state: State): { task: TaskId; attempt: number } {
  const live = liveAttempts(state);
  if (live.length === 0 || dice.chance(10)) return { task: someTask(dice, state), attempt: dice.below(3) };
  const { task, number } = dice.pick(live);
  return { task: task.id, attempt: dice.chance(92) ? number : number - 1 };
}

const startOf = (dice: Dice, state: State): Command => ({ type: "start-attempt", ...attemptOf(dice, state) });

const USED = { inputTokens: 5, outputTokens: 2, cachedTokens: 1, cost: 0.5 };

function reportOf(dice: Dice, state: State): AttemptReport {
  const good = ["done", "done", "done", "again", "again"] as const;
  // One that has children to wait for is rare enough, and is to come to that.
  const parents = liveAttempts(state).filter(({ task: { extra } }) => extra?.wait && (extra.growth?.open ?? 0) > 0);
  const parent = parents.length > 0 && dice.chance(60) ? dice.pick(parents) : null;
  const any = dice.pick([...good, "failed", "failed", "cancelled", "requeue", "skipped", "ask"] as const);
  const outcome = parent === null ? any : "done";
  const hasResult = outcome === "done" && dice.chance(50);
  return {
    ...(parent === null ? attemptOf(dice, state) : { task: parent.task.id, attempt: parent.number }),
    outcome,
    error: outcome === "done" ? null : dice.pick([null, "it broke"]),
    tokens: dice.pick([null, 0, 5, 50, 400, 5000]),
    retryAfterMs: dice.pick([null, null, 0, 700]),
    rateLimited: outcome === "requeue" && dice.chance(50),
    usage: dice.pick([null, null, USED, { ...USED, cost: null }]),
    resultHash: hasResult ? "r".repeat(64) : null,
    resultSize: hasResult ? 10 : 0,
    permanent: dice.chance(15),
    question: outcome === "ask" ? "may I?" : null,
    timeoutMs: outcome === "ask" ? dice.pick([null, 500, 60_000]) : null,
    note: outcome === "again" ? dice.pick([null, "", "one test fails", "x".repeat(300)]) : null,
    ...(dice.chance(30) ? { files: filesOf(dice) } : {}),
  };
}

/** Few contents and few names: that is where they meet. One of them is an artifact that tasks wait for. */
function filesOf(dice: Dice): readonly FileRef[] {
  const paths = someOf(dice, [...ARTIFACTS, "b"], 50);
  return paths.map((path) => ({ path, hash: dice.pick(["0", "1", "2"]).repeat(64), size: dice.pick([0, 5]) }));
}

function someOf(dice: Dice, items: readonly string[], percent: number): string[] {
  return items.filter(() => dice.chance(percent));
}

function submissionOf(dice: Dice, mood: Mood, now: Instant, state: State): Submission {
  const sometimes = (percent: number): boolean => dice.chance((percent * mood.fuss) / 100);
  const tab = sometimes(10) ? dice.pick(TABS) : null;
  const needs = [...new Set(sometimes(25) ? [someTask(dice, state), someTask(dice, state)].slice(dice.below(2)) : [])];
  const hasArtifact = sometimes(10);
  const capabilities = someOf(dice, CAPABILITIES, sometimes(30) ? 50 : 0);
  return {
    ...{
      id: dice.chance(40) ? dice.pick(TASKS) : null,
      project: dice.pick(mood.projects),
      agent: dice.pick(mood.agents),
    },
    ...{ bodyHash: dice.pick(["b1", "b1", "b2"]), bodySize: 2, type: dice.pick(TYPES) },
    capabilities: tab === null ? capabilities : [...capabilities, tabCapability(tab)].sort(),
    ...{ cpu: dice.pick([0, 0, 500, 1000, 2000]), memory: dice.pick([0, 0, 0, 100, 400]) },
    ...{ provider: sometimes(15) ? dice.pick(GATES) : null, locks: someOf(dice, LOCKS, sometimes(30) ? 50 : 0) },
    ...{ zone: dice.pick([null, null, "north"]), tab, priority: dice.pick([null, null, -200, -150, -100, 0, 0, 100]) },
    ...{ parent: sometimes(20) ? someTask(dice, state) : null, needs },
    ...{ artifact: hasArtifact ? dice.pick(ARTIFACTS) : null, artifactReady: hasArtifact && dice.chance(20) },
    notBefore: sometimes(10) ? ((now + dice.pick([0, ...SPANS_MS])) as Instant) : null,
    deadline: sometimes(15) ? ((now + dice.pick(SPANS_MS)) as Instant) : null,
    ...{ estimatedTokens: dice.pick([null, null, 0, 1, 100, 450]), iteration: dice.pick([1, 1, 1, 3]) },
    ...{ maxAttempts: dice.pick([null, null, 1, 2]), timeoutMs: sometimes(50) ? dice.pick([1, 2000]) : null },
    onDependencyFailure: dice.pick(["skip", "skip", "run"]),
    onLoss: dice.pick([null, null, "retry", "fail"]),
    action: dice.pick(["", "exec", "exec", "exec(worktree)", "click"]),
    approval: sometimes(30) ? { question: dice.pick([null, "ship it?"]), timeoutMs: dice.pick([null, 900]) } : null,
    maxRounds: sometimes(40) ? 1 + dice.below(4) : 0,
    // Without children it means nothing, so it may be frequent.
    wait: dice.chance(50) ? "children" : null,
    labels: someOf(dice, LABELS, sometimes(40) ? 50 : 0),
    callback: sometimes(20) ? dice.pick(["a.example", "b.example:8080", ""]) : null,
  };
}

function joinOf(dice: Dice): Command {
  const worker = dice.chance(90) ? dice.pick(WORKERS) : null;
  return {
    type: "join-worker",
    worker,
    kind: dice.pick(["local", "pull", "push"]),
    session: "s",
    settings: workerSettings(dice),
    target: dice.chance(20) ? { endpoint: "http://127.0.0.1:1/", path: dice.pick([null, "/go"]) } : null,
    takes: dice.chance(30) ? takesOf(dice) : null,
  };
}

function takesOf(dice: Dice): Takes {
  return {
    actions: dice.pick([null, ["exec"], ["ex*", "none"], ["*"], ["click"]]),
    types: dice.pick([null, null, ["code"], ["*"]]),
    projects: dice.pick([null, null, [dice.pick(PROJECTS)], ["none"]]),
  };
}

function workerSettings(dice: Dice): WorkerSettings {
  const capabilities = [...someOf(dice, CAPABILITIES, 50), ...someOf(dice, TABS, 25).map(tabCapability)].sort();
  return {
    ...{ slots: dice.pick([1, 1, 2, 3]), capabilities },
    ...{ cpu: dice.pick([null, 1000, 2000, 4000]), memory: dice.pick([null, null, 400, 800]) },
    worktrees: dice.pick([null, null, 0, 1, 2]),
    ...{
      zone: dice.pick([null, "north", "south"]),
      status: dice.chance(85) ? "ready" : dice.pick(["overloaded", "draining"]),
    },
  };
}

/** Weights are powers of two, so that sums of them are exact in any order. */
export function settingsOf(dice: Dice): ProjectSettings {
  return {
    weight: dice.pick([0.5, 1, 1, 2, 4]),
    maxConcurrent: dice.pick([1, 2, 50, 50]),
    budget: { limit: dice.pick([null, null, 100, 300, 2000]), window: dice.pick([1000, 60_000, 3_600_000]) },
    maxPriority: dice.pick([-100, -200, -200, 0]),
    provider: dice.chance(10) ? dice.pick(GATES) : null,
    bytesPerMinute: null,
  };
}

function gateSettingsOf(dice: Dice): GateSettings {
  return {
    ...{
      maxConcurrent: dice.pick([1, 2, 10]),
      requests: dice.pick([1, 2, 50]),
      windowMs: dice.pick([1, 1000, 60_000]),
    },
    tokens: {
      ...{ perMinute: dice.pick([null, null, 100, 1000]), perHour: dice.pick([null, 500]), perDay: null },
      kind: dice.pick(["sliding", "fixed"]),
    },
    ...{
      defaultPriority: "normal",
      agingPerClassMs: dice.pick([1, 1000, 60_000]),
      permitTtlMs: dice.pick([1, 1000, 600_000]),
    },
  };
}

export function configOf(dice: Dice): Config {
  const { scheduler } = DEFAULT_CONFIG;
  const named: [string, ProjectSettings][] = dice.chance(30) ? [[dice.pick(PROJECTS), settingsOf(dice)]] : [];
  return {
    scheduler: {
      ...{ maxInFlight: dice.pick([1, 3, 50]), maxPerAgentInFlight: dice.pick([1, 2, 10]) },
      ...{ maxQueue: dice.pick([3, 1000, 1000, 1000]), maxPerAgent: dice.pick([2, 1000, 1000, 1000]), maxBatch: 50 },
      ...{ resultTtl: dice.pick([1, 1000, 300_000]), resultMax: dice.pick([1, 3, 1000]) },
      ...{ failedTtl: dice.pick([1, 1000, 300_000]), failedMax: dice.pick([1, 3, 1000]) },
      ...{ planTtl: dice.pick([1, 60_000, 300_000]), plansMax: dice.pick([1, 2, 1000]) },
      remember: dice.pick([1, 5000, 86_400_000]),
      perType: dice.pick([{}, { plan: 1 }, { plan: 1, code: 2 }]),
      critical: { maxInFlight: dice.pick([1, 2]) },
      priority: {
        ...scheduler.priority,
        ...{
          base: dice.pick([scheduler.priority.base, { other: 10, code: 12 }]),
          agePerMinute: dice.pick([0, 1, 60, 1000]),
        },
        ...{
          ageMax: dice.pick([0, 5, 50]),
          depthBoost: dice.pick([10, 0]),
          starvationAfter: dice.pick([1, 1000, 10_000, 3_600_000]),
        },
      },
      fairness: {
        ...{ rule: dice.pick(["level", "level", "deficit"]), agents: dice.pick(["fair", "fair", "none"]) },
        ...{
          halfLife: dice.pick([1000, 600_000]),
          startCost: dice.pick([0, 10, 1000]),
          defaultTokens: dice.pick([0, 100]),
        },
        window: dice.pick([1000, 3_600_000]),
      },
      placement: {
        ...{
          strategy: dice.pick(STRATEGIES),
          preferLocality: dice.chance(30),
          maxQueuePerWorker: dice.pick([0, 0, 1]),
        },
        ...{ affinityWait: dice.pick([0, 1000, 120_000]), unresolvedAfter: dice.pick([0, 1000, 60_000]) },
      },
      backpressure: {
        ...{ perWorker: dice.pick([null, null, 5]), rejectThreshold: dice.pick([1, 1, 0.5]), throttleAt: 0.5 },
        acceptWithoutWorkers: dice.chance(90),
      },
      retry: {
        ...{ base: dice.pick([1, 1000]), max: dice.pick([1000, 300_000]) },
        ...{ maxLosses: dice.pick([1, 2, 5]), maxRequeues: dice.pick([1, 3]) },
      },
    },
    budget: { limit: dice.pick([null, null, 101, 600, 4000]), window: dice.pick([1000, 3_600_000]) },
    projects: { autoCreate: dice.chance(95), default: settingsOf(dice), named: Object.fromEntries(named) },
    gates: { default: gateSettingsOf(dice), named: dice.chance(30) ? { g2: gateSettingsOf(dice) } : {} },
    workers: { ...DEFAULT_CONFIG.workers, killGrace: dice.pick([0, 1000, 10_000]), artifactPoll: 1000 },
    files: DEFAULT_CONFIG.files,
    artifacts: DEFAULT_CONFIG.artifacts,
    log: DEFAULT_CONFIG.log,
  };
}
