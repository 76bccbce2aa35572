/**
 * From the table of calls to routes: who may, what was asked, what is answered.
 *
 * Every call goes the same way. Before its body is read: is the caller known, may it, is this begun at all now. Then
 * path, query and body are read by the protocol's own validator, and past that nothing is unknown. The answer is JSON
 * with the status the table names. No schema is handed to Fastify: it only routes.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import { badField, type Refusal } from "../core/refusal.ts";
import type { Result } from "../core/result.ts";
import { refused } from "../engine/drover-error.ts";
import { CALLS, type Call, type CallName, type RawQuery, readQuery, readShape } from "../protocol/index.ts";
import type { Access, Caller } from "./access.ts";
import type { Exchange, Handlers } from "./handler.ts";
import { PollEnded } from "./long-polls.ts";
import type { Onlookers } from "./onlookers.ts";
import { checkTie } from "./own-work.ts";
import type { ServerPhase } from "./phase.ts";
import { forbidden, problemOf } from "./problem.ts";
import { readBody } from "./request-body.ts";
import { JSON_TYPE, SAFE_HEADERS } from "./safe-headers.ts";
import { ANSWERED } from "./server-handlers.ts";

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller | null;
    startedAt: number;
  }
}

export type RouteParts = {
  readonly handlers: Handlers;
  readonly access: () => Access;
  readonly phase: ServerPhase;
  /** In bytes. */
  readonly bodyLimit: number;
  /** Something that should never happen has; the log should have it. */
  readonly onBug: (error: unknown, request: FastifyRequest) => void;
  /** Who is to hear when a request of a route is answered. */
  readonly answered: Onlookers["answered"];
};
type AnyHandler = (asked: unknown, exchange: Exchange) => unknown;

export function addRoutes(app: FastifyInstance, parts: RouteParts): void {
  app.decorateRequest("caller", null);
  app.decorateRequest("startedAt", 0);
  for (const name of Object.keys(CALLS) as CallName[]) {
    const call = CALLS[name] as unknown as Call;
    app.route({
      method: call.method,
      url: routePath(call.path),
      exposeHeadRoute: call.method === "GET" && !call.waits,
      onRequest: admit(name, call, parts),
      handler: answerBy(call, parts.handlers[name] as unknown as AnyHandler, parts),
    });
  }
}

/** `/tasks/{id}` as Fastify writes it. */
export const routePath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

type Admit = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;
function admit(name: CallName, { roles }: Call, { access, phase }: RouteParts): Admit {
  return (request, _reply, done) => {
    try {
      if (roles !== null) {
        const caller = access()(request.headers.authorization);
        request.caller = caller;
        if (!roles.includes(caller.role))
          throw forbidden(`the role ${caller.role} may not do this; it takes ${roles.join(" or ")}`, { roles });
        checkTie(name, caller);
      }
      phase.check(name);
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}

function answerBy(call: Call, handle: AnyHandler, parts: RouteParts): RouteHandlerMethod {
  const send = senderOf(call, parts);
  const fail = (exchange: Exchange, error: unknown): void => {
    const { request, reply } = exchange;
    parts.phase.end();
    // An onlooker that throws, after the answer has gone out, changes nothing about it.
    if (reply.raw.headersSent) return;
    if (error instanceof PollEnded && error.why === "hung-up") reply.hijack();
    else sendProblem(parts, error, request, reply);
  };

  function answer(exchange: Exchange, body: unknown): void {
    try {
      const answered = handle(askedBy(call, exchange.request, body), exchange);
      if (answered instanceof Promise)
        answered.then(
          (value) => trySend(exchange, value),
          (error: unknown) => fail(exchange, error),
        );
      else trySend(exchange, answered);
    } catch (error) {
      fail(exchange, error);
    }
  }

  function trySend(exchange: Exchange, value: unknown): void {
    try {
      send(exchange, value);
    } catch (error) {
      return fail(exchange, error);
    }
    parts.phase.end();
  }

  return (request, reply) => {
    parts.phase.begin();
    const exchange: Exchange = { caller: request.caller as Caller, request, reply, headers: [] };
    if (call.body === null) return answer(exchange, undefined);
    readBody(request.raw, parts.bodyLimit, (read) => {
      if (read.ok) answer(exchange, read.value);
      else fail(exchange, read.error);
    });
  };
}

/** Sends an answer past the router's own serialising, which would look at it once more. */
function senderOf(call: Call, { answered, phase }: RouteParts): (exchange: Exchange, answer: unknown) => void {
  const status = Number(Object.keys(call.answers)[0]);
  const isText = !call.produces.includes("application/json");
  const media = isText ? `${call.produces[0]}; version=0.0.4; charset=utf-8` : JSON_TYPE;
  const always = [...Object.entries(SAFE_HEADERS).flat(), "content-type", media];
  const tell = answered(call.method, routePath(call.path));
  return ({ request, reply, headers }, answer) => {
    if (answer === ANSWERED) return;
    const text = isText ? (answer as string) : JSON.stringify(answer);
    const { raw } = reply.hijack();
    const own = ["content-length", String(Buffer.byteLength(text)), ...headers];
    raw.writeHead(status, [...always, ...own, ...(phase.isClosing() ? ["connection", "close"] : [])]);
    raw.end(text);
    tell(status, performance.now() - request.startedAt, request.headers.traceparent as string | undefined);
  };
}

/** What was asked, read; throws the first thing that is wrong. */
function askedBy(call: Call, request: FastifyRequest, body: unknown): unknown {
  const params = call.params === null ? undefined : orThrow(readShape(call.params, request.params));
  const query = call.query === null ? undefined : orThrow(readQuery(call.query, request.query as RawQuery));
  if (call.query === null) refuseQuery(request.query as RawQuery);
  return { params, query, body: call.body === null ? undefined : bodyOf(call, body) };
}

function refuseQuery(query: RawQuery): void {
  for (const field in query) throw refused({ type: "unknown-field", field, known: [] });
}

function bodyOf(call: Call, given: unknown): unknown {
  if (given === undefined && call.needsBody)
    throw refused(badField("(body)", undefined, "JSON, with the header Content-Type: application/json"));
  return orThrow(readShape(call.body as NonNullable<Call["body"]>, given === undefined ? {} : given));
}

function orThrow<Value>(read: Result<Value, Refusal>): Value {
  if (!read.ok) throw refused(read.failure);
  return read.value;
}

export type ProblemParts = Pick<RouteParts, "onBug" | "answered">;

export function sendProblem(parts: ProblemParts, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body, retryAfterS, isBug } = problemOf(error);
  if (isBug) parts.onBug(error, request);
  if (retryAfterS !== undefined) reply.header("retry-after", String(retryAfterS));
  if (status === 401) reply.header("www-authenticate", "Bearer");
  reply.headers(SAFE_HEADERS);
  reply.code(status).header("content-type", JSON_TYPE).send(JSON.stringify(body));
  const { method, startedAt, headers } = request;
  const tell = parts.answered(METHODS.has(method) ? method : "other", request.routeOptions.url ?? "unknown");
  // A request that Fastify refuses by itself has passed no hook.
  tell(status, startedAt > 0 ? performance.now() - startedAt : 0, headers.traceparent as string | undefined);
}

/** A label for each of these; whatever else HTTP knows has one together. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
