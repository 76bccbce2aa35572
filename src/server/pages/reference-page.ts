/**
 * The interactive reference of the API at /docs: Scalar, served whole from its package.
 *
 * Nothing of it comes from the network: the page's own policy forbids it to load or call anything but this server. The
 * package is large, and most servers are never asked for the page, so it is loaded when somebody first asks, into
 * an app of its own that never listens and only renders. Each path is rendered once: everybody gets the same bytes.
 */
import { randomBytes } from "node:crypto";
import Fastify, { type FastifyInstance } from "fastify";

const PREFIX = "/docs";

export type Page = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};
/** Renders what is at a path under /docs. */
export type ReferencePage = (url: string) => Promise<Page>;

export function createReferencePage(): ReferencePage {
  const nonce = randomBytes(16).toString("base64");
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  let rendering: Promise<FastifyInstance> | null = null;
  /** By path; the server has only a few. */
  const rendered = new Map<string, Promise<Page>>();

  async function build(): Promise<FastifyInstance> {
    const { default: scalar } = await import("@scalar/fastify-api-reference");
    const app = Fastify({ logger: false });
    await app.register(scalar, { routePrefix: PREFIX, configuration: configurationWith(nonce) });
    return app;
  }

  async function render(url: string): Promise<Page> {
    rendering ??= build();
    const { statusCode, headers, rawPayload } = await (await rendering).inject({ method: "GET", url });
    const kept = ["content-type", "location"].flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    });
    const isHtml = String(headers["content-type"]).startsWith("text/html");
    return {
      status: statusCode,
      headers: {
        ...(Object.fromEntries(kept) as Record<string, string>),
        ...(isHtml ? { "content-security-policy": policy } : {}),
      },
      body: rawPayload,
    };
  }

  return (url) => {
    const page = rendered.get(url) ?? render(url);
    rendered.set(url, page);
    return page;
  };
}

/** What would call home, or leads away from this server, is off. */
const configurationWith = (nonce: string) => ({
  nonce,
  url: "/openapi.json",
  pageTitle: "Drover: the API",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never" as const,
  mcp: { disabled: true },
  agent: { disabled: true },
});
