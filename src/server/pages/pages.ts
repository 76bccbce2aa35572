/**
 * What people open in a browser: the web page and the reference of the API. Both hold no data of their own, so they
 * need no token; what they show they ask for like anybody.
 *
 * The reference at /docs is Scalar, served whole from its package; nothing of it comes from the network. The script is
 * large, and most servers are never asked for it, so it is loaded when somebody first asks. It comes from Scalar's
 * plug-in for Fastify, because the package it is built in installs 270 others with it; the plug-in is handed a stand-in
 * for an app, and of what it would serve only the script is taken.
 */
import type { RequestListener } from "node:http";
import {
  type RequestCheck,
  SAFE_HEADERS,
  type SendParts,
  ServerRefusal,
  sendAnswer,
  sendProblem,
} from "../../http/index.ts";
import { PAGE_ROOT, type PageFile, pageFile } from "./page-files.ts";
import { hashOf, policyOf } from "./policy.ts";

/** What would call home, or leads away from this server, is off. */
const CONFIGURATION = {
  url: "/openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  mcp: { disabled: true },
  agent: { disabled: true },
};
const START = `Scalar.createApiReference("#app", ${JSON.stringify(CONFIGURATION)})`;

const REFERENCE_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Drover: the API</title>
</head>
<body>
<div id="app"></div>
<script src="js/scalar.js"></script>
<script>${START}</script>
</body>
</html>
`;

const REFERENCE_PAGE_POLICY = policyOf(
  `script-src 'self' ${hashOf(START)}`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "worker-src 'self' blob:",
);

type Route = { readonly url: string; handler(request: unknown, reply: Reply): unknown };
type Reply = { header(): Reply; send(text: string): void };
type Plugin = (app: { route(route: Route): void }, options: object, done: () => void) => void;

let script: Promise<Buffer> | null = null;

function referenceScript(): Promise<Buffer> {
  script ??= loadScript();
  return script;
}

async function loadScript(): Promise<Buffer> {
  const { default: plugin } = await import("@scalar/fastify-api-reference");
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const reply: Reply = { header: () => reply, send: (text) => resolve(Buffer.from(text)) };
  const app = { route: ({ url, handler }: Route) => void (url.endsWith(".js") && handler({}, reply)) };
  (plugin as unknown as Plugin)(app, { configuration: CONFIGURATION }, () => {});
  return promise;
}

/** A page, or what makes it, by the path below the route. */
type Page = PageFile | ((path: string) => Promise<PageFile | null>);

function html(text: string, policy: string): PageFile {
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
  return { status: 200, headers, body: Buffer.from(text) };
}

/** For good, or until the page is somewhere else. */
function redirect(location: string): PageFile {
  return { status: location === PAGE_ROOT ? 302 : 301, headers: { location }, body: Buffer.alloc(0) };
}

const PLACES_OF_PAGE: Page = (path) => pageFile(path.slice(PAGE_ROOT.length));

/** A road that forks: browsers ask for it by themselves. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M8 15V9L3 2M8 9l5-7" fill="none" ' +
  'stroke="#396" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/></svg>';

/** By path. The bytes of a page are the same for everybody. */
const PAGES: ReadonlyMap<string, Page> = new Map<string, Page>([
  ["/", redirect(PAGE_ROOT)],
  ["/ui", redirect(PAGE_ROOT)],
  ["/ui/*", PLACES_OF_PAGE],
  ["/favicon.ico", { status: 200, headers: { "content-type": "image/svg+xml" }, body: Buffer.from(ICON) }],
  ["/docs", redirect("/docs/")],
  ["/docs/", html(REFERENCE_PAGE, REFERENCE_PAGE_POLICY)],
  [
    "/docs/js/scalar.js",
    async () => {
      const headers = { "content-type": "application/javascript; charset=utf-8" };
      return { status: 200, headers, body: await referenceScript() };
    },
  ],
]);
export const PAGE_PATHS: readonly string[] = [...PAGES.keys()];

export function answerPage(route: string, parts: SendParts & { readonly checkRequest: RequestCheck }): RequestListener {
  const page = PAGES.get(route) as Page;
  const onAnswered = parts.observerOf("GET", route);
  return async (request, response) => {
    const context = { request, response, route, startedAt: performance.now() };
    try {
      const refusal = parts.checkRequest(request);
      if (refusal !== null) throw refusal;
      const [path = ""] = (request.url ?? "").split("?");
      const found = typeof page === "function" ? await page(path) : page;
      if (found === null) throw new ServerRefusal("not_found", `nothing is at ${path.slice(0, SHOWN_MAX)}`);
      const { status, headers, body, packed } = found;
      const isPacked = packed !== undefined && takesGzip(request.headers["accept-encoding"]);
      const coded = isPacked ? { "content-encoding": "gzip" } : {};
      const all = Object.entries({ ...SAFE_HEADERS, ...headers, ...coded }).flat();
      sendAnswer(parts, context, { status, body: isPacked ? packed : body, headers: all }, onAnswered);
    } catch (error) {
      sendProblem(parts, context, error);
    }
  };
}

const SHOWN_MAX = 200;

/** Whether a caller names gzip, or says that it takes anything, and not with a weight of nothing. */
export function takesGzip(accepted: string | string[] | undefined): boolean {
  const weights = new Map<string, number>();
  for (const coding of String(accepted ?? "").split(",")) {
    const [name = "", ...more] = coding.split(";").map((part) => part.trim().toLowerCase());
    weights.set(name, Number(more.find((part) => part.startsWith("q="))?.slice(2) ?? 1));
  }
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}
