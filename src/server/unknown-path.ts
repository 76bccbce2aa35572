/**
 * What is said of a path that does not exist, or that exists with another method: both name what there is.
 */

import type { IncomingMessage } from "node:http";
import { ServerRefusal } from "../http/index.ts";

import { CALL_LIST } from "../protocol/index.ts";
import { PAGE_PATHS } from "./pages/pages.ts";

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

type Unknown = { readonly error: ServerRefusal; readonly headers: readonly string[] };

/** The refusal; where only the method is wrong, a header also says which there are, as HTTP has it. */
export function unknownPath({ url = "", method = "" }: IncomingMessage): Unknown {
  const path = url.split("?")[0] ?? "";
  const allowed = KNOWN.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
  const shown = path.slice(0, 200);
  if (allowed.length === 0) {
    const paths = KNOWN.map((known) => known.path);
    const text = `nothing is at ${shown}; /openapi.json describes what there is`;
    return { error: new ServerRefusal("not_found", text, { details: { path: shown, paths } }), headers: [] };
  }
  const methods = [...new Set(allowed)];
  const allow = methods.join(", ");
  const text = `${shown} takes ${allow}, not ${method}`;
  const error = new ServerRefusal("method_not_allowed", text, { details: { path: shown, methods } });
  return { error, headers: ["allow", allow] };
}
