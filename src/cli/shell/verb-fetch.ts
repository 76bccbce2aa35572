/**
 * `fetch` as far as a client needs it, made with node:http.
 *
 * A verb makes one call and ends. The global `fetch` takes as long to load as all the rest of the verb, and so does
 * `import "node:http"`, which reads every name that module has, and with them what lies behind `WebSocket`. Redirects
 * are never followed: the client asks for them as they are.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { Fetch, Fetched } from "../../client/index.ts";

/** As long as the global `fetch` waits. */
const CONNECT_MS = 10_000;

export const verbFetch: Fetch = (url, { method = "GET", headers, signal, body }) => {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  const options: RequestOptions = { method, headers, signal };
  const request = httpFor(url).request(url, options, (answer) => resolve(fetchedFrom(answer)));
  request.on("error", reject);
  limitConnecting(request);
  request.end(body);
  return promise;
};

const httpFor = (url: string): Pick<typeof import("node:http"), "request"> =>
  url.startsWith("https:") ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");

function limitConnecting(request: ClientRequest): void {
  const late = setTimeout(() => {
    const error = new Error(`no connection within ${CONNECT_MS} ms`);
    request.destroy(Object.assign(error, { code: "CONNECT_TIMEOUT" }));
  }, CONNECT_MS);
  const isOver = (): void => clearTimeout(late);
  request.on("close", isOver);
  request.on("socket", (socket) => {
    if (socket.connecting) socket.once("connect", isOver);
    else isOver();
  });
}

function fetchedFrom(answer: IncomingMessage): Fetched {
  return {
    status: answer.statusCode ?? 0,
    headers: {
      get: (name) => {
        const value = answer.headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    },
    body: answer,
    text: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString("utf8");
    },
  };
}
