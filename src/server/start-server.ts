/**
 * The service: a Drover behind HTTP, from the first connection to the last.
 *
 *     const server = await startServer({ drover, settings });
 *     console.log(server.url);
 *     await server.close();
 *
 * The engine is closed with the server (shutdown.ts), since no call could reach it any more.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as rest } from "node:timers/promises";
import { type Logger, pino } from "pino";
import type { Drover } from "../engine/index.ts";
import type { DroverNode, ReplicaSource } from "../engine/node/index.ts";
import {
  type Access,
  CONNECTION_LIMITS,
  type ConnectionLimits,
  createAccess,
  createListener,
  createLongPolls,
  createOriginCheck,
  createRequestCheck,
  createStreams,
  createUnfinishedBodies,
  createUnreadAnswers,
  type Grant,
  type Listener,
  type OriginCheck,
  type PipelineLimits,
  type StreamLimits,
} from "../http/index.ts";
import type { Settings } from "../protocol/index.ts";
import { type Clock, isLoopback, realClock, versionText } from "../std/index.ts";
import { attemptGrant, knownTokens, nodeGrant, StartRefusal } from "./access/tokens.ts";
import { type BulkParts, bulkHandler } from "./bulk.ts";
import { createBulkOrder } from "./bulk-order.ts";
import { type Acting, type ActingDeps, createActing } from "./cluster/acting.ts";
import type { ForwardLimits } from "./cluster/forward-room.ts";
import { createPosition } from "./cluster/position.ts";
import { type ClusterSide, startClusterSide } from "./cluster/side.ts";
import { clusterHandlers } from "./handlers/cluster.ts";
import { fileHandlers } from "./handlers/files.ts";
import { fleetHandlers } from "./handlers/fleet.ts";
import { groupHandlers } from "./handlers/groups.ts";
import type { Deps, Handlers, LogsOf } from "./handlers/handler.ts";
import { planHandlers } from "./handlers/plans.ts";
import { schedulerHandlers, serverHandlers } from "./handlers/server.ts";
import { taskHandlers } from "./handlers/tasks.ts";
import { watchHandlers } from "./handlers/watching.ts";
import { createKeptAnswers } from "./kept-answers.ts";
import { type Listening, listen } from "./life/listening.ts";
import { createPhase, type ServerPhase } from "./life/phase.ts";
import { type Ending, shutDown } from "./life/shutdown.ts";
import { createLogRequests } from "./logs/log-requests.ts";
import { createObservers, type Observers } from "./observe/observers.ts";
import { createSpans, type Spans } from "./observe/spans.ts";
import { problemOf } from "./problem.ts";
import { createPushDriver } from "./push/drivers.ts";
import { createRoutes } from "./routes.ts";
import { waitAnyHandler } from "./wait-any.ts";
import { startWebhooks, type WebhookOptions } from "./webhooks/dispatcher.ts";

type ServerLimits = ConnectionLimits &
  PipelineLimits &
  StreamLimits &
  ForwardLimits & {
    /** A caller that takes nothing of its answer for so long is gone. */
    readonly silenceMs: number;
    readonly pollsMax: number;
    /** Of answers that their callers do not take. */
    readonly unreadBytesMax: number;
    /** Of bodies that have not arrived in full. */
    readonly bodyBytesMax: number;
  };
const LIMITS: ServerLimits = {
  ...CONNECTION_LIMITS,
  pipelinedMax: 100,
  pipelinedInAllMax: 5000,
  silenceMs: 120_000,
  pollsMax: 15_000,
  streamsMax: 1000,
  heartbeatMs: 15_000,
  stallMs: 30_000,
  unreadBytesMax: 16 * 1024 * 1024,
  bodyBytesMax: 64 * 1024 * 1024,
  forwardsMax: 10_000,
  forwardBytesMax: 64 * 1024 * 1024,
};

export type ServerOptions = {
  /** Of a node of a cluster: its `drover`. */
  readonly drover: Drover;
  /** The node of a cluster that is served; absent: the server has its engine for itself. */
  readonly node?: DroverNode;
  readonly settings: Settings;
  /** Whether a node is to look if it is at the address that it tells the others, and warn if not. */
  readonly checksAddress?: boolean;
  /** What others may read of the log as it is stored; absent: nothing. */
  readonly replica?: ReplicaSource | null;
  /** Absent: nothing is logged. */
  readonly logger?: Logger;
  readonly logsOf?: LogsOf;
  /** Reads the config file again and gives it to the engine; what it throws is answered as what is wrong with it. */
  readonly onReload?: () => Promise<unknown>;
  /** Every knob of the config, who set it, and no secret; absent: a program gave the config, and it is not told. */
  readonly settingViews?: Deps["settingViews"];
  /** Where to listen, if not where the settings say. */
  readonly host?: string;
  readonly limits?: Partial<ServerLimits>;
  readonly clock?: Clock;
  /** Where the samples of the last hours are kept; absent: they are gone with the process. */
  readonly historyFile?: string | undefined;
};
export type Server = AsyncDisposable & {
  /** This start of a server: no other has the same. */
  readonly id: string;
  readonly url: string;
  readonly port: number;
  readonly address: string;
  readonly listener: Listener;
  /** New settings: tokens, hosts, origins and webhooks hold from now on; where it listens does not change. */
  change(settings: Settings): void;
  /** The same in two steps: throws if they cannot hold, and else answers what puts them in force. */
  prepare(settings: Settings): () => void;
  /** Ends in good order, and the engine with it. May be called twice. `graceMs`: else server.shutdownGrace. */
  close(options?: { readonly graceMs?: number }): Promise<void>;
};

