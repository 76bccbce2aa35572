/**
 * A history: the rules of a fleet and everything that happens to it, as plain data.
 *
 * Nothing in a history is decided while it runs. What a handler will do in each attempt is written in the body of its
 * task, a fault names the append it hits, so a step can be left out and the others still mean the same. That is
 * what makes a long history that fails shrinkable to a short one, and readable when it is printed.
 */

import type { Takes, WorkerSettings } from "../core/model/index.ts";
import type { BatchInput, PlanOptions, Plans, TaskInput } from "../engine/index.ts";
import type { WorkerOptions } from "../engine/workers/index.ts";
import type { AppendFault } from "./faulty-log.ts";

/** What goes wrong in a run; every kind can be switched off. */
export const FAULTS = ["crash", "unknown", "slow", "rival", "clock", "storm", "workers", "handlers"] as const;
export type Fault = (typeof FAULTS)[number];

/** A call to a provider that a handler makes on its way. */
export type Call = { readonly gate: string; readonly tokens: number; readonly used: number; readonly ms: number };
/** What a worker does with one attempt. */
export type Act = {
  readonly does:
    | ("finish" | "fail" | "give-up" | "requeue" | "rate-limited" | "skip" | "again" | "ask")
    /** Stops only on its signal; does not stop even then. */
    | ("hang" | "ignore-abort");
  readonly ms: number;
  /** Tokens it reports on the way; absent: it never says. */
  readonly used?: number;
  readonly call?: Call;
  /** It submits so many children, each of which submits one less. */
  readonly grows?: number;
  /** It leaves so many files; few contents for all, so that tasks share them. */
  readonly leaves?: number;
};

type Task = { readonly task: string };
type Plan = { readonly plan: string };
type Document = Parameters<Plans["put"]>[1];
export type PlanPutStep = Plan & {
  readonly do: "plan-put";
  readonly document: Document & { readonly tasks: NonNullable<Document["tasks"]> };
  readonly options: PlanOptions;
  /** The same is put once more in the same turn: that must change nothing. */
  readonly twice: boolean;
};
export type PlanVerb = "pause" | "resume" | "cancel" | "retry" | "remove";
type What =
  | { readonly do: "submit"; readonly body: TaskInput }
  | { readonly do: "batch"; readonly batch: BatchInput }
  | ({ readonly do: "cancel" | "retry" | "read" } & Task)
  | ({ readonly do: "patch"; readonly change: { priority?: number; deadlineIn?: number } } & Task)
  | { readonly do: "pause" | "resume"; readonly target: { project?: string; task?: string } }
  | PlanPutStep
  | ({ readonly do: "plan"; readonly verb: PlanVerb } & Plan)
  | { readonly do: "reload"; readonly config: Config }
  | { readonly do: "project"; readonly id: string; readonly settings: Readonly<Record<string, unknown>> }
  | { readonly do: "join"; readonly id: string; readonly options: WorkerOptions }
  | { readonly do: "leave" | "drain"; readonly id: string }
  | { readonly do: "remote-join"; readonly id: string; readonly settings: WorkerSettings; readonly takes?: Takes }
  | { readonly do: "remote-change"; readonly id: string; readonly settings: WorkerSettings }
  /** It goes silent and is given up; what it says later counts no more. */
  | { readonly do: "remote-lost" | "remote-leave"; readonly id: string }
  | { readonly do: "artifact"; readonly name: string }
  | { readonly do: "call"; readonly call: Call; readonly project: string }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "jump"; readonly ms: number }
  | { readonly do: "storm"; readonly gate: string; readonly ms: number }
  /** A person lifts the block of a gate. */
  | { readonly do: "reset"; readonly gate: string }
  /** The append so many after the next one meets this fault. */
  | { readonly do: "fault"; readonly fault: AppendFault; readonly in: number }
  | { readonly do: "crash" | "reopen" | "rival" | "snapshot" };
export type Step = What & {
  /** The next step follows in the same turn of the event loop. */
  readonly together?: true;
};
type Config = Readonly<Record<string, unknown>>;
export type History = {
  readonly seed: number;
  /** Whether workers on other machines take part. */
  readonly remote: boolean;
  /** Where workers take part: how many events a batch of the log takes before the next begins. */
  readonly batchMax: number | null;
  readonly config: Config;
  readonly steps: readonly Step[];
  /** Faults by the number of the append they hit, counted from the start of the run. */
  readonly appends?: Readonly<Record<number, AppendFault>>;
};

/** A history in lines for people. */
export function* linesOf(history: History): Generator<string> {
  yield `config ${JSON.stringify(history.config)}${history.remote ? " with remote workers" : ""}`;
  for (const [append, fault] of Object.entries(history.appends ?? {})) yield `append ${append}: ${fault}`;
  for (const step of history.steps) yield lineOf(step);
}

function lineOf(step: Step): string {
  const { do: verb, together, ...rest } = step;
  const words = Object.values(rest).map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value)));
  return `${verb} ${words.join(" ")}${together ? "  (and at once)" : ""}`.trim();
}
