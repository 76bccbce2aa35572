/**
 * Those who look on while the server works: its log, its metrics, its spans. Nothing here changes what is answered.
 */
import type { Logger } from "pino";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import type { OnAnswered } from "../../http/index.ts";
import type { Clock } from "../../std/index.ts";
import type { WebhookOutcome } from "../webhooks/dispatcher.ts";
import { createLifecycleLog, roleLines, type TurnedAway } from "./event-log.ts";
import { createHistory, type HistoryStore } from "./history.ts";
import { createMetrics, type MetricsParts } from "./metrics.ts";
import type { Spans } from "./spans.ts";

export type Observers = {
  readonly history: HistoryStore;
  metrics(): Promise<string>;
  observerOf(method: string, route: string): OnAnswered;
  onWebhook(outcome: WebhookOutcome): void;
  onTurnedAway(task: TurnedAway): void;
  stop(): Promise<void>;
};

export function createObservers(
  parts: MetricsParts & {
    readonly node?: DroverNode;
    readonly logger: Logger;
    readonly spans: Spans | null;
    readonly drover: Drover;
    readonly clock: Clock;
    /** Where samples are kept over restarts. */
    readonly historyFile?: string | undefined;
  },
): Observers {
  const { drover, node, logger, spans, clock } = parts;
  const onWarning = (message: string): void => logger.warn(message);
  const history = createHistory({ drover, clock, file: parts.historyFile, onWarning });
  const metrics = createMetrics(parts);
  const lines = createLifecycleLog(logger);
  const stopHearing = drover.watch((batch, commit) => {
    metrics.onCommitted(batch, commit);
    history.onCommitted(batch);
    lines.onCommitted(batch);
    spans?.onCommitted(batch);
  });
  const stopRoles = node?.onLife(roleLines(logger, node));
  void drover.failed.then(lines.onFailed);
  return {
    history,
    metrics: metrics.text,
    observerOf(method, route) {
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
      stopRoles?.();
      await history.stop();
      await spans?.stop();
    },
  };
}
