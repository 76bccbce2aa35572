/**
 * What is said of a path that does not exist, or that exists with another method: both name what there is.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { CALL_LIST } from "../protocol/index.ts";
import { PAGE_PATHS } from "./pages.ts";
import { ServerRefusal } from "./problem.ts";

type Known = { readonly path: string; readonly pattern: RegExp; readonly methods: readonly string[] };

function knownPaths(): readonly Known[] {
  const methods = new Map<string, string[]>(PAGE_PATHS.map((path) => [path, ["GET", "HEAD"]]));
  for (const { path, method, waits } of CALL_LIST) {
    const more = method === "GET" && !waits ? ["GET", "HEAD"] : [method];
    methods.set(path, [...(methods.get(path) ?? []), ...more]);
  }
  return [...methods].map(([path, all]) => ({
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    methods: all,
  }));
}

const KNOWN = knownPaths();

/** The refusal; where only the method is wrong, the answer also says which there are, as HTTP has it. */
export function unknownPath(request: FastifyRequest, reply: FastifyReply): ServerRefusal {
  const path = request.url.split("?")[0] ?? "";
  const allowed = KNOWN.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
  const shown = path.slice(0, 200);
  if (allowed.length === 0) {
    const paths = KNOWN.map((known) => known.path);
    return new ServerRefusal("not_found", `nothing is at ${shown}; /openapi.json describes what there is`, {
      details: { path: shown, paths },
    });
  }
  const methods = [...new Set(allowed)];
  reply.header("allow", methods.join(", "));
  return new ServerRefusal("method_not_allowed", `${shown} takes ${methods.join(", ")}, not ${request.method}`, {
    details: { path: shown, methods },
  });
}
