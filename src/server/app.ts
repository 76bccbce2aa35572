/**
 * The HTTP server, put together: the door, the routes, the limits, and how it says no.
 *
 * Fastify routes and nothing else: it reads, validates, serialises and logs nothing, so that what happens on
 * the way of a request is in this folder. Every limit on a connection is set here, so that one that is slow, half
 * open or greedy costs little and ends.
 */
import type { Socket } from "node:net";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { WireCode } from "../protocol/index.ts";
import type { CallParts } from "./answer-call.ts";
import type { Door } from "./door.ts";
import { createKnock } from "./knock.ts";
import { addPages } from "./pages.ts";
import { addRoutes } from "./routes.ts";
import { sendProblem } from "./send-answer.ts";
import { unknownPath } from "./unknown-path.ts";

export type ConnectionLimits = {
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
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.lookMs,
      keepAlive: true,
      keepAliveInitialDelay: limits.keepAliveMs,
    },
    clientErrorHandler: refuseUnreadable,
    frameworkErrors: (error, request, reply) => refuse(error, request, reply),
  });
  app.server.maxConnections = limits.connectionsMax;
  // The router hands a request on before its body is read; request-body.ts reads it where a call takes one.
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const refusal = knock(request.headers);
    if (refusal !== null) return refuse(refusal, request, reply);
    const { error, headers } = unknownPath(request.raw);
    refuse(error, request, reply, headers);
  });
  addRoutes(app, own);
  addPages(app, own);
  return app;
}

type Unreadable = Error & { readonly code?: string; readonly rawPacket?: unknown };
type Answer = { readonly status: string; readonly code: WireCode; readonly error: string; readonly allow?: string };

/** What is not HTTP at all, or too slow, or too long: no route will ever see it. */
function refuseUnreadable(error: Unreadable, socket: Socket): void {
  if (socket.destroyed || !socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const answer = UNREADABLE[error.code ?? ""] ?? otherMethod(error) ?? NOT_HTTP;
  const { status, allow, code, error: text } = answer;
  const body = JSON.stringify({ error: text, code });
  const head = [`HTTP/1.1 ${status}`, "content-type: application/json; charset=utf-8", "connection: close"];
  if (allow !== undefined) head.push(`allow: ${allow}`);
  socket.end(`${head.join("\r\n")}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

const unreadable = (status: string, error: string): Answer => ({ status, code: "bad_request", error });
const NOT_HTTP = unreadable("400 Bad Request", "this is not HTTP/1.1");
const UNREADABLE: Readonly<Record<string, Answer>> = {
  ERR_HTTP_REQUEST_TIMEOUT: unreadable("408 Request Timeout", "the request took too long to arrive"),
  HPE_HEADER_OVERFLOW: unreadable("431 Request Header Fields Too Large", "the headers are too long"),
};

const METHODS = "DELETE, GET, HEAD, PATCH, POST, PUT";
/** A request in good order but for a method that Node does not know. */
const REQUEST_LINE = /^([!-~]{1,40}) \S+ HTTP\/1\.[01]\r?\n/;

function otherMethod({ code, rawPacket }: Unreadable): Answer | null {
  if (code !== "HPE_INVALID_METHOD" || !Buffer.isBuffer(rawPacket)) return null;
  const [, method] = REQUEST_LINE.exec(rawPacket.toString("latin1")) ?? [];
  if (method === undefined) return null;
  const error = `${method} is no method that this server takes; it takes ${METHODS}`;
  return { status: "405 Method Not Allowed", code: "method_not_allowed", error, allow: METHODS };
}
