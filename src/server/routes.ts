/**
 * Which request is which call or page, and what is said of a path that does not exist.
 *
 * The router finds a route and does nothing else: what happens on the way of a request is in answer-call.ts.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import findMyWay from "find-my-way";
import { WORD_PATH } from "../engine/node/index.ts";
import { createRequestTurns, type PipelineLimits, ServerRefusal, sendProblem } from "../http/index.ts";
import { CALL_LIST, CALLS, type Call, type CallName, type RawQuery } from "../protocol/index.ts";
import { answerCall, type CallParts, routePath } from "./answer-call.ts";
import { answerWord } from "./cluster/node-word.ts";
import { answerReplica, REPLICA_PATHS } from "./handlers/replica.ts";
import { answerPage, PAGE_PATHS } from "./pages/pages.ts";

const PARAM_LENGTH_MAX = 4096;
const BAD_ESCAPE = "the path holds a % that is not followed by two hex digits of UTF-8";
const TOO_LONG = `a part of the path is longer than ${PARAM_LENGTH_MAX} characters`;
const METHODS = ["POST", "GET", "HEAD", "PUT", "PATCH", "DELETE"] as const;
/** What the router finds with a route, and not with a path that it cannot read. */
const ROUTE: unique symbol = Symbol("route");

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
    refuse(request, response, parts.checkRequest(request) ?? new ServerRefusal("bad_request", message));
  const router = findMyWay({
    maxParamLength: PARAM_LENGTH_MAX,
    onBadUrl: unreadable(BAD_ESCAPE),
    onMaxParamLength: unreadable(TOO_LONG),
    defaultRoute(request, response) {
      const { url = "", method = "" } = request;
      const refusal = parts.checkRequest(request);
      if (refusal !== null) return refuse(request, response, refusal);
      const [path = ""] = url.split("?");
      const fault = faultOf(path);
      if (fault !== null) return refuse(request, response, new ServerRefusal("bad_request", fault));
      const allowed = METHODS.filter((one) => {
        const found = router.find(one, path);
        return found?.store === ROUTE && !Object.values(found.params).includes("");
      });
      if (allowed.length === 0) return refuse(request, response, unknownPath(path));
      // The header says which there are, as HTTP has it.
      refuse(request, response, otherMethod(path, method, allowed), ["allow", allowed.join(", ")]);
    },
  });
  for (const name of Object.keys(CALLS) as CallName[]) {
    const { method, path, waits } = CALLS[name] as unknown as Call;
    const answer = answerCall(name, parts);
    router.on(
      method === "GET" && !waits ? ["GET", "HEAD"] : method,
      routePath(path),
      (request, response, params, _store, query) => answer(request, response, { params, query: query as RawQuery }),
      ROUTE,
    );
  }
  const replica = answerReplica(parts);
  for (const path of REPLICA_PATHS) router.on("GET", path, replica(path), ROUTE);
  router.on("GET", WORD_PATH, answerWord(parts), ROUTE);
  for (const path of PAGE_PATHS) router.on(["GET", "HEAD"], path, answerPage(path, parts), ROUTE);
  const inTurn = createRequestTurns(limits, (request, response, why) =>
    refuse(request, response, why, ["connection", "close"]),
  );
  return (request, response) => inTurn(request, response, () => router.lookup(request, response));
}

/** What keeps a path from being read, whatever the method. */
function faultOf(path: string): string | null {
  if (path.split("/").some((part) => part.length > PARAM_LENGTH_MAX)) return TOO_LONG;
  try {
    decodeURIComponent(path);
    return null;
  } catch {
    return BAD_ESCAPE;
  }
}

const SHOWN_MAX = 200;

function unknownPath(path: string): ServerRefusal {
  const shown = path.slice(0, SHOWN_MAX);
  const paths = [...new Set([...PAGE_PATHS, ...CALL_LIST.map((call) => call.path)])];
  const text = `nothing is at ${shown}; /openapi.json describes what there is`;
  return new ServerRefusal("not_found", text, { path: shown, paths });
}

function otherMethod(path: string, method: string, methods: readonly string[]): ServerRefusal {
  const shown = path.slice(0, SHOWN_MAX);
  const text = `${shown} takes ${methods.join(", ")}, not ${method}`;
  return new ServerRefusal("method_not_allowed", text, { path: shown, methods });
}
