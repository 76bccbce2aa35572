/**
 * Playing a history: each step carried out, and each answer taken down.
 */

import { createCallers } from "./callers.ts";
import { clearUp } from "./clear-up.ts";
import type { SimContext } from "./context.ts";
import type { History, Step } from "./history.ts";
import { createLocalFleet } from "./local-fleet.ts";
import type { SimEngine } from "./open-engine.ts";
import { answerCall } from "./workers.ts";

export type Players = {
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
    clearUp: () => clearUp({ history, context, callers, fleet }),
    onOpened(engine) {
      fleet.joinAll(engine);
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
