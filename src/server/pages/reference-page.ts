/**
 * The interactive reference of the API at /docs: Scalar, served whole from its package.
 *
 * Nothing of it comes from the network: the page's own policy forbids it to load or call anything but this server. The
 * script is large, and most servers are never asked for it, so it is loaded when somebody first asks. It comes from
 * Scalar's plug-in for Fastify, because the package it is built in installs 270 others with it; the plug-in is handed
 * a stand-in for an app, and of what it would serve only the script is taken.
 */
import { createHash } from "node:crypto";

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

export const REFERENCE_PAGE: string = `<!doctype html>
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

export const REFERENCE_PAGE_POLICY: string = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash("sha256").update(START).digest("base64")}'`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

type Route = { readonly url: string; handler(request: unknown, reply: Reply): unknown };
type Reply = { header(): Reply; send(text: string): void };
type Plugin = (app: { route(route: Route): void }, options: object, done: () => void) => void;

let script: Promise<Buffer> | null = null;

export function referenceScript(): Promise<Buffer> {
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
