/**
 * Playing a history: each step carried out, each answer taken down, and at the end everything cleared up.
 *
 * Callers behave as good callers do: one whose submit was never answered asks again under the same id once an engine is
 * there, so whatever they wanted happens once. After the last step faults cease, limits are lifted, sober workers
 * join, and time passes: by then every task that was ever acknowledged must have ended, and no call may wait.
 */

import type { TaskInput } from "../engine/index.ts";
import type { LocalWorker, WorkerOptions } from "../engine/workers/index.ts";
import { DroverError, type DroverErrorCode } from "../engine/writer/index.ts";
import type { Auditor } from "./auditor.ts";
import type { Stage } from "./context.ts";
import type { Act, History, Step } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";
import { answerCall, localHandler } from "./workers.ts";

/** A week: what was put off by a wall clock that was days ahead comes too. */
const CLEAR_UP_ROUNDS = 1000;
const CLEAR_UP_ROUND_MS = 600_000;
/** Codes that say nothing about the request: the engine went away. */
const GONE: ReadonlySet<DroverErrorCode> = new Set<DroverErrorCode>(["closed", "deposed", "log_failed", "broken"]);

export type Players = {
  act(step: Step): Promise<void>;
  /** A new engine is there: what was never answered is asked again. */
  onOpened(engine: SimEngine): void;
  clearUp(): Promise<void>;
};

type TimedParams = { readonly acts?: readonly Act[]; readonly deadlineIn?: number; readonly notBeforeIn?: number };