export async function startServer(options: ServerOptions): Promise<Server> {
  const { drover, settings, logger = pino({ enabled: false }), clock = realClock } = options;
  const host = options.host ?? settings.server.host;
  checkHost(host, settings);
  const { node } = options;
  const [ofAttempt, ofNode] = [attemptGrant(drover), node === undefined ? () => null : nodeGrant(node)];
  const live = liveSettings(settings, { host, advertised: node?.url }, (token) => ofNode(token) ?? ofAttempt(token));
  const version = versionText();
  const onWarning = (message: string): void => logger.warn(message);
  const isWanted = settings.server.telemetry;
  const spans = await createSpans({ isWanted, version, onWarning });
  const parts = partsOf({ ...options, logger, clock }, spans, version, live);
  const { id, listener, acting, cluster, observers, listening, phase, polls, streams } = parts;
  try {
    Object.assign(listening, await listen(listener, host, settings.server.port));
    await acting.begin();
    if (options.checksAddress === true) cluster?.checkAddress(listening.url);
  } catch (error) {
    // A server that could not start must leave nothing behind that listens, delivers or keeps the process.
    await cluster?.stop();
    await Promise.all([listener.close(), acting.webhooks.stop(), acting.push.stop(), observers.stop()]);
    throw error;
  }
  logger.info({ url: listening.url, version }, "the server is up");
  let closing: Promise<void> | null = null;
  function close({ graceMs = live.now().settings.server.shutdownGrace } = {}): Promise<void> {
    const { node } = options;
    const ending: Ending = {
      listener,
      drover,
      node,
      phase,
      polls,
      streams,
      acting,
      cluster,
      clock,
      graceMs,
    };
    closing ??= end(ending, observers, logger);
    return closing;
  }
  function prepare(next: Settings): () => void {
    const putInForce = live.prepare(next);
    return () => {
      putInForce();
      acting.webhooks.change(next.webhooks);
    };
  }
  const change = (next: Settings): void => prepare(next)();
  return { ...listening, id, listener, change, prepare, close, [Symbol.asyncDispose]: () => close() };
}

async function end(ending: Ending, observers: Observers, logger: Logger): Promise<void> {
  logger.info({ graceMs: ending.graceMs }, "the server stops");
  try {
    await shutDown(ending);
  } finally {
    await observers.stop();
  }
  logger.info({ seq: ending.drover.state.seq }, "the server has stopped");
}

type Running = Omit<Ending, "drover" | "node" | "cluster" | "clock" | "graceMs"> & {
  readonly id: string;
  readonly cluster: ClusterSide | null;
  readonly observers: Observers;
  readonly listening: Listening;
};

/** Everything the server consists of, not listening yet. */
function partsOf(
  options: ServerOptions & { readonly logger: Logger; readonly clock: Clock },
  spans: Spans | null,
  version: string,
  live: LiveSettings,
): Running {
  const { drover, node, settings, logger, clock, settingViews = () => [] } = options;
  const limits: ServerLimits = { ...LIMITS, ...options.limits };
  const phase = createPhase(clock.elapsed);
  void drover.failed.then((error) => phase.fail(error));
  const onProblem = (error: unknown): void => logger.error({ err: error }, "something went wrong");
  const polls = createLongPolls({ max: limits.pollsMax });
  const unread = createUnreadAnswers(limits);
  const streams = createStreams({ limits, clock, unread, onProblem });
  const standing = { webhooksDue: () => acting.webhooks.due(), streams: streams.count, polls: polls.count };
  const observers = createObservers({ ...options, spans, ...standing });
  const { onWebhook: onOutcome, onTurnedAway } = observers;
  const start = actorsOf({ version, onOutcome, onProblem }, logger);
  const acting: Acting = createActing({ drover, node, settings: settings.webhooks, onProblem, start });
  const onWarning = (line: string): void => logger.warn(line);
  const cluster = node === undefined ? null : startClusterSide({ node, drover, clock, limits, onWarning });
  const listening: Listening = { url: "", port: 0, address: "" };
  const deps: Deps = {
    drover,
    ...inThisLife(options),
    serverId: randomUUID(),
    phase,
    polls,
    push: acting.push,
    version,
    onTurnedAway,
    settingViews,
    settings: () => live.now().settings,
    logsOf: options.logsOf ?? (() => null),
    logs: createLogRequests({ drover, clock, bodyLimit: settings.server.bodyLimit }),
    onReload: options.onReload ?? (async () => {}),
    onRejected: (task) => acting.webhooks.rejected(task),
    url: () => listening.url,
  };
  const routes = createRoutes(
    {
      handlers: handlersOf(deps, node, streams, observers, { onBug: bugsTo(logger), clock }),
      ...sendingOf(phase, observers, logger),
      phase,
      position: createPosition({ drover, node, polls, clock }),
      kept: createKeptAnswers({ elapsed: clock.elapsed, committedSeq: drover.committedSeq }),
      cluster,
      replica: options.replica ?? null,
      unread,
      silenceMs: limits.silenceMs,
      access: () => live.now().access,
      checkRequest: createRequestCheck(() => live.now().originCheck),
      bodyLimit: settings.server.bodyLimit,
      bodies: createUnfinishedBodies(limits),
    },
    limits,
  );
  const listener = createListener(limits, routes);
  return { id: deps.serverId, listener, phase, polls, streams, acting, cluster, observers, listening };
}

