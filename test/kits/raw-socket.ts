/**
 * A connection of which every byte is the test's own, for what no HTTP library would send.
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { until } from "./waits.ts";

export type RawSocket = {
  readonly socket: Socket;
  send(text: string | Uint8Array): void;
  /** Everything that came until the other side closed, in good order or by a reset. */
  readonly closed: Promise<string>;
  /** Resolves when what has come so far contains the text, so many times. */
  until(text: string, times?: number): Promise<string>;
};

export async function rawSocket(url: string): Promise<RawSocket> {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk.toString();
    socket.emit("more");
  });
  socket.on("error", () => {});
  const closed = new Promise<string>((resolve) => void socket.once("close", () => resolve(received)));
  await once(socket, "connect");
  return {
    socket,
    send: (text) => void socket.write(text),
    closed,
    async until(text, times = 1) {
      const hasCome = (): boolean => received.split(text).length > times;
      const more = (): Promise<unknown> => Promise.race([once(socket, "more"), closed.then(() => raise(text))]);
      await until(`the text ${text}`, hasCome, more);
      return received;
    },
  };
}

function raise(text: string): never {
  throw new Error(`the connection was closed before it said ${text}`);
}

/** The status of a GET with these headers, of which Host is one: `fetch` would write its own. */
export async function statusUnder(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const [response] = (await once(request(url, { headers, agent: false }).end(), "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}
