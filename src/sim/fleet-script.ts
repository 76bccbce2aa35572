/**
 * Random histories: fleets with tight limits, and many ways to disturb them.
 *
 * Few names on purpose (three projects, four agents, two gates, two locks): collisions are where the bugs are.
 * Limits are small so that they bind, spans are mixed so that timers of very different lengths meet, and the same
 * seed always gives the same history.
 */
import { STRATEGIES } from "../core/config/index.ts";
import type { Takes } from "../core/model/index.ts";
import { createRandom, type Random } from "./chance/random.ts";
import type { Act, Call, Fault, History, Step } from "./history.ts";
import { plansMaxOf, withPlans } from "./plan-script.ts";

const PROJECTS = ["red", "green", "blue"];
const AGENTS = ["ann", "bob", "cat", "dan"];
const GATES = ["gate-a", "gate-b"];
const KINDS = ["plan", "code", "code", "spec", "other"];
const CAPABILITIES = ["gpu", "web"];
/** Mostly the same; one is a sentence, which only `*` takes. */
const ACTIONS = ["work", "work", "work", "sing", "sort the post"];
/** A batch of the log: fewer than a plan has tasks, so that it would be parted if it could be. */
const FEW_EVENTS = 3;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

type Script = {
  readonly random: Random;
  readonly faults: ReadonlySet<Fault>;
  readonly remote: boolean;
  tasks: number;
  workers: number;
  artifacts: number;
  /** Ids that may be taken up again. */
  readonly ids: string[];
  readonly config: Readonly<Record<string, unknown>>;
};

export function writeHistory(options: {
  readonly seed: number;
  readonly steps: number;
  readonly faults: ReadonlySet<Fault>;
}): History {
  const { seed, faults } = options;
  const random = createRandom(seed);
  const remote = faults.has("workers") && random.percent(50);
  const written = writeConfig(random);
  const config = { ...written, scheduler: { ...(written.scheduler as object), plansMax: plansMaxOf(seed) } };
  const script: Script = { random, faults, remote, config, tasks: 0, workers: 0, artifacts: 0, ids: [] };
  const steps: Step[] = [];
  for (const id of PROJECTS) steps.push({ do: "project", id, settings: writeProject(random) });
  for (let worker = random.between(1, 3); worker > 0; worker--) steps.push(joinStep(script));
  while (steps.length < options.steps) {
    const step = writeStep(script);
    // Work comes in bursts, so that some task always waits behind another.
    const burst = step.do === "submit" && random.percent(20) ? random.between(2, 10) : 0;
    for (let more = 0; more < burst; more++) {
      steps.push({ do: "submit", body: writeTask(script, false), together: true });
    }
    steps.push(random.percent(25) && step.do !== "wait" ? { ...step, together: true } : step);
  }
  return { seed, remote, batchMax: seed % 2 === 0 ? FEW_EVENTS : null, config, steps: withPlans(seed, steps) };
}

type Write = (script: Script) => Step;
const STEPS: readonly (readonly [weight: number, write: Write, fault?: Fault])[] = [
  [30, (script) => ({ do: "submit", body: writeTask(script, true) })],
  [4, batchStep],
  [22, ({ random }) => ({ do: "wait", ms: writeSpan(random) })],
  [6, (script) => ({ do: "cancel", task: someTask(script) })],
  [5, (script) => ({ do: "retry", task: someTask(script) })],
  [3, (script) => ({ do: "read", task: someTask(script) })],
  [4, patchStep],
  [3, pauseStep],
  [4, ({ random }) => ({ do: "resume", target: random.percent(50) ? {} : { project: random.pick(PROJECTS) } })],
  [2, reloadStep],
  [2, ({ random }) => ({ do: "project", id: random.pick(PROJECTS), settings: writeProject(random) })],
  [3, joinStep],
  [3, ({ random, artifacts }) => ({ do: "artifact", name: `file-${random.below(artifacts + 1)}` })],
  [4, ({ random }) => ({ do: "call", call: writeCall(random), project: random.pick(PROJECTS) })],
  [1, () => ({ do: "snapshot" })],
  [1, () => ({ do: "reopen" })],
  [3, leaveStep, "workers"],
  [3, ({ random }) => ({ do: "storm", gate: random.pick(GATES), ms: writeSpan(random) }), "storm"],
  [8, ({ random }) => ({ do: "reset", gate: random.pick(GATES) }), "storm"],
  [2, ({ random }) => ({ do: "jump", ms: random.pick([-1, 1]) * writeJump(random) }), "clock"],
  [2, () => ({ do: "crash" }), "crash"],
  [3, ({ random }) => faultStep(random, ["crash-before", "crash-after"]), "crash"],
  [3, ({ random }) => faultStep(random, ["unknown-lost", "unknown-landed"]), "unknown"],
  [3, ({ random }) => faultStep(random, ["slow-landed", "slow-landing"]), "slow"],
  [1, () => ({ do: "rival" }), "rival"],
];

