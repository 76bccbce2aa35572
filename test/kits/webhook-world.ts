/**
 * Webhooks: an engine that is only its callbacks, receivers the test answers for, a clock turned by hand.
 */

import assert from "node:assert/strict";
import { ExchangeFailure, type OutboundRequest } from "../../src/http/outbound.ts";
import type { WebhookSettings } from "../../src/protocol/index.ts";
import type { Snapshot } from "../../src/server/webhooks/delivery.ts";
import {
  startWebhooks,
  type WebhookEngine,
  type WebhookOptions,
  type WebhookOutcome,
  type Webhooks,
} from "../../src/server/webhooks/dispatcher.ts";
import type { DueEnd } from "../../src/server/webhooks/due-queue.ts";
import { createHandClock, type HandClock } from "../../src/std/hand-clock.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");
export const SETTINGS: WebhookSettings = {
  ...{ timeout: 10_000, attempts: 8, concurrency: 16, allowPrivate: true, secret: null },
};
type Settled = [seq: number, outcome: { ok: boolean; status?: number; attempts: number }];

/** An engine that is only its callbacks: what is due, and what was settled. */
export function fakeEngine() {
  const due = new Map<number, DueEnd>();
  const tasks = new Map<string, Snapshot>();
  const listeners = new Set<() => void>();
  const settled: Settled[] = [];
  const reads: string[] = [];
  let seq = 0;
  const engine: WebhookEngine = {
    callbacks: {
      async snapshot(at) {
        const { taskId = "", state = "" } = due.get(at) ?? {};
        reads.push(taskId);
        const task = tasks.get(taskId);
        return task === undefined ? null : { ...task, state };
      },
      pending: () => due.values(),
      onDue(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      async settle(at, outcome) {
        due.delete(at);
        settled.push([at, outcome]);
      },
    },
  };
  function end(taskId: string, more: Partial<Snapshot> = {}): number {
    const state = more.state ?? "done";
    tasks.set(taskId, { taskId, callbackUrl: "http://hook.example/", ...more, state });
    const { callbackUrl = "http://hook.example/", project = "" } = more;
    due.set(++seq, { taskId, seq, state, project, host: new URL(callbackUrl).host });
    for (const listener of listeners) listener();
    return seq;
  }
  return { engine, due, tasks, settled, reads, end };
}

type Call = { request: OutboundRequest; answer: (status: number, headers?: Record<string, string>) => void } & {
  cut: () => void;
};

/** A world in which every request waits until the test answers it. */
function receivers() {
  const calls: Call[] = [];
  const exchange: NonNullable<WebhookOptions["exchange"]> = (request) => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof exchange>>>();
    const read = async () => ({ bytes: Buffer.alloc(0), isWhole: true });
    const answer: Call["answer"] = (status, headers = {}) => resolve({ status, headers, read, drop: () => {} });
    const cut = (): void => reject(new ExchangeFailure("connection", request.signal.reason ?? new Error("cut")));
    request.signal.addEventListener("abort", cut);
    calls.push({ request, answer, cut });
    return promise;
  };
  return { calls, exchange };
}

export type Kit = ReturnType<typeof fakeEngine> &
  Pick<HandClock, "settle"> & {
    clock: HandClock;
    webhooks: Webhooks;
    calls: Call[];
    outcomes: WebhookOutcome[];
    problems: unknown[];
  };

export async function start(
  options: Partial<Omit<WebhookOptions, "settings">> & {
    readonly settings?: Partial<WebhookSettings>;
    readonly fake?: ReturnType<typeof fakeEngine>;
  } = {},
): Promise<Kit> {
  const fake = options.fake ?? fakeEngine();
  const clock = createHandClock({ at: NOW });
  const { settle } = clock;
  const { calls, exchange } = receivers();
  const outcomes: WebhookOutcome[] = [];
  const problems: unknown[] = [];
  const webhooks = startWebhooks({
    ...{ drover: fake.engine, clock, exchange, version: "0", resolve: async () => [{ address: "1.2.3.4", family: 4 }] },
    onOutcome: (outcome) => outcomes.push(outcome),
    onProblem: (problem) => problems.push(problem),
    ...options,
    settings: { ...SETTINGS, ...options.settings },
  });
  await settle();
  return { ...fake, clock, settle, webhooks, calls, outcomes, problems };
}

export const sent = ({ calls }: Pick<Kit, "calls">): string[] =>
  calls.map(({ request }) => `${request.headers["X-Drover-Delivery"]} ${request.headers["X-Drover-Event"]}`);
export const kinds = ({ outcomes }: Kit): string[] => outcomes.map(({ kind }) => kind);
export const nth = <Item>(list: readonly Item[], index: number): Item => {
  const item = list.at(index);
  assert.ok(item !== undefined, `nothing at ${index}`);
  return item;
};
