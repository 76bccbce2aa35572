/**
 * Workers, good and bad.
 *
 * What a worker does with an attempt is written in the task's own body (`Act`), one act per attempt. A local worker is
 * a function in the engine's process and dies with it. A remote one lives in the world outside: its messages arrive
 * later, and twice; while the engine is down it keeps them; a worker that was given up goes on working, and what it
 * says then must count no more. `sober` workers only ever finish: they clear up at the end of a run.
 */

import type { PermitId, TaskId } from "../core/base/index.ts";
import type { Attempt, AttemptReport, Command, Event } from "../core/model/index.ts";
import { DroverError } from "../engine/base/index.ts";
import type { Inputs } from "../engine/index.ts";
import { type Handler, TaskRequeue, TaskSkip } from "../engine/workers/index.ts";
import type { Applied } from "../engine/writer/index.ts";
import type { Act, Call } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";
import type { EventOf } from "./shadow.ts";
import type { Life, SimWorld } from "./sim-clock.ts";

const LATENCY_MS = 40;
const RETRY_AFTER_MS = 1500;
const OUTCOMES: Readonly<Record<string, AttemptReport["outcome"]>> = {
  fail: "failed",
  "give-up": "failed",
  cancelled: "cancelled",
  skip: "skipped",
  requeue: "requeue",
  "rate-limited": "requeue",
  again: "again",
  ask: "ask",
};
/** So many contents there are of all that local workers leave. */
const CONTENTS = 6;
const FINISH: Act = { does: "finish", ms: 5 };
/** Later attempts submit no children: a task that a storm gives back for hours would fill the history with them. */
const GROWING_ATTEMPTS = 3;

/** What the world outside knows: which providers turn calls away, and what each task's body says. */
export type Surroundings = {
  readonly world: SimWorld;
  isStorm(gate: string): boolean;
  actsOf(task: string): readonly Act[];
  /** What a child that grew does. */
  noteActs(task: string, acts: readonly Act[]): void;
  /** What an attempt was given of those that its task needs. */
  sawInputs(task: string, attempt: number, inputs: Inputs | undefined): void;
  /** A report was refused, because it lists what was not put. */
  noteRefused(): void;
};

const actFor = ({ actsOf }: Surroundings, task: string, attempt: number): Act => {
  const acts = actsOf(task);
  const act = acts[(attempt - 1) % Math.max(1, acts.length)] ?? FINISH;
  return attempt > GROWING_ATTEMPTS ? { ...act, grows: 0 } : act;
};

type SubmitChild = (body: {
  readonly action: string;
  readonly wait?: "children";
}) => Promise<{ readonly taskId: string }>;

/** An attempt submits the children of its act. Where there is no room, or its attempt is over, it goes on without. */
async function growChildren(where: Surroundings, { grows = 0 }: Act, submit: SubmitChild): Promise<void> {
  for (let child = 0; child < grows; child++) {
    try {
      const { taskId } = await submit({ action: "work", ...(grows > 1 ? { wait: "children" } : {}) });
      where.noteActs(taskId, [{ ...FINISH, grows: grows - 1 }]);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
    }
  }
}

class RateLimited extends Error {
  readonly status = 429;
  readonly retryAfterMs = RETRY_AFTER_MS;
}

