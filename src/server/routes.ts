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
import type { Answered } from "./onlookers.ts";
import { checkTie } from "./own-work.ts";
import type { ServerPhase } from "./phase.ts";
import { forbidden, problemOf } from "./problem.ts";
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
  /** Something that should never happen has; the log should have it. */
  readonly onBug: (error: unknown, request: FastifyRequest) => void;
  readonly onAnswered: (answered: Answered) => void;
};
type AnyHandler = (asked: unknown, exchange: Exchange) => unknown;

const JSON_TYPE = "application/json; charset=utf-8";

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
  const status = Number(Object.keys(call.answers)[0]);
  const isText = !call.produces.includes("application/json");
  const media = isText ? `${call.produces[0]}; version=0.0.4; charset=utf-8` : JSON_TYPE;

  function send(request: FastifyRequest, reply: FastifyReply, answer: unknown): void {
    if (answer === ANSWERED) return;
    const text = isText ? answer : JSON.stringify(answer);
    reply.statusCode = status;
    reply.header("content-type", media);
    reply.send(text);
    tellAnswered(parts, request, status);
  }

  return (request, reply) => {
    const fail = (error: unknown): void => {
      if (error instanceof PollEnded && error.why === "hung-up") return void reply.hijack();
      sendProblem(parts, error, request, reply);
    };
    try {
      const exchange: Exchange = { caller: request.caller as Caller, request, reply };
      const answer = handle(askedBy(call, request), exchange);
      if (answer instanceof Promise) answer.then((value) => send(request, reply, value)).catch(fail);
      else send(request, reply, answer);
    } catch (error) {
      fail(error);
    }
  };
}

/** What was asked, read; throws the first thing that is wrong. */
function askedBy(call: Call, request: FastifyRequest): unknown {
  const params = call.params === null ? undefined : orThrow(readShape(call.params, request.params));
  const query = call.query === null ? undefined : orThrow(readQuery(call.query, request.query as RawQuery));
  if (call.query === null) refuseQuery(request.query as RawQuery);
  return { params, query, body: call.body === null ? undefined : bodyOf(call, request.body) };
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

export type ProblemParts = Pick<RouteParts, "onBug" | "onAnswered">;

export function sendProblem(parts: ProblemParts, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body, retryAfterS, isBug } = problemOf(error);
  if (isBug) parts.onBug(error, request);
  if (retryAfterS !== undefined) reply.header("retry-after", String(retryAfterS));
  if (status === 401) reply.header("www-authenticate", "Bearer");
  reply.code(status).header("content-type", JSON_TYPE).send(JSON.stringify(body));
  tellAnswered(parts, request, status);
}

function tellAnswered({ onAnswered }: ProblemParts, request: FastifyRequest, status: number): void {
  const { method, startedAt, headers } = request;
  const route = request.routeOptions.url ?? "unknown";
  onAnswered({
    ...{ method: METHODS.has(method) ? method : "other", route, status },
    // A request that Fastify refuses by itself has passed no hook.
    ms: startedAt > 0 ? performance.now() - startedAt : 0,
    traceparent: headers.traceparent as string | undefined,
  });
}

/** A label for each of these; whatever else HTTP knows has one together. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
