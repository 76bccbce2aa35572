/**
 * Callers that submit tasks, and behave as good callers do: one whose submit was never answered asks again under the
 * same id once an engine is there, so what they want happens once.
 */

import { DroverError, isStop } from "../engine/base/index.ts";
import type { TaskInput } from "../engine/index.ts";
import type { SimContext } from "./context.ts";
import type { Act, Step } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";

export type Callers = {
  /** Submits that were never answered, by the id of the task. */
  readonly unanswered: ReadonlyMap<string, TaskInput>;
  /** Takes down how a call to the engine ends; a refusal is an answer too. */
  expect<Value>(call: Promise<Value>, onAnswer?: (value: Value) => void, onGone?: () => void): void;
  submit(engine: SimEngine, body: TaskInput): void;
  /** The same for a body whose instants are relative. */
  submitTimed(engine: SimEngine, body: TaskInput): void;
  submitBatch(engine: SimEngine, batch: Extract<Step, { do: "batch" }>["batch"]): void;
  /** What was never answered is asked again. */
  submitAgain(engine: SimEngine): void;
};

type TimedParams = { readonly acts?: readonly Act[]; readonly deadlineIn?: number; readonly notBeforeIn?: number };

export function createCallers(context: SimContext): Callers {
  const { auditor } = context;
  const unanswered = new Map<string, TaskInput>();

  const expect: Callers["expect"] = (call, onAnswer = () => {}, onGone = () => {}) => {
    call.then(onAnswer, (error: unknown) => {
      if (!(error instanceof DroverError))
        return auditor.complain("broken", `an answer that is no DroverError: ${String(error)}`);
      if (isStop(error)) onGone();
    });
  };

  function submit(engine: SimEngine, body: TaskInput): void {
    const { id } = body;
    if (id !== undefined) unanswered.set(id, body);
    const onAnswer = ({ taskId }: { readonly taskId: string }): void => {
      if (!context.bodies.has(taskId)) context.bodies.set(taskId, actsOf(body));
      auditor.acknowledged({ what: `submit of ${taskId}`, task: taskId, kind: "task-submitted" });
    };
    expect(answered(engine.submit(body), id), onAnswer, () => {
      const next = context.engine();
      if (id !== undefined && next !== null && next !== engine) submit(next, body);
    });
  }

  /** An answer of any kind, but not the silence of an engine that is gone. */
  async function answered<Value>(call: Promise<Value>, id: string | undefined): Promise<Value> {
    try {
      return await call;
    } catch (error) {
      if (isStop(error)) id = undefined;
      throw error;
    } finally {
      if (id !== undefined) unanswered.delete(id);
    }
  }

  /** Relative instants become real ones, once: asking again says the same. */
  function timed(body: TaskInput): TaskInput {
    const { deadlineIn, notBeforeIn } = (body.params ?? {}) as TimedParams;
    const now = context.world.now();
    const timedBody = {
      ...body,
      ...(deadlineIn === undefined ? {} : { deadline: now + deadlineIn }),
      ...(notBeforeIn === undefined ? {} : { notBefore: now + notBeforeIn }),
    };
    const { id } = body;
    if (id !== undefined && !context.bodies.has(id)) context.bodies.set(id, actsOf(body));
    return timedBody;
  }

  function submitBatch(engine: SimEngine, given: Extract<Step, { do: "batch" }>["batch"]): void {
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

  return {
    unanswered,
    expect,
    submit,
    submitTimed: (engine, body) => submit(engine, timed(body)),
    submitBatch,
    submitAgain(engine) {
      for (const body of [...unanswered.values()]) submit(engine, body);
    },
  };
}

const actsOf = (body: TaskInput): readonly Act[] => ((body.params ?? {}) as TimedParams).acts ?? [];