/** Resolves after so long, or rejects when the signal fires. */
function rest(life: Life, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    if (ms < Number.POSITIVE_INFINITY) life.after(ms, resolve);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The provider's end of a call. */
export async function answerCall(call: Call, where: Surroundings, life: Life): Promise<number> {
  await rest(life, call.ms);
  if (where.isStorm(call.gate)) throw new RateLimited("too many requests");
  return call.used;
}

export function localHandler(where: Surroundings, life: Life, sober: boolean): Handler {
  return async ({ taskId, attempt, inputs }, { signal, usage, withPermit, submit, ask, output }) => {
    const act = sober ? FINISH : actFor(where, taskId, attempt);
    where.sawInputs(taskId, attempt, inputs);
    await growChildren(where, act, submit);
    for (let file = 0; file < (act.leaves ?? 0); file++)
      await output(`out/${file}`, `content ${(taskId.length * 7 + attempt + file) % CONTENTS}`);
    const { call, used } = act;
    if (call !== undefined) {
      const ask = { tokens: call.tokens };
      await withPermit(
        call.gate,
        async (permit) => permit.usage({ outputTokens: await answerCall(call, where, life) }),
        ask,
      );
    }
    if (used !== undefined) usage({ outputTokens: Math.ceil(used / 2) });
    if (act.does === "hang") await rest(life, Number.POSITIVE_INFINITY, signal);
    else if (act.ms > 0) await rest(life, act.ms, act.does === "ignore-abort" ? undefined : signal);
    if (used !== undefined) usage({ outputTokens: used });
    if (act.does === "fail") throw new Error("it failed");
    if (act.does === "give-up") throw Object.assign(new Error("no attempt can mend it"), { permanent: true });
    if (act.does === "requeue") throw new TaskRequeue("not now", { retryAfterMs: act.ms });
    if (act.does === "skip") throw new TaskSkip("nothing to do");
    if (act.does === "ask") ask(`may attempt ${attempt} go on?`, { timeoutMs: 60_000 });
    if (act.does === "again") return { again: true, note: `round of attempt ${attempt}` };
    if (act.does === "rate-limited") throw new RateLimited("too many requests");
    return { attempt };
  };
}

/** An engine that has stopped, or a task that does not ask any more, refuses it. */
function unlessRefused(error: unknown): void {
  if (!(error instanceof DroverError)) throw error;
}

export type RemoteFleet = {
  hire(worker: string, sober: boolean): void;
  /** They are done with: what they hold is over. */
  dismiss(): void;
  onApplied(event: Event): void;
  onCommitted(batch: readonly Applied[]): void;
  /** A new engine: those that work say so again, and get what they should hold. */
  meet(engine: SimEngine): void;
};

type Job = { readonly task: TaskId; readonly attempt: number; act: Act; over: boolean };

export function createRemoteFleet(where: Surroundings, isOpen: () => SimEngine | null): RemoteFleet {
  const { world } = where;
  const hired = new Map<string, { readonly sober: boolean }>();
  const jobs = new Map<string, Job>();
  const calls = new Map<string, () => void>();
  const unsent: Command[] = [];

  /** Messages travel a while and arrive twice; with no engine there they wait. */
  function send(command: Command): void {
    for (const lag of [LATENCY_MS, 3 * LATENCY_MS]) world.after(lag, () => deliver(command));
  }

  function deliver(command: Command): void {
    try {
      const engine = isOpen();
      if (engine?.command == null) unsent.push(command);
      else engine.command(command);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      unsent.push(command);
    }
  }

  function take(worker: string, task: TaskId, attempt: number): void {
    // An id may come back long after its task was forgotten: the number of the submit tells them apart.
    const key = `${task}@${isOpen()?.state.tasks.get(task)?.seq}#${attempt}`;
    const who = hired.get(worker);
    if (who === undefined || jobs.has(key)) return;
    const job: Job = { task, attempt, act: who.sober ? FINISH : actFor(where, task, attempt), over: false };
    jobs.set(key, job);
    send({ type: "start-attempt", task, attempt });
    const submit: SubmitChild = async (body) => {
      const { drover } = isOpen() ?? { drover: null };
      if (drover === null) throw new DroverError("closed", "no engine is there");
      return drover.submitChild(task, attempt, body);
    };
    if (job.act.grows !== undefined) world.after(LATENCY_MS, () => void growChildren(where, job.act, submit));
    if (job.act.call !== undefined) world.after(LATENCY_MS, () => ask(job, job.act.call as Call));
    if (job.act.used !== undefined) send({ type: "report-usage", task, attempt, tokens: Math.ceil(job.act.used / 2) });
    if (job.act.does !== "hang") world.after(LATENCY_MS + job.act.ms, () => finish(job, job.act.does));
  }

  /** A permit of its own; the call goes out when the gate says so. */
  function ask({ task, attempt, over }: Job, call: Call): void {
    const engine = isOpen();
    if (over || engine?.command == null) return;
    const who = { task, attempt, project: "default" as never, class: null };
    const asked = { permit: null, gate: call.gate as never, tokens: call.tokens, askedAt: null };
    try {
      const decided = engine.command({ type: "ask-permit", ...asked, ...who });
      if (!decided.ok) return;
      const permit = decided.value.id as PermitId;
      calls.set(permit, () => world.after(call.ms, () => settle(permit, call)));
    } catch (error) {
      // An engine that has stopped gives no permits; the worker goes on without.
      if (!(error instanceof DroverError)) throw error;
    }
  }

  function settle(permit: PermitId, call: Call): void {
    const isThrottled = where.isStorm(call.gate);
    if (isThrottled) deliver({ type: "throttle-gate", gate: call.gate as never, permit, retryAfterMs: RETRY_AFTER_MS });
    send({ type: "settle-permit", permit, ok: !isThrottled, tokens: isThrottled ? 0 : call.used });
  }

  function finish(job: Job, does: Act["does"] | "cancelled"): void {
    if (job.over) return;
    job.over = true;
    const report: AttemptReport = {
      task: job.task,
      attempt: job.attempt,
      error: null,
      retryAfterMs: null,
      resultHash: null,
      resultSize: 0,
      outcome: OUTCOMES[does] ?? "done",
      tokens: job.act.used ?? null,
      permanent: does === "give-up",
      rateLimited: does === "rate-limited",
      note: does === "again" ? `round of attempt ${job.attempt}` : null,
    };
    send({ type: "finish-attempt", report });
  }

  function answer({ task, at }: EventOf<"task-parked">): void {
    const say = (): void =>
      void isOpen()
        ?.approve(task, { note: "go on", deny: at % 8 === 0 })
        .catch(unlessRefused);
    // Twice, as a person does who does not know whether it was heard.
    for (const lag of [1, 2]) world.after(lag * (at % 5 === 0 ? 40_000 : 500), say);
  }

  function stop(task: string): void {
    for (const job of jobs.values()) {
      const isTold = job.task === task && !job.over && job.act.does !== "ignore-abort";
      if (isTold) world.after(LATENCY_MS, () => finish(job, "cancelled"));
    }
  }

  return {
    hire: (worker, sober) => hired.set(worker, { sober }),
    dismiss() {
      hired.clear();
      for (const job of jobs.values()) job.over = true;
    },
    onApplied(event) {
      if (event.kind !== "permit-granted") return;
      calls.get(event.permit)?.();
      calls.delete(event.permit);
    },
    onCommitted(batch) {
      for (const { event } of batch) {
        // Somebody answers, now and then too late or with no.
        if (event.kind === "task-parked") answer(event);
        if (event.kind === "task-assigned") take(event.worker, event.task, event.attempt);
        else if (event.kind === "attempt-stopping" || event.kind === "task-cancelled") stop(event.task);
        else if (event.kind === "task-failed" && event.attempt === null) stop(event.task);
      }
    },
    meet({ state }) {
      for (const command of unsent.splice(0)) send(command);
      for (const worker of state.fleet.order) {
        const held: Attempt[] = [...worker.attempts];
        for (const { task, number, state: phase } of held) {
          take(worker.id, task.id, number);
          if (phase === "stopping") stop(task.id);
        }
      }
    },
  };
}
