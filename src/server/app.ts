/**
 * The HTTP server, put together: the door, the routes, the limits, and how it says no.
 *
 * Fastify routes and nothing else: it reads, validates, serialises and logs nothing, so that what happens on
 * the way of a request is in this folder. Every limit on a connection is set here, so that one that is slow, half
 * open or greedy costs little and ends.
 */

import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import {
  createKnock,
  type Door,
  type PipelineLimits,
  refuseTunnel,
  refuseUnreadable,
  sendProblem,
} from "../http/index.ts";

import type { CallParts } from "./answer-call.ts";
import { addPages } from "./pages/pages.ts";
import { addRoutes } from "./routes.ts";
import { unknownPath } from "./unknown-path.ts";

export type ConnectionLimits = PipelineLimits & {
  readonly connectionsMax: number;
  readonly requestsPerConnectionMax: number;
  readonly headerBytesMax: number;
  /** For the head of a request, and for the whole of it. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Between two requests of one connection. */
  readonly keepAliveMs: number;
  /** A caller that takes nothing of its answer for so long is gone. */
  readonly silenceMs: number;
  /** How often connections are looked at. */
  readonly lookMs: number;
};

export const CONNECTION_LIMITS: ConnectionLimits = {
  connectionsMax: 20_000,
  requestsPerConnectionMax: 1_000_000,
  pipelinedMax: 100,
  pipelinedInAllMax: 5000,
  headerBytesMax: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 65_000,
  silenceMs: 120_000,
  lookMs: 1000,
};

const PARAM_LENGTH_MAX = 4096;
export type AppParts = Omit<CallParts, "knock" | "silenceMs"> & {
  readonly door: () => Door;
  readonly limits: ConnectionLimits;
};

export function buildApp(parts: AppParts): FastifyInstance {
  const { limits } = parts;
  const knock = createKnock(parts.door);
  const own: CallParts = { ...parts, knock, silenceMs: limits.silenceMs };
  function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, more?: readonly string[]): void {
    const { url: route = "unknown" } = request.routeOptions;
    const asker = { request: request.raw, response: reply.hijack().raw, route, startedAt: performance.now() };
    sendProblem(own, asker, error, more);
  }
  const app = Fastify({
    logger: false,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    forceCloseConnections: false,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    keepAliveTimeout: limits.keepAliveMs,
    requestTimeout: limits.requestMs,
    maxRequestsPerSocket: limits.requestsPerConnectionMax,
    http: {
      maxHeaderSize: limits.headerBytesMax,
      // The door asks for it, in our words.
      requireHostHeader: false,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.lookMs,
      keepAlive: true,
      keepAliveInitialDelay: limits.keepAliveMs,
    },
    clientErrorHandler: refuseUnreadable,
    frameworkErrors: (error, request, reply) => refuse(error, request, reply),
  });
  app.server.maxConnections = limits.connectionsMax;
  // It goes the way of every request, and is refused there.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  app.server.on("connect", (_request, socket) => refuseTunnel(socket));
  // The router hands a request on before its body is read; http/request-body.ts reads it where a call takes one.
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const refusal = knock(request.raw);
    if (refusal !== null) return refuse(refusal, request, reply);
    const { error, headers } = unknownPath(request.raw);
    refuse(error, request, reply, headers);
  });
  addRoutes(app, own, limits);
  addPages(app, own);
  return app;
}
