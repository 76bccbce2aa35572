/**
 * What happens to tasks, workers and the config, as lines of a log: ids and numbers, never what a task holds.
 *
 * Lines follow events that are durable. A name, a number or an id is written; a payload, a prompt, a result, a URL or
 * the text of an error is not, since any of them may hold a secret; why a webhook failed is said in words that hold no
 * more than its host and address. What happens to every task on its way (submitted, given to a worker) is for `debug`,
 * and costs nothing while that level is off.
 */
import type { Logger } from "pino";
import type { Event, State } from "../../core/model/index.ts";
import type { Applied, DroverError } from "../../engine/writer/index.ts";
import type { WebhookOutcome } from "../webhooks/dispatcher.ts";

type Facts = Readonly<Record<string, string | number | boolean | null | undefined>>;
type Line = { readonly level: "debug" | "info" | "warn"; readonly message: string; readonly facts: Facts };

const REASON_SHOWN_MAX = 200;

export type LifecycleLog = {
  onCommitted(batch: readonly Applied[]): void;
  onWebhook(outcome: WebhookOutcome): void;
  onRejected(rejected: { readonly taskId: string; readonly agentId: string; readonly code: string }): void;
  onFailed(error: DroverError): void;
};

export function createLifecycleLog(logger: Logger, state: State): LifecycleLog {
  return {
    onCommitted(batch) {
      if (!logger.isLevelEnabled("info")) return;
      const isDetailed = logger.isLevelEnabled("debug");
      for (const { event, seq } of batch) {
        const line = lineOf(event, state, isDetailed);
        if (line !== null) logger[line.level]({ seq, ...line.facts }, line.message);
      }
    },
    onWebhook({ kind, taskId, deliveryId, event, host, attempt, ms, status, reason, restMs }) {
      const level = kind === "delivered" ? "info" : "warn";
      const why = reason?.slice(0, REASON_SHOWN_MAX);
      logger[level]({ taskId, deliveryId, event, host, attempt, ms, status, reason: why, restMs }, `webhook ${kind}`);
    },
    onRejected: (rejected) => logger.info(rejected, "task rejected"),
    onFailed: ({ code }) => logger.fatal({ code }, "the engine has failed; nothing is accepted any more"),
  };
}

/** Null for what is no event of anybody's life, or too much of a detail now. */
function lineOf(event: Event, state: State, isDetailed: boolean): Line | null {
  switch (event.kind) {
    case "task-submitted":
    case "task-assigned":
    case "attempt-started":
    case "attempt-stopping":
      return isDetailed ? onTheWay(event, state) : null;
    case "task-done":
    case "task-failed":
    case "task-cancelled":
    case "task-skipped":
    case "task-retried":
    case "attempt-failed":
    case "attempt-lost":
      return ofEnd(event, state);
    case "worker-joined":
      return line("info", "worker joined", { worker: event.worker, kind: event.workerKind, slots: event.slots });
    case "worker-left":
      return line(event.lost ? "warn" : "info", event.lost ? "worker lost" : "worker left", { worker: event.worker });
    case "config-changed":
      return line("info", "config changed", { isPatched: event.patch !== null });
    case "pause-changed":
      return line("info", event.paused ? "paused" : "resumed", { scope: event.scope, id: event.id });
    case "gate-throttled":
      return line("warn", "gate throttled", { gate: event.gate, retryAfterMs: event.retryAfterMs });
    default:
      return ofService(event);
  }
}

const line = (level: Line["level"], message: string, facts: Facts): Line => ({ level, message, facts });

type OnTheWay = Extract<Event, { kind: "task-submitted" | "task-assigned" | "attempt-started" | "attempt-stopping" }>;
function onTheWay(event: OnTheWay, state: State): Line {
  const taskId = event.task;
  switch (event.kind) {
    case "task-submitted":
      return line("debug", "task submitted", {
        taskId,
        project: event.project,
        agentId: event.agent,
        type: event.type,
      });
    case "task-assigned": {
      const since = state.tasks.get(event.task)?.runnableAt ?? -1;
      const waitMs = since < 0 || since > event.at ? undefined : event.at - since;
      return line("debug", "task dispatched", { taskId, attempt: event.attempt, worker: event.worker, waitMs });
    }
    case "attempt-started":
      return line("debug", "attempt started", { taskId, attempt: event.attempt });
    case "attempt-stopping":
      return line("debug", "attempt is to stop", { taskId, attempt: event.attempt, cause: event.cause });
    default:
      return event satisfies never;
  }
}

const END_WORDS = {
  "task-done": ["info", "task done"],
  "task-failed": ["warn", "task failed"],
  "task-cancelled": ["info", "task cancelled"],
  "task-skipped": ["info", "task skipped"],
  "task-retried": ["info", "task runs again"],
  "attempt-failed": ["info", "attempt failed, the task runs again"],
  "attempt-lost": ["warn", "attempt lost, the task runs again"],
} as const satisfies Partial<Record<Event["kind"], readonly [Line["level"], string]>>;
type EndKind = keyof typeof END_WORDS;

function ofEnd(event: Extract<Event, { kind: EndKind }>, state: State): Line {
  const [level, message] = END_WORDS[event.kind];
  const task = state.tasks.get(event.task);
  const runMs = task === undefined || task.startedAt < 0 ? undefined : Math.max(0, event.at - task.startedAt);
  return line(level, message, {
    taskId: event.task,
    ...(task === undefined ? {} : { project: task.project.id, agentId: task.agent.id }),
    ...("attempt" in event ? { attempt: event.attempt } : {}),
    ...("tokens" in event && event.tokens !== null ? { tokens: event.tokens } : {}),
    ...("expired" in event && event.expired ? { expired: true } : {}),
    ...("cause" in event && typeof event.cause === "string" ? { cause: event.cause } : {}),
    ...(runMs === undefined ? {} : { runMs }),
  });
}

function ofService(event: Event): Line | null {
  switch (event.kind) {
    case "gate-opened":
      return line("info", "gate opened", { gate: event.gate });
    case "gate-reset":
      return line("info", "gate reset", { gate: event.gate });
    case "gate-removed":
      return line("info", "gate removed", { gate: event.gate });
    case "project-put":
      return line("info", "project changed", { project: event.project, weight: event.settings.weight });
    case "schedule-put":
      return line("info", "schedule changed", { schedule: event.schedule });
    case "schedule-removed":
      return line("info", "schedule removed", { schedule: event.schedule });
    default:
      return null;
  }
}
