/**
 * A server of `node:http` within limits.
 *
 * Every limit on a connection is set here, so that one that is slow, half open or greedy costs little and ends. What
 * never becomes a request, because it is no HTTP or asks for a tunnel, is refused on the bare connection.
 *
 * `localhost` is a name with several addresses, and a caller may try any of them, so there it listens on each.
 */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { refuseTunnel, refuseUnreadable } from "./raw-refusals.ts";

export type ConnectionLimits = {
  readonly connectionsMax: number;
  readonly requestsPerConnectionMax: number;
  readonly headerBytesMax: number;
  /** For the head of a request, and for the whole of it; a file has a rate instead (upload.ts). */
  readonly headersMs: number;
  readonly requestMs: number;
  /** Between two requests of one connection. */
  readonly keepAliveMs: number;
  /** How often connections are looked at. */
  readonly lookMs: number;
};
export const CONNECTION_LIMITS: ConnectionLimits = {
  connectionsMax: 20_000,
  requestsPerConnectionMax: 1_000_000,
  headerBytesMax: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 65_000,
  lookMs: 1000,
};

export type Listener = {
  /** One for each address it listens on. */
  readonly servers: readonly Server[];
  /** Answers the first address. */
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Takes no more connections; resolves when the last has ended. */
  close(): Promise<void>;
  closeAllConnections(): void;
};

type Resolve = (name: string) => Promise<readonly { readonly address: string }[]>;
const resolveName: Resolve = (name) => lookup(name, { all: true });

export function createListener(
  limits: ConnectionLimits,
  onRequest: RequestListener,
  resolve: Resolve = resolveName,
): Listener {
  const servers: Server[] = [];

  async function bind(host: string, port: number): Promise<AddressInfo> {
    const server = serverWithin(limits, onRequest);
    server.listen({ host, port });
    await once(server, "listening");
    servers.push(server);
    return server.address() as AddressInfo;
  }

  return {
    servers,
    async listen(host, port) {
      const first = await bind(host, port);
      const others = host === "localhost" ? await resolve(host).catch(() => []) : [];
      // One that cannot be had, such as IPv6 on a machine without it, is left out.
      for (const { address } of others) if (address !== first.address) await bind(address, first.port).catch(() => {});
      return first;
    },
    async close() {
      await Promise.all(servers.map((server) => new Promise<unknown>((resolve) => server.close(resolve))));
    },
    closeAllConnections() {
      for (const server of servers) server.closeAllConnections();
    },
  };
}

function serverWithin(limits: ConnectionLimits, onRequest: RequestListener): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytesMax,
      // The origin check asks for it, in our words.
      requireHostHeader: false,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.lookMs,
      keepAlive: true,
      keepAliveInitialDelay: limits.keepAliveMs,
    },
    onRequest,
  );
  server.maxConnections = limits.connectionsMax;
  server.maxRequestsPerSocket = limits.requestsPerConnectionMax;
  // It goes the way of every request, and is refused there.
  server.on("checkExpectation", onRequest);
  server.on("clientError", refuseUnreadable);
  server.on("connect", (_request, socket) => refuseTunnel(socket));
  return server;
}
