/**
 * `fetch` as far as a client needs it: connections are kept and shared, and a request takes less than half of the time
 * that the global `fetch` spends on it. What is read whole goes as plain text (lean-http.ts), all else by node:http.
 * Redirects are never followed: the client asks for them as they are. A program that has put a `fetch` of its own in
 * the place of the global one, or has told it to go through a proxy, is served by that one; one that has told node:http
 * so, by node:http.
 */
import type http from "node:http";
import type { IncomingMessage } from "node:http";
import type { Fetch, Fetched } from "./fetch.ts";
import { createLeanHttp, leanText, limitConnecting } from "./lean-http.ts";

/** What stands in the source of the `fetch` of Node itself, and hardly in that of another. */
const NODES_OWN = "internal/deps/undici";
/** Under which the global `fetch` finds what carries its requests; absent until it has been used. */
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");

/** Looked up at each call, so that a program may put its own in the place of the global one at any time. */
export const usualFetch: Fetch = (url, request) => (isUsual() ? httpFetch : globalThis.fetch)(url, request);

function isUsual(): boolean {
  const carrier = (globalThis as { readonly [DISPATCHER]?: object })[DISPATCHER];
  return isNodesOwn(globalThis.fetch) && (carrier === undefined || carrier.constructor.name === "Agent");
}

/** By its source: a program may have put another in its place before this was loaded, or may put it back. */
function isNodesOwn(given: typeof fetch): boolean {
  if (given !== looked) {
    looked = given;
    isOwn = typeof given === "function" && Function.prototype.toString.call(given).includes(NODES_OWN);
  }
  return isOwn;
}
let looked: typeof fetch | undefined;
let isOwn = false;

const httpFetch: Fetch = (url, { method = "GET", headers, signal, body, isWhole }) => {
  if (signal.aborted) return Promise.reject(signal.reason);
  const { origin, path } = placeOf(url);
  const server = serverAt(origin);
  const { module, protocol, hostname, port } = server;
  if (isWhole === true && typeof body !== "object" && isPlain(server)) {
    const text = leanText(server, { method, path, headers, body });
    if (text !== null) return leanHttp(server, text, signal);
  }
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  const request = module.request({ protocol, hostname, port, path, method, headers });
  request.on("response", (answer) => resolve(fetchedFrom(answer)));
  // What node:http does with a signal of its own takes a tenth of the time of a request.
  const giveUp = (): void => void request.destroy(signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  request.on("error", reject).on("close", () => signal.removeEventListener("abort", giveUp));
  request.on("socket", (socket) => limitConnecting(socket, (error) => void request.destroy(error)));
  if (typeof body !== "object") request.end(body);
  else process.getBuiltinModule("node:stream").pipeline(body, request, () => {});
  return promise;
};

const leanHttp = createLeanHttp(process.getBuiltinModule("node:net").connect);
/** As node:http was when this was loaded, with the first call; a program may have changed it before. */
const { request: ownRequest, globalAgent: ownAgent } = process.getBuiltinModule("node:http");
const onRequest = process.getBuiltinModule("node:diagnostics_channel").channel("http.client.request.start");

/** No TLS, and the program has neither changed node:http nor listens to it, as far as that can be seen. */
function isPlain({ protocol, module }: Server): boolean {
  if (protocol !== "http:" || module.request !== ownRequest || onRequest.hasSubscribers) return false;
  return module.globalAgent === ownAgent && isUsualAgent(module);
}

/** What the agent of Node itself is given. */
const AGENT_OPTIONS: ReadonlySet<string> = new Set([
  "keepAlive",
  "scheduling",
  "timeout",
  "noDelay",
  "path",
  "proxyEnv",
]);

function isUsualAgent({ globalAgent: agent, Agent }: typeof http): boolean {
  if (Object.getPrototypeOf(agent) !== Agent.prototype || agent.maxSockets !== Number.POSITIVE_INFINITY) return false;
  if (Object.hasOwn(agent, "createConnection")) return false;
  const { options = {} } = agent as unknown as { readonly options?: Readonly<Record<string, unknown>> };
  return (options.proxyEnv ?? null) === null && Object.keys(options).every((name) => AGENT_OPTIONS.has(name));
}

type Server = {
  readonly module: typeof http;
  readonly protocol: string;
  readonly hostname: string;
  readonly port: string;
};

/** The address of a client is read once, and not for each request. */
function serverAt(origin: string): Server {
  if (last?.origin === origin) return last.server;
  const { protocol, hostname, port } = new URL(origin);
  // An import would read every name that the module has, which takes longer than a request.
  const module = process.getBuiltinModule(protocol === "https:" ? "node:https" : "node:http") as typeof http;
  const server = { module, protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port };
  last = { origin, server };
  return server;
}
let last: { readonly origin: string; readonly server: Server } | undefined;

/** After the two slashes of an address that the client has read already, the first one begins the path. */
function placeOf(url: string): { readonly origin: string; readonly path: string } {
  const at = url.indexOf("/", "https://".length);
  return at < 0 ? { origin: url, path: "/" } : { origin: url.slice(0, at), path: url.slice(at) };
}

function fetchedFrom(answer: IncomingMessage): Fetched {
  // An answer that has been read lets go of it.
  const { socket } = answer;
  return {
    status: answer.statusCode ?? 0,
    headers: {
      get: (name) => {
        const value = answer.headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    },
    body: answer,
    text: () => textOf(answer),
    close: () => void socket.destroy(),
  };
}

/** By events: reading it as an iterable takes several times as long. */
function textOf(answer: IncomingMessage): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  answer.on("data", (chunk: Buffer) => chunks.push(chunk));
  answer.on("end", () => {
    const [first] = chunks;
    try {
      resolve((chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)).toString("utf8"));
    } catch (error) {
      // Longer than a string can be: nobody would catch it here.
      reject(error as Error);
    }
  });
  answer.on("error", reject);
  return promise;
}
