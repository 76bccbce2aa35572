/**
 * Playing a history: each step carried out, each answer taken down, and in the end everything cleared up.
 */

import type { LocalWorker, WorkerOptions } from "../engine/workers/index.ts";
import { type Callers, createCallers } from "./callers.ts";
import type { SimContext } from "./context.ts";
import { ALL } from "./fleet-script.ts";
import type { History, Step } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";
import { openOf } from "./shadow.ts";
import { runWireWorker } from "./wire-worker.ts";
import { answerCall, localHandler } from "./workers.ts";

/** A week: what was put off by a wall clock that was days ahead comes too. */
const EVER_MS = 31_536_000_000;
const CLEAR_UP_ROUNDS = 1000;
const CLEAR_UP_ROUND_MS = 600_000;

type Players = {
  act(step: Step): Promise<void>;
  /** A new engine is there: what was never answered is asked again. */
  onOpened(engine: SimEngine): void;
  clearUp(): Promise<void>;
};

export function createPlayers(history: History, context: SimContext): Players {
  const { auditor } = context;
  const callers = createCallers(context);
  const fleet = createLocalFleet(context, callers);
  const { expect } = callers;

  function onTask(engine: SimEngine, step: Extract<Step, { do: "cancel" | "retry" | "read" | "patch" }>): void {
    const { task } = step;
    switch (step.do) {
      case "cancel":
        return expect(engine.cancel(task), () =>
          auditor.acknowledged({ what: `cancel of ${task}`, task, kind: "task-cancelled" }),
        );
      case "retry":
        return expect(engine.retry(task), () =>
          auditor.acknowledged({ what: `retry of ${task}`, task, kind: "task-retried" }),
        );
      case "patch": {
        const { priority, deadlineIn } = step.change;
        const deadline = deadlineIn === undefined ? {} : { deadline: context.world.now() + deadlineIn };
        return expect(engine.patch(task, { ...(priority === undefined ? {} : { priority }), ...deadline }));
      }
      case "read":
        return expect(engine.stateOf(task), (said) => {
          if (["done", "failed", "cancelled", "skipped"].includes(said)) auditor.saidToBe(task, said);
        });
    }
  }

  function call(engine: SimEngine, { call: given, project }: Extract<Step, { do: "call" }>): void {
    const life = context.life();
    if (engine.drover === null) return;
    const made = engine.drover.withPermit(
      given.gate,
      async (permit) => permit.usage({ outputTokens: await answerCall(given, context.surroundings, life) }),
      { tokens: given.tokens, project },
    );
    // A call that was turned away too often fails with the provider's own error, as it should.
    made.catch(() => {});
  }

  async function usurp(old: SimEngine): Promise<void> {
    await context.open();
    // The deposed one may still be asked: what it answers must not be an acknowledgement of anything.
    callers.submit(old, { agentId: "ann", action: "too late", id: `late-${context.tally.openings}` });
  }

  async function onEngine(engine: SimEngine, step: Step): Promise<void> {
    switch (step.do) {
      case "submit":
        return callers.submitTimed(engine, step.body);
      case "batch":
        return callers.submitBatch(engine, step.batch);
      case "cancel":
      case "retry":
      case "read":
      case "patch":
        return onTask(engine, step);
      case "pause":
        return expect(engine.pause(step.target));
      case "resume":
        return expect(engine.resume(step.target));
      case "plan-put":
        return callers.putPlan(engine, step);
      case "plan":
        return expect<unknown>(engine.plans[step.verb](step.plan), () => {
          if (step.verb === "pause")
            auditor.acknowledged({ what: `pause of ${step.plan}`, task: step.plan, kind: "plan-paused" });
        });
      case "reload":
        return expect(engine.reload(step.config));
      case "project":
        return expect(engine.putProject(step.id, step.settings));
      case "join":
        return fleet.join(engine, step.id, step.options, false);
      case "leave":
      case "drain":
        return fleet.end(engine, step);
      case "artifact":
        context.artifacts.add(step.name);
        return expect(engine.lookForArtifacts());
      case "call":
        return call(engine, step);
      case "reset":
        return expect(engine.resetGate(step.gate));
      case "snapshot":
        return expect(engine.snapshot());
      case "rival":
        return usurp(engine);
      default:
        if ("id" in step) onRemote(context, engine, step);
    }
  }

  async function act(step: Step): Promise<void> {
    if (await onWorld(context, step)) return;
    await context.ensureOpen();
    const engine = context.engine();
    if (engine !== null) await onEngine(engine, step);
  }

  return {
    act,
    clearUp: () => clearUp(history, context, callers, fleet),
    onOpened(engine) {
      fleet.joinAll(engine);
      if (history.seed % 3 === 0 && engine.drover !== null)
        void runWireWorker(engine.drover, context.surroundings, "wire");
      callers.submitAgain(engine);
    },
  };
}

/** A step of a worker on another machine. */
function onRemote(context: SimContext, engine: SimEngine, step: Extract<Step, { readonly id: string }>): void {
  const worker = step.id as never;
  if (step.do === "remote-join") {
    const { settings, id, takes = null } = step;
    const decided = engine.command?.({ type: "join-worker", worker, kind: "pull", session: id, settings, takes });
    if (decided?.ok) context.remoteFleet.hire(id, false);
  } else if (step.do === "remote-change") engine.command?.({ type: "change-worker", worker, settings: step.settings });
  else engine.command?.({ type: "leave-worker", worker, lost: step.do === "remote-lost" });
}

