/**
 * What people open in a browser: the status page and the reference of the API. Both hold no data of their own, so
 * they need no token; what they show they ask for like anybody.
 */

import type { FastifyInstance } from "fastify";
import { type Knock, SAFE_HEADERS, type SendParts, sendAnswer, sendProblem } from "../../http/index.ts";

import { createReferencePage, type Page } from "./reference-page.ts";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "./status-page.ts";

export const PAGE_PATHS: readonly string[] = ["/", "/docs", "/docs/", "/docs/js/scalar.js"];

const STATUS: Page = {
  status: 200,
  headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": STATUS_PAGE_POLICY },
  body: Buffer.from(STATUS_PAGE),
};

export function addPages(app: FastifyInstance, parts: SendParts & { readonly knock: Knock }): void {
  const reference = createReferencePage();
  for (const url of PAGE_PATHS) {
    const tell = parts.answered("GET", url);
    app.route({
      method: "GET",
      url,
      exposeHeadRoute: true,
      async handler(request, reply) {
        const asker = { request: request.raw, response: reply.hijack().raw, route: url, startedAt: performance.now() };
        try {
          const refusal = parts.knock(request.raw);
          if (refusal !== null) throw refusal;
          const { status, headers, body } = url === "/" ? STATUS : await reference(url);
          const all = Object.entries({ ...SAFE_HEADERS, ...headers }).flat();
          sendAnswer(parts, asker, { status, body, headers: all }, tell);
        } catch (error) {
          sendProblem(parts, asker, error);
        }
      },
    });
  }
}