function writeStep(script: Script): Step {
  const possible = STEPS.filter(([, , fault]) => fault === undefined || script.faults.has(fault));
  let place = script.random.below(possible.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, write] of possible) {
    if (place < weight) return write(script);
    place -= weight;
  }
  return { do: "wait", ms: SECOND };
}

const writeSpan = (random: Random): number =>
  random.pick([random.between(1, 50), random.between(100, 3000), random.between(5, 90) * SECOND, 20 * MINUTE]);

/** From what a time server mends to what a person mistypes. */
const writeJump = (random: Random): number => (random.percent(25) ? 24 * 60 * MINUTE : writeSpan(random));

const someTask = ({ random, ids }: Script): string => (ids.length === 0 ? "t0" : random.pick(ids.slice(-30)));

function writeConfig(random: Random): History["config"] {
  const gate = () => ({
    maxConcurrent: random.between(1, 4),
    requests: random.between(2, 12),
    window: random.pick([SECOND, 20 * SECOND, MINUTE]),
    permitTtl: random.pick([30 * SECOND, 10 * MINUTE]),
    agingPerClass: random.pick([SECOND, MINUTE]),
    tokens: { perMinute: random.pick([null, null, 6000]) },
  });
  return {
    scheduler: {
      maxInFlight: random.between(2, 10),
      maxPerAgentInFlight: random.between(1, 5),
      maxQueue: random.pick([12, 60, 1000]),
      maxPerAgent: random.pick([6, 40]),
      resultTtl: random.pick([5 * SECOND, 5 * MINUTE]),
      resultMax: random.pick([5, 1000]),
      failedTtl: 10 * MINUTE,
      failedMax: 20,
      planTtl: 15 * MINUTE,
      remember: random.pick([2 * MINUTE, 1440 * MINUTE]),
      perType: { plan: 1, code: random.between(1, 6), spec: null },
      critical: { maxInFlight: random.between(1, 3) },
      priority: { starvationAfter: random.pick([20 * SECOND, 5 * MINUTE, 60 * MINUTE]) },
      fairness: {
        rule: random.percent(80) ? "level" : "deficit",
        agents: random.percent(80) ? "fair" : "none",
        halfLife: random.pick([30 * SECOND, 10 * MINUTE, 600 * MINUTE]),
      },
      placement: {
        strategy: random.pick(["least-loaded", ...STRATEGIES]),
        preferLocality: random.percent(30),
        maxQueuePerWorker: random.pick([0, 0, 1, 2]),
        affinityWait: random.pick([0, 2 * SECOND, 2 * MINUTE]),
        unresolvedAfter: random.pick([0, 20 * SECOND]),
      },
      backpressure: { perWorker: random.pick([null, null, 20]), rejectThreshold: random.pick([1, 1, 0.8]) },
      retry: {
        base: random.pick([100, SECOND]),
        max: 30 * SECOND,
        maxLosses: random.between(2, 5),
        maxRequeues: random.between(2, 6),
      },
    },
    budget: { limit: random.pick([null, null, 150_000]), window: random.pick([MINUTE, 60 * MINUTE]) },
    projects: { default: { maxPriority: random.pick(["high", "critical"]) } },
    gates: { "gate-a": gate(), "gate-b": gate() },
    workers: { killGrace: random.pick([0, 500, 10 * SECOND]) },
    log: {
      snapshotEvery: random.pick([25, 150, 500_000]),
      retain: random.pick([SECOND, 10 * MINUTE, 43_200 * MINUTE]),
    },
  };
}

const writeProject = (random: Random): Readonly<Record<string, unknown>> => ({
  weight: random.pick([0.5, 1, 1, 3, 7]),
  maxConcurrent: random.between(1, 6),
  budget: {
    limit: random.pick([null, null, random.between(3, 60) * 1000]),
    window: random.pick([30 * SECOND, 10 * MINUTE]),
  },
  maxPriority: random.pick([-200, -100, 0]),
  provider: random.percent(20) ? random.pick(GATES) : null,
});