const inThisLife = ({ node, drover }: ServerOptions): Pick<Deps, "early" | "hearsWorkers"> => ({
  early: () => (node?.life().drover ?? drover).early,
  hearsWorkers: () => node === undefined || node.life().role === "leader",
});

const actorsOf =
  (shared: Pick<WebhookOptions, "version" | "onOutcome" | "onProblem">, logger: Logger): ActingDeps["start"] =>
  (drover, settings) => ({
    webhooks: startWebhooks({ drover, settings, ...shared }),
    push: createPushDriver({
      drover,
      ...shared,
      onChange: ({ workerId, kind }) => logger.info({ workerId }, `push worker ${kind}`),
    }),
  });

const sendingOf = ({ isClosing }: ServerPhase, { observerOf }: Observers, logger: Logger) => ({
  isClosing,
  problemOf,
  observerOf,
  onBug: bugsTo(logger),
});

const bugsTo =
  (logger: Logger): BulkParts["onBug"] =>
  (error, route) =>
    logger.error({ err: error, route }, "a bug");

function handlersOf(
  deps: Deps,
  node: DroverNode | undefined,
  streams: Ending["streams"],
  { metrics, history }: Observers,
  { onBug, clock }: Pick<BulkParts, "onBug"> & { readonly clock: Clock },
): Handlers {
  const handlers = {
    ...taskHandlers(deps),
    ...groupHandlers(deps),
    ...planHandlers(deps),
    ...fileHandlers(deps),
    ...fleetHandlers(deps),
    ...schedulerHandlers(deps),
    ...clusterHandlers(node),
    ...serverHandlers(deps, { streams, metrics, node }),
    ...watchHandlers(deps, { streams, clock, history, node }),
  };
  return {
    ...handlers,
    ...bulkHandler({
      onBug,
      elapsed: clock.stopwatch ?? clock.elapsed,
      order: createBulkOrder(clock),
      load: () => deps.drover.state,
      rest,
      handlers,
      phase: deps.phase,
      problemOf,
    }),
    ...waitAnyHandler(deps, { problemOf, onBug, rest }),
  };
}

function checkHost(host: string, settings: Settings): void {
  const refusal = hostRefusal(host, settings);
  if (refusal !== null) throw new StartRefusal("bad_settings", refusal);
}

/** Why no server may listen there with these settings, or null; also for a check of a config alone. */
export function hostRefusal(host: string, { server }: Settings): string | null {
  if (server.tokens.length > 0 || isLoopback(host)) return null;
  return (
    `server.host is ${host}, which others can reach, and server.tokens is empty: anybody could run tasks here. ` +
    "Add a token to server.tokens, or listen on 127.0.0.1."
  );
}

/** What follows from the settings, and may change while the server runs. */
type InForce = { readonly settings: Settings; readonly access: Access; readonly originCheck: OriginCheck };
type LiveSettings = { now(): InForce; prepare(settings: Settings): () => void };

type Called = { readonly host: string; readonly advertised: (() => string) | undefined };

function liveSettings(first: Settings, called: Called, grant: Grant): LiveSettings {
  const read = (settings: Settings): InForce => ({
    settings,
    access: createAccess(knownTokens(settings.server.tokens), grant),
    originCheck: createOriginCheck({ ...settings.server, ...called }),
  });
  let inForce = read(first);
  return {
    now: () => inForce,
    prepare(settings) {
      checkHost(called.host, settings);
      const next = read(settings);
      return () => {
        inForce = next;
      };
    },
  };
}
