/**
 * A real server on a free port of loopback, for tests that speak HTTP.
 *
 * The engine runs in memory unless a directory is named. `ask` makes a call of the protocol by its name, and what comes
 * back is typed by the protocol; `call` sends anything anywhere, for what the protocol does not foresee. Both give the
 * status and headers too, because most tests of a wire are about those.
 */
import { type OpenOptions, openDrover } from "../../src/engine/drover.ts";
import type { ConfigInput } from "../../src/engine/index.ts";
import {
  type Answered,
  type Asked,
  CALLS,
  type CallName,
  readSettings,
  type Settings,
  type WireError,
} from "../../src/protocol/index.ts";
import { type Server, type ServerOptions, startServer } from "../../src/server/start-server.ts";
import type { HandClock } from "../../src/std/hand-clock.ts";

export type Reply<Answer = unknown> = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Answer;
  /** The same body, where it is an error. */
  readonly problem: WireError;
};
export type Ask = {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};
type More = { readonly token?: string; readonly signal?: AbortSignal };
type AskFor<Name extends CallName> = (name: Name, asked: Asked<Name>, more?: More) => Promise<Reply<Answered<Name>>>;
export type Client = {
  call(method: string, path: string, ask?: Ask): Promise<Reply>;
  ask<Name extends CallName>(...given: Parameters<AskFor<Name>>): ReturnType<AskFor<Name>>;
};
export type TestServer = AsyncDisposable &
  Client & { readonly server: Server; readonly drover: ServerOptions["drover"]; readonly url: string };

export function settingsOf(given: Record<string, unknown> = {}): Settings {
  const { server = {}, ...rest } = given as { server?: Record<string, unknown> };
  const read = readSettings({ ...rest, server: { port: 0, shutdownGrace: 0, ...server } });
  if (!read.ok) throw new Error(JSON.stringify(read.failure));
  return read.value;
}

export async function openServer(
  options: {
    readonly settings?: Record<string, unknown>;
    readonly open?: OpenOptions;
    readonly server?: Partial<ServerOptions>;
  } = {},
): Promise<TestServer> {
  const settings = settingsOf(options.settings);
  const drover = await openDrover({ config: coreOf(options.settings ?? {}), ...options.open });
  const server = await startServer({ drover, settings, ...options.server });
  return {
    ...{ server, drover, url: server.url, ...clientOf(server.url) },
    [Symbol.asyncDispose]: () => closed(server, options.server?.clock),
  };
}

/**
 * A server that ends lets go of a connection in the middle of something by its clock. One that is turned by hand stands
 * still then, and the connection of a caller that is held up for a moment would stay for a minute, or for ever.
 */
async function closed(server: Server, clock: Partial<HandClock> | undefined): Promise<void> {
  const turning = setInterval(() => clock?.turn?.(LET_GO_MS), LET_GO_MS);
  await server.close().finally(() => clearInterval(turning));
}
const LET_GO_MS = 1000;

/** What is the core's of the settings. */
function coreOf(given: Record<string, unknown>): ConfigInput {
  const { server: _, webhooks: __, log: ___, ...core } = given;
  return core;
}

export function clientOf(url: string): Client {
  return {
    call: (method, path, ask = {}) => send(`${url}${path}`, method, ask),
    ask: (name, asked, { token, signal } = {}) => {
      const { method, path } = CALLS[name];
      const { params = {}, query = {}, body } = asked as { params?: object; query?: object; body?: unknown };
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return send(`${url}${pathOf(path, params, query)}`, method, {
        headers,
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      }) as Promise<Reply<never>>;
    },
  };
}

export function pathOf(path: string, params: object, query: object): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(String((params as Record<string, unknown>)[key])),
  );
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]) => [value].flat().map((one): [string, string] => [key, String(one)])),
  );
  return search.size === 0 ? filled : `${filled}?${search}`;
}

async function send(url: string, method: string, { body, headers = {}, signal }: Ask): Promise<Reply> {
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const json = parsed(text);
  return { status: response.status, headers: response.headers, text, json, problem: json as WireError };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