/** The same rules with some limits moved; how long ids are remembered stays, so that the auditor knows it. */
function reloadStep({ random, config, tasks }: Script): Step {
  const next = writeConfig(random);
  const scheduler = next.scheduler as Record<string, unknown>;
  const { remember, plansMax } = config.scheduler as { remember: number; plansMax: number };
  const fewer = tasks % 3 === 0 ? plansMax / 2 : plansMax;
  return { do: "reload", config: { ...next, scheduler: { ...scheduler, remember, plansMax: fewer } } };
}

function writeCall(random: Random): Call {
  const tokens = random.pick([0, 200, 2000]);
  return { gate: random.pick(GATES), tokens, used: random.between(0, 2500), ms: random.between(0, 4000) };
}

function writeActs({ random, faults }: Script): Act[] {
  const kinds: Act["does"][] = ["finish", "finish", "finish", "finish", "fail", "requeue"];
  if (faults.has("handlers")) kinds.push("hang", "ignore-abort", "fail", "give-up", "skip");
  if (faults.has("storm")) kinds.push("rate-limited");
  return Array.from({ length: random.between(1, 3) }, () => ({
    does: random.pick(kinds),
    ms: random.pick([0, random.between(1, 800), random.between(1, 40) * SECOND]),
    ...(random.percent(50) ? { used: random.between(0, 6000) } : {}),
    ...(random.percent(25) ? { call: writeCall(random) } : {}),
  }));
}

/** Of a loop, every other end is one of a round; and of a few tasks that are none, which is a mistake. */
const roundsOf = ({ tasks }: Script, acts: readonly Act[]): Act[] =>
  acts.map((act, index) =>
    act.does === "finish" && (tasks % 7 === 0 ? index % 2 === 0 : tasks % 40 === 0)
      ? { ...act, does: "again" }
      : act.does === "finish" && tasks % 9 === 0 && index === 0
        ? { ...act, does: "ask" }
        : act,
  );

/** Some leave files. */
const leaving = ({ tasks }: Script, acts: readonly Act[]): readonly Act[] =>
  tasks % 4 === 1 ? acts.map((act) => ({ ...act, leaves: 1 + (tasks % 3) })) : acts;

/** Some submit children. By their number: one more draw would make other histories of the same seeds. */
const growing = ({ tasks }: Script, acts: readonly Act[]): readonly Act[] =>
  tasks % 7 === 3 ? acts.map((act) => ({ ...act, grows: 2 })) : acts;

/** A few ids are used twice on purpose: the same body again is the same task, another one a conflict. */
function writeTask(script: Script, mayTie: boolean): Extract<Step, { do: "submit" }>["body"] {
  const { random, ids } = script;
  const id = random.percent(4) && ids.length > 0 ? random.pick(ids) : `t${++script.tasks}`;
  const maybe = <Value>(chance: number, field: string, value: () => Value): Record<string, Value> =>
    random.percent(chance) ? { [field]: value() } : {};
  const ties = mayTie && ids.length > 0;
  // Half of all tasks ask for nothing special, so that they compete for the same slots.
  const isPlain = random.percent(50);
  const rarely = <Value>(chance: number, field: string, value: () => Value): Record<string, Value> =>
    isPlain ? {} : maybe(chance, field, value);
  const loop = script.tasks % 7 > 0 ? {} : { loop: { max: 1 + (script.tasks % 4) } };
  const body = {
    agentId: random.pick(AGENTS),
    action: isPlain ? "work" : random.pick(ACTIONS),
    project: random.pick(PROJECTS),
    type: isPlain ? "code" : random.pick(KINDS),
    ...maybe(85, "id", () => id),
    ...maybe(40, "priority", () => random.pick([-300, -200, -100, -10, 0, 50, 100, 250])),
    ...maybe(50, "estimatedTokens", () => Math.max(0, random.between(-800, 5000))),
    ...rarely(25, "resources", () => ({ cpuMillicores: random.pick([500, 2000, 4000]), memoryBytes: random.below(3) })),
    ...rarely(15, "capabilities", () => [random.pick(CAPABILITIES)]),
    ...rarely(10, "locks", () => [random.pick(["repo", "db"])]),
    ...rarely(15, "provider", () => random.pick(GATES)),
    ...rarely(10, "zone", () => random.pick(["north", "south"])),
    ...rarely(3, "tabId", () => "tab-1"),
    ...rarely(6, "inputArtifact", () => `file-${script.artifacts++}`),
    ...maybe(20, "timeoutMs", () => random.pick([300, 5000, MINUTE])),
    ...maybe(30, "maxAttempts", () => random.between(1, 4)),
    ...maybe(10, "onDependencyFailure", () => "run"),
    ...maybe(10, "onLoss", () => random.pick(["retry", "fail"])),
    // By its number: one more draw would make other histories of the same seeds.
    ...(script.tasks % 5 > 0 ? {} : { labels: { team: script.tasks % 2 === 0 ? "web" : "ops" } }),
    ...loop,
    ...(script.tasks % 7 === 3 && script.tasks % 2 === 0 ? { wait: "children" } : {}),
    ...(script.tasks % 11 > 0 ? {} : { approval: script.tasks % 2 === 0 ? true : { timeoutMs: 30 * SECOND } }),
    ...maybe(ties ? 12 : 0, "parent", () => random.pick(ids.slice(-15))),
    ...maybe(ties ? 12 : 0, "needs", () => [random.pick(ids.slice(-15))]),
    params: {
      acts: leaving(script, growing(script, roundsOf(script, writeActs(script)))),
      ...maybe(12, "deadlineIn", () => writeSpan(random)),
      ...maybe(8, "notBeforeIn", () => writeSpan(random)),
    },
  };
  if ("id" in body && !ids.includes(id)) ids.push(id);
  return body as Extract<Step, { do: "submit" }>["body"];
}

