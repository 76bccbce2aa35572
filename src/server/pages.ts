/**
 * What people open in a browser: the status page and the reference of the API. Both hold no data of their own, so
 * they need no token; what they show they ask for like anybody.
 */
import type { FastifyInstance } from "fastify";
import { createReferencePage } from "./reference-page.ts";
import { SAFE_HEADERS } from "./safe-headers.ts";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "./status-page.ts";

export const PAGE_PATHS: readonly string[] = ["/", "/docs", "/docs/", "/docs/js/scalar.js"];

export function addPages(app: FastifyInstance): void {
  const reference = createReferencePage();
  for (const url of PAGE_PATHS) {
    app.route({
      ...{ method: "GET", url, exposeHeadRoute: true },
      handler: async (_request, reply) => {
        reply.headers(SAFE_HEADERS);
        if (url === "/") {
          const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": STATUS_PAGE_POLICY };
          return reply.headers(headers).send(STATUS_PAGE);
        }
        const { status, headers, body } = await reference(url);
        return reply.code(status).headers(headers).send(body);
      },
    });
  }
}
