/**
 * What people open in a browser: the status page and the reference of the API. Both hold no data of their own, so
 * they need no token; what they show they ask for like anybody.
 */
import type { RequestListener } from "node:http";
import { type RequestCheck, SAFE_HEADERS, type SendParts, sendAnswer, sendProblem } from "../../http/index.ts";
import { REFERENCE_PAGE, REFERENCE_PAGE_POLICY, referenceScript } from "./reference-page.ts";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "./status-page.ts";

type Page = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };

function html(text: string, policy: string): Page {
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
  return { status: 200, headers, body: Buffer.from(text) };
}

/** By path. The bytes of a page are the same for everybody. */
const PAGES: ReadonlyMap<string, Page | (() => Promise<Page>)> = new Map<string, Page | (() => Promise<Page>)>([
  ["/", html(STATUS_PAGE, STATUS_PAGE_POLICY)],
  ["/docs", { status: 301, headers: { location: "/docs/" }, body: Buffer.alloc(0) }],
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
  const page = PAGES.get(route) as Page | (() => Promise<Page>);
  const onAnswered = parts.observerOf("GET", route);
  return async (request, response) => {
    const context = { request, response, route, startedAt: performance.now() };
    try {
      const refusal = parts.checkRequest(request);
      if (refusal !== null) throw refusal;
      const { status, headers, body } = typeof page === "function" ? await page() : page;
      const all = Object.entries({ ...SAFE_HEADERS, ...headers }).flat();
      sendAnswer(parts, context, { status, body, headers: all }, onAnswered);
    } catch (error) {
      sendProblem(parts, context, error);
    }
  };
}
