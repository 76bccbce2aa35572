/**
 * What happens to tasks, workers and the config, as lines of a log: ids and numbers, never what a task holds.
 *
 * Lines follow events that are durable. A name, a number or an id is written; a payload, a prompt, a result, a URL or
 * the text of an error is not, since any of them may hold a secret; why a webhook failed is said in words that hold no
 * more than its host and address. What happens to every task that goes well (submitted, given to a worker, done) is for
 * `debug`, and costs nothing while that level is off.
 */
import type { Logger } from "pino";
import type { Event } from "../../core/model/index.ts";
import type { DroverError } from "../../engine/base/index.ts";
import type { DroverNode, NodeLife } from "../../engine/node/index.ts";
import type { Applied } from "../../engine/writer/index.ts";
import type { WebhookOutcome } from "../webhooks/dispatcher.ts";

type Facts = Readonly<Record<string, string | number | boolean | null | undefined>>;
type Line = { readonly level: "debug" | "info" | "warn"; readonly message: string; readonly facts: Facts };

const REASON_SHOWN_MAX = 200;

export type TurnedAway = { readonly taskId: string; readonly agentId: string; readonly code: string };
type LifecycleLog = {
  onCommitted(batch: readonly Applied[]): void;
  onWebhook(outcome: WebhookOutcome): void;
  onRejected(rejected: TurnedAway): void;
  onFailed(error: DroverError): void;
};

export function createLifecycleLog(logger: Logger): LifecycleLog {
  return {
    onCommitted(batch) {
      if (!logger.isLevelEnabled("info")) return;
      const isDetailed = logger.isLevelEnabled("debug");
      for (const { event, seq, task } of batch) {
        if (!isDetailed && DETAILS.has(event.kind)) continue;
        const line = (LINES[event.kind] as LineOf<Event> | undefined)?.(event, task);
        if (line !== undefined) logger[line.level]({ seq, ...line.facts }, line.message);
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

/**
 * What a node says of its own role. The event that names the leader is written before its life is there to be watched,
 * so only the others hear it.
 */
export function roleLines(
  logger: Logger,
  { id, url, applied }: Pick<DroverNode, "id" | "url" | "applied">,
): (life: Pick<NodeLife, "role">) => void {
  let hasLed = false;
  return ({ role }) => {
    const leads = role === "leader";
    const { epoch } = applied();
    if (leads) logger.info({ node: id, url: url(), epoch }, "node leads");
    else if (hasLed) logger.info({ node: id, epoch }, "node follows");
    hasLed = leads;
  };
}

type LineOf<One extends Event> = (event: One, task: Applied["task"]) => Line;
const line = (level: Line["level"], message: string, facts: Facts): Line => ({ level, message, facts });

type EndKind =
  | ("task-done" | "task-failed" | "task-cancelled" | "task-skipped" | "task-retried")
  | ("attempt-failed" | "attempt-lost" | "attempt-done" | "round-ended");
const ofEnd =
  (level: Line["level"], message: string): LineOf<Extract<Event, { kind: EndKind }>> =>
  (event, task) => {
    const runMs = task === null || task.startedAt < 0 ? undefined : Math.max(0, event.at - task.startedAt);
    return line(level, message, {
      taskId: event.task,
      ...(task === null ? {} : { project: task.project.id, agentId: task.agent.id }),
      ...("attempt" in event ? { attempt: event.attempt } : {}),
      ...("tokens" in event && event.tokens !== null ? { tokens: event.tokens } : {}),
      ...("expired" in event && event.expired ? { expired: true } : {}),
      ...("cause" in event && typeof event.cause === "string" ? { cause: event.cause } : {}),
      ...(runMs === undefined ? {} : { runMs }),
    });
  };

type Lost = Extract<Event, { kind: "attempt-lost" }>;
const lost = ofEnd("warn", "attempt lost, the task runs again");
const gaveBack = ofEnd("info", "worker gave the task back, it runs again");
/** What a worker hands back on purpose is no loss: nobody needs to be warned of it. */
const LOSSES: Readonly<Record<Lost["cause"], LineOf<Lost>>> = {
  "not-begun": ofEnd("debug", "attempt given back before it began"),
  requeue: gaveBack,
  "rate-limited": gaveBack,
  "worker-lost": lost,
  "worker-left": lost,
  budget: lost,
};

/** What is no event of anybody's life has no line. */
const LINES: { readonly [Kind in Event["kind"]]?: LineOf<Extract<Event, { kind: Kind }>> } = {
  "task-submitted": ({ task: taskId, project, agent: agentId, type }) =>
    line("debug", "task submitted", { taskId, project, agentId, type }),
  "task-assigned": ({ task: taskId, attempt, worker, at }, task) => {
    const since = task?.runnableAt ?? -1;
    const waitMs = since < 0 || since > at ? undefined : at - since;
    return line("debug", "task dispatched", { taskId, attempt, worker, waitMs });
  },
  "attempt-started": ({ task: taskId, attempt }) => line("debug", "attempt started", { taskId, attempt }),
  "attempt-stopping": ({ task: taskId, attempt, cause }) =>
    line("debug", "attempt is to stop", { taskId, attempt, cause }),
  "task-done": ofEnd("debug", "task done"),
  "task-failed": ofEnd("warn", "task failed"),
  "task-cancelled": ofEnd("info", "task cancelled"),
  "task-skipped": ofEnd("info", "task skipped"),
  "task-retried": ofEnd("info", "task runs again"),
  "attempt-failed": ofEnd("info", "attempt failed, the task runs again"),
  "attempt-lost": (event, task) => LOSSES[event.cause](event, task),
  "attempt-done": ofEnd("info", "attempt done, the task waits for its children"),
  "task-parked": ({ task: taskId, attempt, until }) => line("info", "task parked", { taskId, attempt, until }),
  "task-approved": ({ task: taskId }) => line("info", "task approved", { taskId }),
  "round-ended": ofEnd("info", "round ended, the task runs again"),
  "worker-joined": ({ worker, workerKind: kind, slots }) => line("info", "worker joined", { worker, kind, slots }),
  "worker-left": ({ worker, lost }) => line(lost ? "warn" : "info", lost ? "worker lost" : "worker left", { worker }),
  "node-joined": ({ node, url, leads }) => line("info", leads ? "node leads" : "node joined", { node, url }),
  "config-changed": ({ patch }) => line("info", "config changed", { isPatched: patch !== null }),
  "pause-changed": ({ paused, scope, id }) => line("info", paused ? "paused" : "resumed", { scope, id }),
  "gate-throttled": ({ gate, retryAfterMs }) => line("warn", "gate throttled", { gate, retryAfterMs }),
  "gate-opened": ({ gate }) => line("info", "gate opened", { gate }),
  "gate-reset": ({ gate }) => line("info", "gate reset", { gate }),
  "gate-removed": ({ gate }) => line("info", "gate removed", { gate }),
  "project-put": ({ project, settings }) => line("info", "project changed", { project, weight: settings.weight }),
  "schedule-put": ({ schedule }) => line("info", "schedule changed", { schedule }),
  "schedule-removed": ({ schedule }) => line("info", "schedule removed", { schedule }),
};
const DETAILS: ReadonlySet<string> = new Set([
  "task-submitted",
  "task-assigned",
  "attempt-started",
  "attempt-stopping",
  "task-done",
]);
