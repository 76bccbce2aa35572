/**
 * Push workers: the real engine, a clock turned by hand, and instances that live in this process, so that a
 * test says exactly when one answers, hangs, dies and comes back.
 */
import assert from "node:assert/strict";
import { type Drover, openDrover } from "../../src/engine/drover.ts";
import { type Exchange, ExchangeFailure, type OutboundAnswer, type OutboundRequest } from "../../src/http/outbound.ts";
import type { Log } from "../../src/log/log.ts";
import type { PushChange } from "../../src/server/push/driver.ts";
import { createPushDriver, type PushDriver } from "../../src/server/push/drivers.ts";
import { createHandClock, type HandClock } from "../../src/std/hand-clock.ts";

export type Post = {
  readonly request: OutboundRequest;
  answer(status: number, body?: string, headers?: Record<string, string>): void;
  /** The connection ends without an answer. */
  cut(): void;
};
export type Instance = {
  readonly endpoint: string;
  /** There, busy (takes connections and says nothing), or dead (refuses connections, and cuts what was open). */
  be(state: "up" | "busy" | "dead"): void;
  readonly posts: Post[];
  readonly probes: () => number;
};

/** The network: which instance is behind which host. */
export function network(): { exchange: Exchange; instance: (host: string) => Instance } {
  const hosts = new Map<string, (request: OutboundRequest) => Promise<OutboundAnswer>>();
  const exchange: Exchange = (request) => {
    const serve = hosts.get(request.url.host);
    return serve === undefined
      ? Promise.reject(new ExchangeFailure("none", new Error("no such host")))
      : serve(request);
  };
  return { exchange, instance: (host) => createInstance(host, hosts) };
}

function createInstance(
  host: string,
  hosts: Map<string, (request: OutboundRequest) => Promise<OutboundAnswer>>,
): Instance {
  const posts: Post[] = [];
  const open = new Set<() => void>();
  let state: "up" | "busy" | "dead" = "up";
  let probes = 0;
  hosts.set(host, (request) => {
    const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
    if (request.method === "GET") probes++;
    if (state === "dead") reject(new ExchangeFailure("none", new Error("connect ECONNREFUSED")));
    const cut = (): void => reject(new ExchangeFailure("connection", request.signal.reason ?? new Error("cut")));
    request.signal.addEventListener("abort", cut);
    open.add(cut);
    const answer: Post["answer"] = (status, body = "", headers = {}) =>
      resolve({ status, headers, drop: () => {}, read: async () => ({ bytes: Buffer.from(body), isWhole: true }) });
    if (request.method === "POST" && state !== "dead") posts.push({ request, answer, cut });
    if (request.method === "GET" && state === "up") answer(404);
    return promise;
  });
  return {
    endpoint: `http://${host}`,
    posts,
    probes: () => probes,
    be(next) {
      state = next;
      if (next === "dead") for (const cut of open) cut();
    },
  };
}

export type PushWorld = AsyncDisposable &
  Pick<HandClock, "settle"> &
  ReturnType<typeof network> & {
    clock: HandClock;
    drover: Drover;
    driver: PushDriver;
    changes: string[];
    problems: unknown[];
    submit: (id: string, more?: object) => Promise<void>;
    stateOf: (id: string) => Promise<string>;
  };

export async function pushWorld(
  options: { config?: object; at?: number; log?: Log; net?: ReturnType<typeof network> } = {},
): Promise<PushWorld> {
  const { config = {}, at = Date.parse("2026-01-31T12:00:00Z"), net = network() } = options;
  const clock = createHandClock({ at });
  const { settle } = clock;
  const drover = await openDrover({ clock, config, ...(options.log === undefined ? {} : { log: options.log }) });
  const changes: string[] = [];
  const problems: unknown[] = [];
  const driver = createPushDriver({
    ...{ drover, clock, exchange: net.exchange, version: "0.0.0" },
    onChange: ({ workerId, kind }: PushChange) => changes.push(`${workerId} ${kind}`),
    onProblem: (problem) => problems.push(problem),
  });
  const close = async (): Promise<void> => {
    await driver.stop();
    await drover.close();
    assert.deepEqual(problems, []);
  };
  return {
    ...{ drover, driver, clock, settle, changes, problems, ...net, [Symbol.asyncDispose]: close },
    async submit(id, more = {}) {
      await drover.submit({ id, agentId: "ann", action: "click", ...more });
      await settle();
    },
    stateOf: async (id) => (await drover.task(id)).state,
  };
}
