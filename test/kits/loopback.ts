/**
 * A server on a port of loopback that ends with its test: every connection is cut, whoever still holds it.
 */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";

export type Listening = AsyncDisposable & {
  readonly port: number;
  readonly url: string;
  /** May be called twice; the port may be listened to again. */
  close(): Promise<void>;
};

export async function listening(server: Server, wanted = 0): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  await once(server.listen(wanted, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  async function close(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  }
  return { port, url: `http://127.0.0.1:${port}`, close, [Symbol.asyncDispose]: close };
}

export const answering = (answer: RequestListener, port?: number): Promise<Listening> =>
  listening(createServer(answer), port);
