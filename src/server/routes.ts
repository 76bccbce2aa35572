/**
 * From the table of calls to routes: which request is which call.
 *
 * Fastify routes and nothing else: no schema and no hook is handed to it. A path without a parameter, asked for without
 * a query, needs no router at all: it is looked up as it stands, and goes the same way a few microseconds sooner.
 */

import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { FastifyInstance } from "fastify";
import { createRequestTurns, type InTurn, type PipelineLimits, sendProblem } from "../http/index.ts";

import { CALLS, type Call, type CallName, type RawQuery } from "../protocol/index.ts";
import { type AnswerCall, answerCall, type CallParts, type Place, routePath } from "./answer-call.ts";

const NOTHING: Place = { params: {}, query: {} };

export function addRoutes(app: FastifyInstance, parts: CallParts, limits: PipelineLimits): void {
  const straight = new Map<string, Map<string, AnswerCall>>();
  for (const name of Object.keys(CALLS) as CallName[]) {
    const { method, path, waits, params } = CALLS[name] as unknown as Call;
    const answer = answerCall(name, parts);
    app.route({
      method,
      url: routePath(path),
      exposeHeadRoute: method === "GET" && !waits,
      handler({ raw, params, query }, reply) {
        answer(raw, reply.hijack().raw, { params, query: query as RawQuery });
      },
    });
    if (params !== null) continue;
    const methods = straight.get(path) ?? new Map<string, AnswerCall>();
    straight.set(path, methods.set(method, answer));
  }
  const inTurn = createRequestTurns(limits, (request, response, why) =>
    sendProblem(parts, { request, response, route: "unknown", startedAt: performance.now() }, why, [
      "connection",
      "close",
    ]),
  );
  goStraight(app.server, inTurn, ({ url = "", method = "" }) => straight.get(url)?.get(method));
}

/**
 * Takes the router's place and leaves it what was not found. The router would also take a server that was made here,
 * but then it listens on one address of `localhost` only.
 */
function goStraight(server: Server, inTurn: InTurn, find: (request: IncomingMessage) => AnswerCall | undefined): void {
  const [route] = server.listeners("request") as RequestListener[];
  if (route === undefined) throw new Error("the router does not listen to its server");
  server.off("request", route);
  server.on("request", (request, response) => {
    inTurn(request, response, () => {
      const answer = find(request);
      if (answer === undefined) route(request, response);
      else answer(request, response, NOTHING);
    });
  });
}
