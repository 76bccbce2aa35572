/**
 * Which request is which call or page, and what is said of a path that does not exist.
 *
 * The router finds a route and does nothing else: what happens on the way of a request is in answer-call.ts.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import findMyWay from "find-my-way";
import { createRequestTurns, type PipelineLimits, ServerRefusal, sendProblem } from "../http/index.ts";
import { CALLS, type Call, type CallName, type RawQuery } from "../protocol/index.ts";
import { answerCall, type CallParts, routePath } from "./answer-call.ts";
import { answerPage, PAGE_PATHS } from "./pages/pages.ts";
import { unknownPath } from "./unknown-path.ts";

const PARAM_LENGTH_MAX = 4096;

export function createRoutes(parts: CallParts, limits: PipelineLimits): RequestListener {
  function refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: ServerRefusal,
    headers: readonly string[] = [],
  ): void {
    const context = { request, response, route: "unknown", startedAt: performance.now() };
    sendProblem(parts, context, error, headers);
  }
  const unreadable = (message: string) => (_path: string, request: IncomingMessage, response: ServerResponse) =>
    refuse(request, response, new ServerRefusal("bad_request", message));
  const router = findMyWay({
    maxParamLength: PARAM_LENGTH_MAX,
    onBadUrl: unreadable("the path holds a % that is not followed by two hex digits of UTF-8"),
    onMaxParamLength: unreadable(`a part of the path is longer than ${PARAM_LENGTH_MAX} characters`),
    defaultRoute(request, response) {
      const refusal = parts.checkRequest(request);
      if (refusal !== null) return refuse(request, response, refusal);
      const { error, headers } = unknownPath(request);
      refuse(request, response, error, headers);
    },
  });
  for (const name of Object.keys(CALLS) as CallName[]) {
    const { method, path, waits } = CALLS[name] as unknown as Call;
    const answer = answerCall(name, parts);
    router.on(
      method === "GET" && !waits ? ["GET", "HEAD"] : method,
      routePath(path),
      (request, response, params, _store, query) => answer(request, response, { params, query: query as RawQuery }),
    );
  }
  for (const path of PAGE_PATHS) router.on(["GET", "HEAD"], path, answerPage(path, parts));
  const inTurn = createRequestTurns(limits, (request, response, why) =>
    refuse(request, response, why, ["connection", "close"]),
  );
  return (request, response) => inTurn(request, response, () => router.lookup(request, response));
}