export function createPlayers(history: History, getStage: () => { stage: Stage; auditor: Auditor }): Players {
  const unanswered = new Map<string, TaskInput>();
  const hired = new Map<string, WorkerOptions>();
  let locals = new Map<string, LocalWorker>();

  /** Takes down how a call to the engine ends; a refusal is an answer too. */
  function expect<Value>(call: Promise<Value>, onAnswer: (value: Value) => void, onGone: () => void = () => {}): void {
    call.then(onAnswer, (error: unknown) => {
      if (!(error instanceof DroverError))
        return complain("broken", `an answer that is no DroverError: ${String(error)}`);
      if (GONE.has(error.code)) onGone();
    });
  }
  const complain: Auditor["complain"] = (rule, detail) => getStage().auditor.complain(rule, detail);

  function submit(engine: SimEngine, body: TaskInput): void {
    const { stage, auditor } = getStage();
    const { id } = body;
    if (id !== undefined) unanswered.set(id, body);
    const onAnswer = ({ taskId }: { readonly taskId: string }): void => {
      if (!stage.bodies.has(taskId)) stage.bodies.set(taskId, actsOf(body));
      auditor.acknowledged({ what: `submit of ${taskId}`, task: taskId, kind: "task-submitted" });
    };
    expect(answered(engine.submit(body), id), onAnswer, () => {
      const next = stage.engine();
      if (id !== undefined && next !== null && next !== engine) submit(next, body);
    });
  }

  /** An answer of any kind, but not the silence of an engine that is gone. */
  async function answered<Value>(call: Promise<Value>, id: string | undefined): Promise<Value> {
    try {
      return await call;
    } catch (error) {
      const isGone = error instanceof DroverError && GONE.has(error.code);
      if (isGone) id = undefined;
      throw error;
    } finally {
      if (id !== undefined) unanswered.delete(id);
    }
  }

  /** Relative instants become real ones, once: asking again says the same. */
  function timed(body: TaskInput): TaskInput {
    const { deadlineIn, notBeforeIn } = (body.params ?? {}) as TimedParams;
    const now = getStage().stage.world.now();
    const timedBody = {
      ...body,
      ...(deadlineIn === undefined ? {} : { deadline: now + deadlineIn }),
      ...(notBeforeIn === undefined ? {} : { notBefore: now + notBeforeIn }),
    };
    const { id } = body;
    if (id !== undefined && !getStage().stage.bodies.has(id)) getStage().stage.bodies.set(id, actsOf(body));
    return timedBody;
  }

  function batch(engine: SimEngine, given: Extract<Step, { do: "batch" }>["batch"]): void {
    const { auditor } = getStage();
    const tasks = given.tasks.map((item) => timed({ ...item, agentId: given.agentId }));
    if (engine.drover === null) {
      for (const body of tasks) submit(engine, body);
      return;
    }
    const items = tasks.map(({ agentId: _, ...item }) => item);
    expect(engine.drover.submitBatch({ ...given, tasks: items }), (answer) => {
      for (const item of answer.tasks) {
        if (item.state === "rejected" || item.taskId === undefined) continue;
        auditor.acknowledged({ what: `batch item ${item.taskId}`, task: item.taskId, kind: "task-submitted" });
      }
    });
  }

  function join(engine: SimEngine, id: string, options: WorkerOptions, sober: boolean): void {
    const { stage } = getStage();
    if (engine.drover === null) return;
    hired.set(id, options);
    const handler = localHandler(stage.surroundings, stage.life(), sober);
    expect(engine.drover.worker(options, handler), (worker) => locals.set(worker.id, worker));
  }

  function onTask(engine: SimEngine, step: Extract<Step, { do: "cancel" | "retry" | "read" | "patch" }>): void {
    const { auditor, stage } = getStage();
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
        const deadline = deadlineIn === undefined ? {} : { deadline: stage.world.now() + deadlineIn };
        return expect(engine.patch(task, { ...(priority === undefined ? {} : { priority }), ...deadline }), () => {});
      }
      case "read":
        return expect(engine.stateOf(task), (said) => {
          if (["done", "failed", "cancelled", "skipped"].includes(said)) auditor.saidToBe(task, said);
        });
    }
  }

  function onRemote(engine: SimEngine, step: Extract<Step, { readonly id: string }>): void {
    const { stage } = getStage();
    const worker = step.id as never;
    if (step.do === "remote-join") {
      const { settings, id, takes = null } = step;
      const decided = engine.command?.({ type: "join-worker", worker, kind: "pull", session: id, settings, takes });
      if (decided?.ok) stage.crew.hire(id, false);
    } else if (step.do === "remote-change")
      engine.command?.({ type: "change-worker", worker, settings: step.settings });
    else engine.command?.({ type: "leave-worker", worker, lost: step.do === "remote-lost" });
  }

  function onWorker(engine: SimEngine, step: Extract<Step, { do: "leave" | "drain" }>): void {
    const worker = locals.get(step.id);
    if (worker === undefined || engine.drover === null) return;
    hired.delete(step.id);
    expect(step.do === "leave" ? worker.close() : worker.drain(), () => {});
  }

  function call(engine: SimEngine, { call: given, project }: Extract<Step, { do: "call" }>): void {
    const { stage } = getStage();
    const life = stage.life();
    if (engine.drover === null) return;
    const made = engine.drover.withPermit(
      given.gate,
      async (permit) => permit.usage({ outputTokens: await answerCall(given, stage.surroundings, life) }),
      { tokens: given.tokens, project },
    );
    // A call that was turned away too often fails with the provider's own error, as it should.
    made.catch(() => {});
  }

  /** Steps that are things of the world, not of an engine. */
  async function onWorld(step: Step): Promise<boolean> {
    const { stage } = getStage();
    switch (step.do) {
      case "wait":
        await stage.pass(step.ms);
        return true;
      case "jump":
        stage.world.jump(Math.max(step.ms, 1 - stage.world.now()));
        return true;
      case "storm":
        stage.storms.set(step.gate, stage.world.elapsed() + step.ms);
        return true;
      case "fault":
        stage.arm(step.fault, step.in);
        return true;
      case "crash":
        stage.crash();
        return true;
      case "reopen":
        await stage.closeEngine();
        return true;
      default:
        return false;
    }
  }

  async function usurp(old: SimEngine): Promise<void> {
    await getStage().stage.usurp();
    // The deposed one may still be asked: what it answers must not be an acknowledgement of anything.
    submit(old, { agentId: "ann", action: "too late", id: `late-${getStage().stage.tally.openings}` });
  }

  async function onEngine(engine: SimEngine, step: Step): Promise<void> {
    const { stage } = getStage();
    switch (step.do) {
      case "submit":
        return submit(engine, timed(step.body));
      case "batch":
        return batch(engine, step.batch);
      case "cancel":
      case "retry":
      case "read":
      case "patch":
        return onTask(engine, step);
      case "pause":
        return expect(engine.pause(step.target), () => {});
      case "resume":
        return expect(engine.resume(step.target), () => {});
      case "reload":
        return expect(engine.reload(step.config), () => {});
      case "project":
        return expect(engine.putProject(step.id, step.settings), () => {});
      case "join":
        return join(engine, step.id, step.options, false);
      case "leave":
      case "drain":
        return onWorker(engine, step);
      case "artifact":
        stage.artifacts.add(step.name);
        return expect(engine.lookForArtifacts(), () => {});
      case "call":
        return call(engine, step);
      case "reset":
        return expect(engine.resetGate(step.gate), () => {});
      case "snapshot":
        return expect(engine.snapshot(), () => {});
      case "rival":
        return usurp(engine);
      default:
        if ("id" in step) onRemote(engine, step);
    }
  }

  async function act(step: Step): Promise<void> {
    if (await onWorld(step)) return;
    const { stage } = getStage();
    await stage.ensureOpen();
    const engine = stage.engine();
    if (engine !== null) await onEngine(engine, step);
  }

  async function clearUp(): Promise<void> {
    const { stage } = getStage();
    stage.switches.faults = false;
    stage.switches.allArtifacts = true;
    stage.storms.clear();
    await stage.ensureOpen();
    await stage.pass(1000);
    await stage.ensureOpen();
    const engine = stage.engine();
    if (engine === null) return;
    for (const body of [...unanswered.values()]) submit(engine, body);
    const { remember } = (history.config.scheduler ?? {}) as { remember?: number };
    const scheduler = { ...(remember === undefined ? {} : { remember }), resultTtl: 31_536_000_000 };
    expect(engine.reload({ scheduler }), () => {});
    for (const { id, settings } of [...engine.state.projects.values()]) {
      const generous = { maxConcurrent: 1000, budget: { limit: null, window: 1000 } };
      expect(engine.putProject(id, { ...settings, ...generous }), () => {});
      expect(engine.resume({ project: id }), () => {});
    }
    expect(engine.resume({}), () => {});
    for (const task of engine.state.tasks.values()) {
      if (task.paused && task.end === null) expect(engine.resume({ task: task.id }), () => {});
    }
    await relieve(engine);
    await finishAll();
  }

  /** Everybody goes, and workers that only ever finish take over. */
  async function relieve(engine: SimEngine): Promise<void> {
    const { stage } = getStage();
    for (const worker of locals.values()) expect(worker.close(), () => {});
    stage.crew.dismiss();
    await stage.settle();
    const capabilities = ["gpu", "web", "tab:tab-1"];
    if (engine.command !== null) {
      for (const { id } of [...engine.state.fleet.order]) {
        engine.command({ type: "leave-worker", worker: id, lost: false });
      }
      const settings = { slots: 20, capabilities, cpu: null, memory: null, zone: null, status: "ready" } as const;
      engine.command({ type: "join-worker", worker: "sober" as never, kind: "pull", session: "s", settings });
      stage.crew.hire("sober", true);
    } else join(engine, "sober", { id: "sober", slots: 20, capabilities }, true);
    await stage.settle();
    expect(engine.lookForArtifacts(), () => {});
    await stage.settle();
  }

  async function finishAll(): Promise<void> {
    const { stage, auditor } = getStage();
    const { shadow } = auditor;
    const open = (): string[] => [...shadow.tasks].filter(([, task]) => task.phase !== "ended").map(([id]) => id);
    const calls = (): number => [...shadow.gates.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
    for (let round = 0; round < CLEAR_UP_ROUNDS && open().length + calls() > 0; round++) {
      await stage.pass(CLEAR_UP_ROUND_MS);
      if (auditor.complaints.length > 0) return;
    }
    if (open().length > 0) complain("ends", `with nothing in their way these tasks never end: ${open().join(", ")}`);
    if (calls() > 0) complain("ends", `${calls()} calls wait at gates for ever`);
    if (unanswered.size > 0) complain("answers", `never answered: ${[...unanswered.keys()].join(", ")}`);
  }

  return {
    act,
    clearUp,
    onOpened: (engine) => {
      locals = new Map();
      // The program that embeds it starts its workers again.
      for (const [id, options] of hired) join(engine, id, options, false);
      for (const body of [...unanswered.values()]) submit(engine, body);
    },
  };
}

const actsOf = (body: TaskInput): readonly Act[] => ((body.params ?? {}) as TimedParams).acts ?? [];
