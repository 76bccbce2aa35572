/**
 * Those who look on while the server works: its log, its metrics, its spans. Nothing here changes what is answered.
 */

import type { Logger } from "pino";
import type { Drover } from "../../engine/index.ts";

import type { WebhookOutcome } from "../webhooks/dispatcher.ts";
import { createLifecycleLog } from "./event-log.ts";
import { createMetrics, type MetricsParts } from "./metrics.ts";
import type { Spans } from "./spans.ts";

/** A request that was answered; `route` is the pattern, never the path itself. */
export type Answered = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  /** The caller's own span, if it sent one. */
  readonly traceparent: string | undefined;
};
/** Hears that one request of a route was answered. */
export type TellAnswered = (status: number, ms: number, traceparent: string | undefined) => void;
export type TurnedAway = { readonly taskId: string; readonly agentId: string; readonly code: string };
export type Onlookers = {
  metrics(): Promise<string>;
  answered(method: string, route: string): TellAnswered;
  onWebhook(outcome: WebhookOutcome): void;
  onTurnedAway(task: TurnedAway): void;
  stop(): Promise<void>;
};

export function createOnlookers(
  parts: MetricsParts & { readonly logger: Logger; readonly spans: Spans | null; readonly drover: Drover },
): Onlookers {
  const { drover, logger, spans } = parts;
  const metrics = createMetrics(parts);
  const lines = createLifecycleLog(logger, drover.state);
  const stopHearing = drover.watch((batch, commit) => {
    metrics.onCommitted(batch, commit);
    lines.onCommitted(batch);
    spans?.onCommitted(batch);
  });
  void drover.failed.then(lines.onFailed);
  return {
    metrics: metrics.text,
    answered(method, route) {
      const add = metrics.answers.of(method, route);
      if (spans === null) return add;
      return (status, ms, traceparent) => {
        add(status, ms);
        spans.onAnswered({ method, route, status, ms, traceparent });
      };
    },
    onWebhook(outcome) {
      metrics.onWebhook(outcome);
      lines.onWebhook(outcome);
    },
    onTurnedAway(task) {
      metrics.onRejected();
      lines.onRejected(task);
    },
    async stop() {
      stopHearing();
      await spans?.stop();
    },
  };
}
