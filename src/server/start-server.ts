/**
 * The service: a Drover behind HTTP, from the first connection to the last.
 *
 *     const server = await startServer({ drover, settings });
 *     console.log(server.url);
 *     await server.close();
 *
 * Shutting down goes in the order in which nothing is lost: nothing new is begun, workers hear that they are to take
 * nothing more, what runs has a grace to end, readers are sent away, and then the engine closes; what has not ended is
 * in the log, for the next server. The engine is closed with the server, since whoever goes on using it would answer
 * nobody.
 */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Logger, pino } from "pino";
import type { Drover } from "../engine/drover.ts";
import type { Settings } from "../protocol/index.ts";
import { createAccess } from "./access.ts";
import { buildApp, CONNECTION_LIMITS, type ConnectionLimits } from "./app.ts";
import { createDoor, isLoopback } from "./door.ts";
import { createEventStreams, type StreamLimits } from "./event-stream.ts";
import { fleetHandlers } from "./fleet-handlers.ts";
import type { Deps, Handlers, LogsOf } from "./handler.ts";
import { createLongPolls } from "./long-polls.ts";
import { createPhase } from "./phase.ts";
import { schedulerHandlers } from "./scheduler-handlers.ts";
import { serverHandlers } from "./server-handlers.ts";
import { shutDown } from "./shutdown.ts";
import { taskHandlers } from "./task-handlers.ts";
import { realTimers, type Timers } from "./timers.ts";
import { versionText } from "./version.ts";
import { startWebhooks } from "./webhook-dispatcher.ts";

export type ServerLimits = ConnectionLimits & StreamLimits & { readonly pollsMax: number };
const LIMITS: ServerLimits = {
  ...CONNECTION_LIMITS,
  pollsMax: 15_000,
  streamsMax: 1000,
  heartbeatMs: 15_000,
  stallMs: 30_000,
};

export type ServerOptions = {
  readonly drover: Drover;
  readonly settings: Settings;
  /** Absent: nothing is logged. */
  readonly logger?: Logger;
  readonly logsOf?: LogsOf;
  /** Reads the config file again and gives it to the engine; what it throws is answered as what is wrong with it. */
  readonly onReload?: () => Promise<unknown>;
  /** Where to listen, if not where the settings say. */
  readonly host?: string;
  readonly limits?: Partial<ServerLimits>;
  readonly timers?: Timers;
};
export type Server = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly address: string;
  readonly app: FastifyInstance;
  /** New settings: tokens, hosts, origins and webhooks hold from now on; where it listens does not change. */
  change(settings: Settings): void;
  /** Ends in good order, and the engine with it. May be called twice. */
  close(): Promise<void>;
};

export async function startServer(options: ServerOptions): Promise<Server> {
  const { drover, logger = pino({ enabled: false }), timers = realTimers } = options;
  const limits: ServerLimits = { ...LIMITS, ...options.limits };
  const host = options.host ?? options.settings.server.host;
  checkHost(host, options.settings);
  const live = liveSettings(options.settings, host);
  const phase = createPhase(timers.now);
  const polls = createLongPolls({ max: limits.pollsMax });
  const version = versionText();
  void drover.failed.then((error) => {
    phase.fail(error);
    logger.fatal({ code: error.code }, "the engine has failed; nothing is accepted any more");
  });
  const onProblem = (error: unknown): void => logger.error({ err: error }, "something went wrong");
  const webhooks = startWebhooks({ drover, settings: options.settings.webhooks, version, onProblem });
  const streams = createEventStreams({ drover, limits, timers, onProblem });
  const listening = { url: "", port: 0, address: host };
  const deps: Deps = {
    ...{ drover, phase, polls, version },
    settings: () => live.settings(),
    logsOf: options.logsOf ?? (() => null),
    onReload: options.onReload ?? (async () => {}),
    onRejected: (task) => webhooks.rejected(task),
    url: () => listening.url,
  };
  const handlers: Handlers = {
    ...taskHandlers(deps),
    ...fleetHandlers(deps),
    ...schedulerHandlers(deps),
    ...serverHandlers(deps, { streams, metrics: async () => "" }),
  };
  const app = buildApp({
    ...{ handlers, phase, limits },
    access: () => live.access(),
    door: () => live.door(),
    bodyLimit: options.settings.server.bodyLimit,
    isClosing: () => phase.isClosing(),
    onBug: (error, request) => logger.error({ err: error, route: request.routeOptions.url }, "a bug"),
  });
  Object.assign(listening, await listen(app, host, options.settings.server.port));
  let closing: Promise<void> | null = null;
  function close(): Promise<void> {
    const { shutdownGrace } = live.settings().server;
    closing ??= shutDown({ app, drover, phase, polls, streams, webhooks, timers, graceMs: shutdownGrace });
    return closing;
  }
  function change(settings: Settings): void {
    live.change(settings);
    webhooks.change(settings.webhooks);
  }
  return { ...listening, app, change, close, [Symbol.asyncDispose]: close };
}

function checkHost(host: string, { server }: Settings): void {
  if (server.tokens.length > 0 || isLoopback(host)) return;
  throw new Error(
    `server.host is ${host}, which others can reach, and server.tokens is empty: anybody could run tasks here. ` +
      "Add a token to server.tokens, or listen on 127.0.0.1.",
  );
}

/** What follows from the settings and may change while the server runs. */
function liveSettings(first: Settings, host: string) {
  const of = (settings: Settings) => ({
    settings,
    access: createAccess(settings.server.tokens),
    door: createDoor({ ...settings.server, host }),
  });
  let now = of(first);
  return {
    settings: () => now.settings,
    access: () => now.access,
    door: () => now.door,
    change(settings: Settings): void {
      checkHost(host, settings);
      now = of(settings);
    },
  };
}

type Listening = { readonly url: string; readonly port: number; readonly address: string };
async function listen(app: FastifyInstance, host: string, port: number): Promise<Listening> {
  try {
    await app.listen({ host, port, listenTextResolver: () => "" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE")
      throw new Error(`port ${port} of ${host} is taken; stop what listens there, or choose another server.port`);
    if (code === "EADDRNOTAVAIL") throw new Error(`${host} is not an address of this machine; see server.host`);
    throw error;
  }
  const bound = app.server.address() as AddressInfo;
  return { url: urlOf(bound), port: bound.port, address: bound.address };
}

/** Under which this machine reaches it. */
function urlOf({ address, family, port }: AddressInfo): string {
  const reached = address === "0.0.0.0" || address === "::" ? "127.0.0.1" : address;
  return `http://${family === "IPv6" && reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}