function batchStep(script: Script): Step {
  const { random, ids } = script;
  const tasks = Array.from({ length: random.between(2, 5) }, () => {
    const { agentId: _, ...item } = writeTask(script, true);
    return random.percent(40) && ids.length > 0 ? { ...item, needs: [random.pick(ids.slice(-4))] } : item;
  });
  return { do: "batch", batch: { agentId: random.pick(AGENTS), project: random.pick(PROJECTS), tasks } };
}

function patchStep(script: Script): Step {
  const { random } = script;
  const change = random.percent(50)
    ? { priority: random.pick([-200, -100, 0, 100]) }
    : { deadlineIn: writeSpan(random) };
  return { do: "patch", task: someTask(script), change };
}

function pauseStep(script: Script): Step {
  const { random } = script;
  const target = random.pick([{}, { project: random.pick(PROJECTS) }, { task: someTask(script) }]);
  return { do: "pause", target };
}

function joinStep(script: Script): Step {
  const { random } = script;
  const isBack = script.workers > 0 && random.percent(15);
  const id = `w${isBack ? random.between(1, script.workers) : ++script.workers}`;
  const slots = random.between(1, 4);
  const capabilities = CAPABILITIES.filter(() => random.percent(60));
  const cpu = random.pick([null, 2000, 4000]);
  const zone = random.pick([null, "north", "south"]);
  // By its number: one more draw would make other histories of the same seeds.
  const worktrees = script.workers % 2 === 0 ? null : 1;
  const unsaid = script.workers % 3 === 0 ? undefined : ALL;
  const takes = random.percent(40) ? writeTakes(random) : unsaid;
  if (script.remote) {
    const settings = { slots, capabilities, cpu, memory: null, worktrees, zone, status: "ready" } as const;
    return { do: "remote-join", id, settings, ...(takes === undefined ? {} : { takes }) };
  }
  return {
    do: "join",
    id,
    options: { id, slots, worktrees, capabilities, resources: { cpuMillicores: cpu }, zone, ...takes },
  };
}

/** Also what tasks bring, which a worker takes only if it says so. */
export const ALL: Takes = { actions: ["*"], types: null, projects: null };

/** What a worker says it takes: some of what there is, or what no task asks for. */
const writeTakes = (random: Random): Takes => ({
  actions: random.pick([null, ["work"], ["w*k", "none"], ["sing"], ["*"]]),
  types: random.pick([null, null, ["code"], ["c*", "plan"]]),
  projects: random.pick([null, null, ["red", "green"], ["*e*"]]),
});

function leaveStep(script: Script): Step {
  const { random, workers } = script;
  const id = `w${random.between(1, workers)}`;
  const status = random.pick(["ready", "overloaded", "draining"] as const);
  const settings = { slots: random.between(1, 3), capabilities: [], cpu: null, memory: null, zone: null, status };
  if (!script.remote) return { do: random.pick(["leave", "drain"]), id };
  return random.pick<Step>([
    { do: "remote-lost", id },
    { do: "remote-lost", id },
    { do: "remote-leave", id },
    { do: "remote-change", id, settings },
  ]);
}

const faultStep = (random: Random, faults: readonly Extract<Step, { do: "fault" }>["fault"][]): Step => ({
  do: "fault",
  fault: random.pick(faults),
  in: random.below(4),
});