/** Steps that are things of the world, not of an engine. */
async function onWorld(context: SimContext, step: Step): Promise<boolean> {
  switch (step.do) {
    case "wait":
      await context.pass(step.ms);
      return true;
    case "jump":
      context.world.jump(Math.max(step.ms, 1 - context.world.now()));
      return true;
    case "storm":
      context.storms.set(step.gate, context.world.elapsed() + step.ms);
      return true;
    case "fault":
      context.arm(step.fault, step.in);
      return true;
    case "crash":
      context.crash();
      return true;
    case "reopen":
      await context.closeEngine();
      return true;
    default:
      return false;
  }
}

/**
 * Workers in the engine's own process: functions that the program which embeds it hands over, and hands over again to
 * the next engine.
 */
type LocalFleet = {
  join(engine: SimEngine, id: string, options: WorkerOptions, sober: boolean): void;
  /** A worker leaves or drains. */
  end(engine: SimEngine, step: Extract<Step, { do: "leave" | "drain" }>): void;
  /** A new engine is there: all workers join it. */
  joinAll(engine: SimEngine): void;
  closeAll(): void;
};

function createLocalFleet(context: SimContext, { expect }: Callers): LocalFleet {
  const hired = new Map<string, WorkerOptions>();
  let workers = new Map<string, LocalWorker>();

  function join(engine: SimEngine, id: string, options: WorkerOptions, sober: boolean): void {
    if (engine.drover === null) return;
    hired.set(id, options);
    // One that has joined an engine which is gone since must not stand for its successor.
    const ofThisEngine = workers;
    const handler = localHandler(context.surroundings, context.life(), sober);
    expect(engine.drover.worker(options, handler), (worker) => ofThisEngine.set(worker.id, worker));
  }

  return {
    join,
    end(engine, step) {
      const worker = workers.get(step.id);
      if (worker === undefined || engine.drover === null) return;
      hired.delete(step.id);
      expect(step.do === "leave" ? worker.close() : worker.drain());
    },
    joinAll(engine) {
      workers = new Map();
      for (const [id, options] of hired) join(engine, id, options, false);
    },
    closeAll() {
      for (const worker of workers.values()) expect(worker.close());
    },
  };
}

/**
 * The end of a run: faults cease, limits are lifted, workers that only ever finish join, and time passes. By then every
 * task that was ever acknowledged must have ended, and no call may wait.
 */
async function clearUp(history: History, context: SimContext, callers: Callers, fleet: LocalFleet): Promise<void> {
  const { expect } = callers;
  context.switches.faults = false;
  context.switches.allArtifacts = true;
  context.storms.clear();
  await context.ensureOpen();
  await context.pass(1000);
  await context.ensureOpen();
  const engine = context.engine();
  if (engine === null) return;
  callers.submitAgain(engine);
  const { remember } = (history.config.scheduler ?? {}) as { remember?: number };
  const scheduler = { ...(remember === undefined ? {} : { remember }), resultTtl: EVER_MS, failedTtl: EVER_MS };
  expect(engine.reload({ scheduler }));
  for (const { id, settings } of [...engine.state.projects.values()]) {
    const generous = { maxConcurrent: 1000, budget: { limit: null, window: 1000 } };
    expect(engine.putProject(id, { ...settings, ...generous }));
    expect(engine.resume({ project: id }));
  }
  expect(engine.resume({}));
  for (const task of engine.state.tasks.values()) {
    if (task.paused && task.end === null) expect(engine.resume({ task: task.id }));
  }
  await relieve(context, callers, fleet, engine);
  await finishAll(context, callers);
}

/** All workers leave, and workers that only ever finish take over. */
async function relieve(context: SimContext, { expect }: Callers, fleet: LocalFleet, engine: SimEngine): Promise<void> {
  fleet.closeAll();
  context.remoteFleet.dismiss();
  await context.settle();
  const capabilities = ["gpu", "web", "tab:tab-1"];
  if (engine.command !== null) {
    for (const { id } of [...engine.state.fleet.order]) {
      engine.command({ type: "leave-worker", worker: id, lost: false });
    }
    const settings = { slots: 20, capabilities, cpu: null, memory: null, zone: null, status: "ready" } as const;
    const joining = { worker: "sober" as never, kind: "pull", session: "s", settings, takes: ALL } as const;
    engine.command({ type: "join-worker", ...joining });
    context.remoteFleet.hire("sober", true);
  } else fleet.join(engine, "sober", { id: "sober", slots: 20, capabilities, ...ALL }, true);
  await context.settle();
  expect(engine.lookForArtifacts());
  await context.settle();
}

async function finishAll(context: SimContext, { unanswered }: Callers): Promise<void> {
  const { auditor } = context;
  const { shadow } = auditor;
  const open = (): string[] => [
    ...[...shadow.tasks].filter(([, task]) => task.phase !== "ended").map(([id]) => id),
    ...[...shadow.plans.values()].flatMap((plan) => openOf(shadow, plan)),
  ];
  const calls = (): number => [...shadow.gates.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  for (let round = 0; round < CLEAR_UP_ROUNDS && open().length + calls() > 0; round++) {
    // Also those that a failure of this round has paused.
    for (const [id, { paused }] of shadow.plans)
      if (paused !== null)
        void context
          .engine()
          ?.plans.resume(id)
          .catch(() => {}); // It may be forgotten since.
    for (const [id, { phase }] of shadow.tasks)
      if (phase === "parked")
        void context
          .engine()
          ?.approve(id)
          .catch(() => {}); // It may have ended since.
    await context.pass(CLEAR_UP_ROUND_MS);
    if (auditor.complaints.length > 0) return;
  }
  if (open().length > 0)
    auditor.complain("ends", `with nothing in their way these tasks never end: ${open().join(", ")}`);
  if (calls() > 0) auditor.complain("ends", `${calls()} calls wait at gates for ever`);
  if (unanswered.size > 0) auditor.complain("answers", `never answered: ${[...unanswered.keys()].join(", ")}`);
}
