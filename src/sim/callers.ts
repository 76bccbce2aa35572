/**
 * Callers that submit tasks, and behave as good callers do: one whose submit was never answered asks again under the
 * same id once an engine is there, so what they want happens once.
 */

import { DroverError, isStop } from "../engine/base/index.ts";
import type { TaskInput } from "../engine/index.ts";
import type { SimContext } from "./context.ts";
import type { Act, PlanPutStep, Step } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";

export type Callers = {
  /** Submits that were never answered, by the id of the task. */
  readonly unanswered: ReadonlyMap<string, TaskInput | PlanPutStep>;
  /** Takes down how a call to the engine ends; a refusal is an answer too. */
  expect<Value>(call: Promise<Value>, onAnswer?: (value: Value) => void, onGone?: () => void): void;
  submit(engine: SimEngine, body: TaskInput): void;
  /** The same for a body whose instants are relative. */
  submitTimed(engine: SimEngine, body: TaskInput): void;
  submitBatch(engine: SimEngine, batch: Extract<Step, { do: "batch" }>["batch"]): void;
  putPlan(engine: SimEngine, step: PlanPutStep): void;
  /** What was never answered is asked again. */
  submitAgain(engine: SimEngine): void;
};

type TimedParams = { readonly acts?: readonly Act[]; readonly deadlineIn?: number; readonly notBeforeIn?: number };

export function createCallers(context: SimContext): Callers {
  const { auditor } = context;
  const unanswered = new Map<string, TaskInput | PlanPutStep>();

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
    expect(answered(engine.submit(body), id, body), onAnswer, () => {
      const next = context.engine();
      if (id !== undefined && next !== null && next !== engine) submit(next, body);
    });
  }

  /** An answer of any kind, but not the silence of an engine that is gone. */
  async function answered<Value>(call: Promise<Value>, id: string | undefined, of: unknown): Promise<Value> {
    try {
      return await call;
    } catch (error) {
      if (isStop(error)) id = undefined;
      throw error;
    } finally {
      if (id !== undefined && unanswered.get(id) === of) unanswered.delete(id);
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

  /** What was put last is what is wanted: only that is put again when no answer came. */
  function putPlan(engine: SimEngine, step: PlanPutStep): void {
    const { plan, document, options, twice } = step;
    const key = `plan ${plan}`;
    unanswered.set(key, step);
    const before = engine.state.seq;
    const put = engine.plans.put(plan, document, options);
    const isWithout = engine.state.seq === before;
    put.catch((error: Error) => {
      const isGood = isStop(error) || (isWithout && (error as Partial<DroverError>).code !== "bad_request");
      if (!isGood) auditor.complain("plan-whole", `${plan} is refused, or begun and refused: ${error.message}`);
    });
    expect(
      answered(put, key, step),
      ({ tasks }) => auditor.acknowledgedPut(step, tasks),
      () => {
        const next = context.engine();
        if (next !== null && next !== engine && unanswered.get(key) === step) putPlan(next, step);
      },
    );
    if (twice) checkAgain(plan, put, engine.plans.put(plan, document, { ...options, fresh: false }));
  }

  /** What was just put, and taken, changes nothing when it is put again in the same turn. */
  function checkAgain(plan: string, first: Promise<unknown>, second: ReturnType<SimEngine["plans"]["put"]>): void {
    const both = Promise.all([second, first.then(Boolean, () => false)]);
    expect(both, ([{ submitted, retried, cancelled }, isTaken]) => {
      if (isTaken && submitted + retried + cancelled > 0)
        auditor.complain("plan-again", `${plan}, put twice: ${JSON.stringify({ submitted, retried, cancelled })}`);
    });
  }

  return {
    unanswered,
    expect,
    submit,
    submitTimed: (engine, body) => submit(engine, timed(body)),
    submitBatch,
    putPlan,
    submitAgain(engine) {
      for (const wanted of [...unanswered.values()])
        if ("do" in wanted) putPlan(engine, wanted);
        else submit(engine, wanted);
    },
  };
}

const actsOf = (body: TaskInput): readonly Act[] => ((body.params ?? {}) as TimedParams).acts ?? [];
